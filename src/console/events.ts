/**
 * Server-sent events. Every few seconds a heartbeat proves that the daemon is alive, and its `version` says whether
 * anything has changed. Browsers then fetch their page again. Programs get the whole status instead.
 */
import type { ServerResponse } from "node:http";

const MIN_PAUSE_MS = 1_000;
/** Browsers show a missing heartbeat after eight seconds. */
const HEARTBEAT_MS = 3_000;
const MAX_LISTENERS = 50;
/** From one address, so that one client cannot use up all listeners. A proxy may stand for several people. */
const MAX_PER_PEER = 20;
/** A client that leaves this much unread is disconnected. Browsers connect again. */
const MAX_PENDING_BYTES = 1024 ** 2;

type MakeEvent = () => { readonly event: string; readonly data: unknown };

export class EventStreams {
  readonly #listeners = new Map<ServerResponse, MakeEvent>();
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #sentMs = 0;

  /** Sends soon, but at most once a second. */
  changed(): void {
    this.#plan(MIN_PAUSE_MS);
  }

  /** Returns false if there are too many listeners. */
  add(response: ServerResponse, makeEvent: MakeEvent): boolean {
    const { remoteAddress } = response.req.socket;
    const ofPeer = [...this.#listeners.keys()].filter(
      ({ req }) => req.socket.remoteAddress === remoteAddress,
    );
    if (this.#listeners.size >= MAX_LISTENERS || ofPeer.length >= MAX_PER_PEER) return false;
    response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
    response.write("retry: 2000\n\n");
    response.write(serialize(makeEvent));
    this.#listeners.set(response, makeEvent);
    response.once("close", () => {
      this.#listeners.delete(response);
      if (this.#listeners.size === 0) this.#stopTimer();
    });
    this.#plan(HEARTBEAT_MS);
    return true;
  }

  close(): void {
    this.#stopTimer();
    for (const response of this.#listeners.keys()) response.end();
  }

  /** Sends this long after the last time, unless an earlier time is planned. */
  #plan(pauseMs: number): void {
    if (this.#listeners.size === 0) return;
    const dueMs = this.#sentMs + pauseMs;
    if (this.#timer !== undefined && this.#dueMs <= dueMs) return;
    this.#stopTimer();
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => this.#send(), Math.max(0, dueMs - performance.now()));
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #send(): void {
    this.#stopTimer();
    this.#sentMs = performance.now();
    const texts = new Map<MakeEvent, string>();
    for (const [response, makeEvent] of this.#listeners) {
      const text = texts.get(makeEvent) ?? serialize(makeEvent);
      texts.set(makeEvent, text);
      if (response.writableLength > MAX_PENDING_BYTES) response.destroy();
      else response.write(text);
    }
    this.#plan(HEARTBEAT_MS);
  }
}

function serialize(makeEvent: MakeEvent): string {
  const { event, data } = makeEvent();
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
