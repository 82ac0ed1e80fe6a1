/**
 * Server-sent events. Every few seconds a heartbeat proves that the daemon is alive, and its `version` says whether
 * anything has changed. Browsers then fetch their page again. Programs get the whole status instead.
 */
import type { ServerResponse } from "node:http";
import { MAX_STREAMS, MAX_STREAMS_OF_PEER } from "../base/bounds.ts";
import { peerOf } from "./callers.ts";

const TICK_MS = 1_000;
/** Browsers show a missing heartbeat after eight seconds. */
const TICKS_PER_HEARTBEAT = 3;

type MakeEvent = () => { readonly event: string; readonly data: unknown };

export class EventStreams {
  readonly #listeners = new Map<ServerResponse, MakeEvent>();
  #timer: NodeJS.Timeout | undefined;
  #isChanged = false;
  /** Since the last event. */
  #ticks = 0;
  /** Another one after each change that pages show. */
  version = 0;

  /** The next tick sends an event. */
  changed(): void {
    this.version++;
    this.#isChanged = true;
  }

  /** Returns false if there are too many listeners. */
  add(response: ServerResponse, makeEvent: MakeEvent): boolean {
    const peer = peerOf(response.req.socket.remoteAddress);
    const ofPeer = [...this.#listeners.keys()].filter(({ req }) => peerOf(req.socket.remoteAddress) === peer);
    if (this.#listeners.size >= MAX_STREAMS || ofPeer.length >= MAX_STREAMS_OF_PEER) return false;
    response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
    response.write("retry: 2000\n\n");
    response.write(serialize(makeEvent));
    this.#listeners.set(response, makeEvent);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    response.once("close", () => this.#listeners.delete(response));
    return true;
  }

  /** The server may listen again later. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const response of this.#listeners.keys()) response.end();
  }

  #tick(): void {
    this.#ticks++;
    if (!this.#isChanged && this.#ticks < TICKS_PER_HEARTBEAT) return;
    this.#isChanged = false;
    this.#ticks = 0;
    const texts = new Map<MakeEvent, string>();
    for (const [response, makeEvent] of this.#listeners) {
      const text = texts.get(makeEvent) ?? serialize(makeEvent);
      texts.set(makeEvent, text);
      // The client has not read the one before. The next one tells as much.
      if (response.writableLength === 0) response.write(text);
    }
  }
}

function serialize(makeEvent: MakeEvent): string {
  const { event, data } = makeEvent();
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
