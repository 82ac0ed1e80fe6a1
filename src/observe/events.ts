/**
 * Server-sent events: everybody who listens hears the newest state when it has changed, at most once a second, and
 * some words now and then so that proxies keep the line open. What is sent is made once, however many listen.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Board } from "./board.ts";

const LEAST_PAUSE_MS = 1_000;
/** Times in words grow old, so a page is renewed also where nothing happens. */
const RENEW_MS = 15_000;
const MOST_LISTENERS = 50;
/** From one address, so that nobody has all places. A proxy in front of the page may speak for some people. */
const MOST_PER_PEER = 20;
/** Who reads so slowly that this much piles up is sent away; a browser comes back by itself. */
const MOST_PENDING_BYTES = 1024 ** 2;

export type Render = () => { readonly event: string; readonly data: unknown };

export class Events {
  readonly #listeners = new Map<ServerResponse, Render>();
  /** An answer without an end has its connection for itself: what is asked for behind it never gets one. */
  readonly #sockets = new Set<Socket>();
  readonly #stopWatching: () => void;
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #sentMs = 0;

  constructor(board: Board) {
    this.#stopWatching = board.onChange(() => this.#plan(LEAST_PAUSE_MS));
  }

  /** Returns false where too many listen already. */
  add({ socket }: IncomingMessage, response: ServerResponse, render: Render): boolean {
    const ofPeer = [...this.#sockets].filter(({ remoteAddress }) => remoteAddress === socket.remoteAddress);
    if (this.#listeners.size >= MOST_LISTENERS || ofPeer.length >= MOST_PER_PEER) return false;
    if (this.#sockets.has(socket)) return false;
    this.#sockets.add(socket);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write("retry: 3000\n\n");
    response.write(format(render));
    this.#listeners.set(response, render);
    response.once("close", () => {
      this.#listeners.delete(response);
      this.#sockets.delete(socket);
      if (this.#listeners.size === 0) this.#stopTimer();
    });
    this.#plan(RENEW_MS);
    return true;
  }

  close(): void {
    this.#stopWatching();
    this.#stopTimer();
    for (const response of this.#listeners.keys()) response.end();
  }

  /** Sends so long after the last time, unless it is to be sent earlier already. */
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
    const texts = new Map<Render, string>();
    for (const [response, render] of this.#listeners) {
      const text = texts.get(render) ?? format(render);
      texts.set(render, text);
      if (response.writableLength > MOST_PENDING_BYTES) response.destroy();
      else response.write(text);
    }
    this.#plan(RENEW_MS);
  }
}

function format(render: Render): string {
  const { event, data } = render();
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
