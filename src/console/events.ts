/**
 * Server-sent events. Every few seconds a heartbeat proves that the daemon is alive, and its `version` says whether
 * anything has changed. Browsers then fetch their page again. Programs get the whole status instead.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const LEAST_PAUSE_MS = 1_000;
/** Browsers show a missing heartbeat after eight seconds. */
const HEARTBEAT_MS = 3_000;
const MOST_LISTENERS = 50;
/** From one address, so that one client cannot use up all listeners. A proxy may stand for several people. */
const MOST_PER_PEER = 20;
/** A client that leaves this much unread is disconnected. Browsers connect again. */
const MOST_PENDING_BYTES = 1024 ** 2;

export type Format = () => { readonly event: string; readonly data: unknown };

export class EventStreams {
  readonly #listeners = new Map<ServerResponse, Format>();
  /** A stream never ends, so its connection can serve no other request. */
  readonly #sockets = new Set<Socket>();
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #sentMs = 0;

  /** Sends soon, but at most once a second. */
  changed(): void {
    this.#plan(LEAST_PAUSE_MS);
  }

  /** Returns false if there are too many listeners. */
  add({ socket }: IncomingMessage, response: ServerResponse, format: Format): boolean {
    const ofPeer = [...this.#sockets].filter(({ remoteAddress }) => remoteAddress === socket.remoteAddress);
    if (this.#listeners.size >= MOST_LISTENERS || ofPeer.length >= MOST_PER_PEER) return false;
    if (this.#sockets.has(socket)) return false;
    this.#sockets.add(socket);
    response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
    response.write("retry: 2000\n\n");
    response.write(serialize(format));
    this.#listeners.set(response, format);
    response.once("close", () => {
      this.#listeners.delete(response);
      this.#sockets.delete(socket);
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
    const texts = new Map<Format, string>();
    for (const [response, format] of this.#listeners) {
      const text = texts.get(format) ?? serialize(format);
      texts.set(format, text);
      if (response.writableLength > MOST_PENDING_BYTES) response.destroy();
      else response.write(text);
    }
    this.#plan(HEARTBEAT_MS);
  }
}

function serialize(format: Format): string {
  const { event, data } = format();
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
