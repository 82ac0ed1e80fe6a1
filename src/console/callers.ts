/** Keeps the console reachable, and its memory small, whatever its clients do. */
import type { Server as HttpServer, ServerResponse } from "node:http";
import { isIPv6, type Server, type Socket } from "node:net";
import {
  MAX_OPEN_REQUESTS,
  MAX_REQUESTS,
  MAX_REQUESTS_OF_PEER,
  MAX_SILENT_CONNECTIONS,
  MAX_UNREAD_BYTES,
  MAX_WAITING_BYTES,
  REQUEST_MS,
  REST_PER_PIECE,
  TURNS_PER_PIECE,
  UNREAD_MS,
} from "../base/bounds.ts";
import { Mutex } from "../base/concurrency.ts";
import { Fault } from "../base/faults.ts";
import { clearInterval, monotonicMs, nextTurn, pause, setInterval, setTimeout } from "../base/timers.ts";
import type { CallerLimit, Emit } from "../model/events.ts";

const LOOK_EVERY_MS = 1_000;
const REPORT_EVERY_MS = 60_000;
/** Of the oldest connections, when one of the same address is to be replaced. */
const LOOKED_AT = 64;

export type OnLimited = (limit: CallerLimit, from: string | undefined) => void;

/** Returns a function that counts callers. The first at a limit is reported at once, and all others of a minute together. */
export function reportLimits(emit: Emit): OnLimited {
  const counts = new Map<CallerLimit, { count: number; from: string }>();
  return (limit, from = "socket") => {
    const known = counts.get(limit);
    if (known !== undefined) return void Object.assign(known, { count: known.count + 1, from });
    const more = { count: 0, from };
    counts.set(limit, more);
    emit({ type: "callers-limited", limit, from, count: 1 });
    const report = () => {
      counts.delete(limit);
      if (more.count > 0) emit({ type: "callers-limited", limit, ...more });
    };
    setTimeout(report, REPORT_EVERY_MS).unref();
  };
}

const turns = new Mutex();

/**
 * Runs the work of one caller at a time, as far as its first pause. After it, all other work has its turn. `gone`: the caller
 * has left; it waits no longer, and `STOPPED` is thrown.
 */
export async function inTurn<Result>(gone: AbortSignal, work: () => Result): Promise<Awaited<Result>> {
  const release = await turns.lock(gone);
  if (release === undefined) throw new Fault("STOPPED");
  const startedMs = monotonicMs();
  let result: Result;
  try {
    result = work();
  } finally {
    void rest(startedMs).then(release);
  }
  return await result;
}

/**
 * After a piece of work for a caller. The time alone would not do: on a busy machine it passes while this process waits for a
 * processor, and Node takes one connection in each turn of its loop.
 */
async function rest(startedMs: number): Promise<void> {
  await pause((monotonicMs() - startedMs) * REST_PER_PIECE);
  for (let turn = 0; turn < TURNS_PER_PIECE; turn++) await nextTurn();
}

const PROBE = /^(GET|HEAD) \/(healthz|readyz)[ ?]/;
const PROBE_BYTES = 16;

/**
 * The connections and requests under way. Each request has a connection of its own: a client could send many on one, and read no answer.
 * A connection costs little before it gets a parser. It gets one in its turn, or at once for a probe, so that a flood delays no probe.
 */
export class Callers {
  /** Connections without the whole head of a request, and since when, the oldest first. */
  readonly #silent = new Map<Socket, number>();
  /** Those of them that have sent something, and wait for their turn. */
  readonly #begun = new Map<Socket, Buffer>();
  #begunBytes = 0;
  #isTaking = false;
  /** Requests that have a place, and their peers, the oldest first. */
  readonly #placed = new Map<ServerResponse, string>();
  /** All requests, also those that need no place, and since when their client has kept us waiting. */
  readonly #open = new Map<ServerResponse, number | undefined>();
  readonly #http: HttpServer;
  readonly #onLimited: OnLimited;

  /** `http`: does not listen. It gets the connections of `server`. */
  constructor(server: Server, http: HttpServer, onLimited: OnLimited) {
    this.#http = http;
    this.#onLimited = onLimited;
    http.maxRequestsPerSocket = 1;
    server.on("connection", (socket: Socket) => this.#connected(socket));
    http.on("request", ({ socket }, response) => {
      // Without this, Node says that it closes the connection, and keeps it for some seconds.
      response.shouldKeepAlive = false;
      this.#silent.delete(socket);
      if (this.#open.size >= MAX_OPEN_REQUESTS) this.#endRefused();
      this.#open.set(response, undefined);
      response.once("close", () => {
        this.#open.delete(response);
        this.release(response);
      });
    });
    server.on("listening", () => {
      const timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
      server.once("close", () => clearInterval(timer));
    });
  }

  /** Ends all connections. */
  end(): void {
    for (const socket of this.#silent.keys()) socket.destroy();
    for (const response of this.#open.keys()) response.destroy();
  }

  /** Returns false if there is no place. A new request takes the place of one whose client keeps us waiting. */
  tryAdmit(response: ServerResponse): boolean {
    const { remoteAddress } = response.req.socket;
    const peer = peerOf(remoteAddress);
    const ofPeer = [...this.#placed.keys()].filter((it) => this.#placed.get(it) === peer);
    const isFull = this.#placed.size >= MAX_REQUESTS;
    const crowd = ofPeer.length >= MAX_REQUESTS_OF_PEER ? ofPeer : isFull ? [...this.#placed.keys()] : [];
    const slow = crowd.find((it) => waitOf(it) !== undefined);
    if (slow !== undefined) this.#end(slow);
    const isAdmitted = crowd.length === 0 || slow !== undefined;
    if (isAdmitted) this.#placed.set(response, peer);
    else this.#onLimited("crowded", remoteAddress);
    return isAdmitted;
  }

  /** The request needs its place no longer. */
  release(response: ServerResponse): void {
    this.#placed.delete(response);
  }

  /** Call after an answer, or a piece of one, was written. */
  trim(): void {
    const unread = [...this.#open.keys()].filter(({ writableLength }) => writableLength > 0);
    let bytes = unread.reduce((sum, { writableLength }) => sum + writableLength, 0);
    if (bytes <= MAX_UNREAD_BYTES) return;
    for (const response of unread.toSorted((one, other) => other.writableLength - one.writableLength)) {
      if (bytes <= MAX_UNREAD_BYTES) return;
      bytes -= response.writableLength;
      this.#end(response);
    }
  }

  #connected(socket: Socket): void {
    if (this.#silent.size >= MAX_SILENT_CONNECTIONS) {
      const peer = peerOf(socket.remoteAddress);
      const isOfPeer = ({ remoteAddress }: Socket) => peerOf(remoteAddress) === peer;
      const replaced = this.#silent.keys().take(LOOKED_AT).find(isOfPeer) ?? this.#silent.keys().next().value;
      this.#onLimited("silent", replaced?.remoteAddress);
      if (replaced !== undefined) this.#forget(replaced.destroy());
    }
    this.#silent.set(socket, monotonicMs());
    // The client has gone.
    socket.on("error", () => {}).once("close", () => this.#forget(socket));
    socket.once("data", (head) => {
      socket.pause();
      const isProbe = PROBE.test(head.toString("latin1", 0, PROBE_BYTES));
      // With its whole head, which most clients send in one piece.
      if (isProbe && head.includes("\r\n\r\n")) return this.#parse(socket, head);
      this.#begun.set(socket, head);
      this.#begunBytes += head.length;
      for (const oldest of this.#begun.keys()) {
        if (this.#begunBytes <= MAX_WAITING_BYTES) break;
        this.#onLimited("silent", oldest.remoteAddress);
        this.#forget(oldest.destroy());
      }
      if (!this.#isTaking) this.#takeNext();
    });
  }

  #forget(socket: Socket): void {
    this.#silent.delete(socket);
    this.#waitNoLonger(socket);
  }

  #waitNoLonger(socket: Socket): void {
    this.#begunBytes -= this.#begun.get(socket)?.length ?? 0;
    this.#begun.delete(socket);
  }

  #takeNext(): void {
    const [next] = this.#begun;
    this.#isTaking = next !== undefined;
    if (next === undefined) return;
    const startedMs = monotonicMs();
    this.#waitNoLonger(next[0]);
    this.#parse(...next);
    void rest(startedMs).then(() => this.#takeNext());
  }

  #parse(socket: Socket, head: Buffer): void {
    socket.unshift(head);
    this.#http.emit("connection", socket);
    socket.resume();
  }

  #endRefused(): void {
    const isRefused = (it: ServerResponse) => !this.#placed.has(it) && waitOf(it) !== undefined;
    const slow = this.#open.keys().find(isRefused);
    if (slow !== undefined) this.#end(slow);
  }

  #look(): void {
    const nowMs = monotonicMs();
    for (const [socket, sinceMs] of this.#silent) if (nowMs - sinceMs >= REQUEST_MS) socket.destroy();
    for (const [response, sinceMs = nowMs] of this.#open) {
      const wait = waitOf(response);
      this.#open.set(response, wait && sinceMs);
      if (wait !== undefined && nowMs - sinceMs >= LONGEST_MS[wait]) this.#end(response);
    }
    this.trim();
  }

  #end(response: ServerResponse): void {
    this.#onLimited(waitOf(response) ?? "unread", response.req.socket.remoteAddress);
    this.release(response);
    this.#open.delete(response);
    response.destroy();
  }
}

const LONGEST_MS = { unfinished: REQUEST_MS, unread: UNREAD_MS } as const;

/** How the client keeps us waiting, if it does. */
function waitOf({ req, writableLength }: ServerResponse): keyof typeof LONGEST_MS | undefined {
  if (!req.complete) return "unfinished";
  return writableLength > 0 ? "unread" : undefined;
}

/** Who sends from this address. One client may own a whole /64 network of IPv6, and each one here all of 127.0.0.0/8. */
export function peerOf(given = ""): string {
  const address = given.replace(/^::ffff:(?=\d+\.)/i, "").replace(/^127\..*/, "127.0.0.1");
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const before = head.split(":").filter(Boolean);
  const after = (tail ?? "").split(":").filter(Boolean);
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array.from({ length: Math.max(0, zeros) }, () => "0"), ...after]
    .slice(0, 4)
    .join(":");
}
