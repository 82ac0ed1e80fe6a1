/**
 * Requests to the daemon. Commands speak to a socket that only the daemon can have made. Any program may listen on a port: probes send
 * it a path and nothing else, and no answer from there is taken for the daemon's word. No token is sent anywhere.
 */
import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { FAULT_CODES, type FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import { parseAs } from "../base/json.ts";
import type { HttpSettings, Settings } from "../config/settings.ts";
import { isPermissionFault } from "../host/permission.ts";
import { proveOwned } from "../host/socket.ts";
import { findDaemonSockets } from "../inbox/members.ts";
import { findDaemonUsers } from "../inbox/work-folder.ts";
import { type AnswerOf, API, API_SHAPES, type ApiPath, ProblemShape } from "../model/api.ts";
import { linkTo } from "../model/queries.ts";

const TIMEOUT_MS = 30_000;
const PROBE_TIMEOUT_MS = 5_000;
/** Enough for many thousands of mailboxes. */
const MAX_BYTES = 32 * 1024 ** 2;

export type ListenAddress = HttpSettings["listen"];

/** Where the daemon of an inbox may be found. */
export type Whereabouts = Pick<Settings, "sockets" | "inbox" | "work" | "state" | "http">;

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/**
 * The daemon of this inbox; `undefined` if none answers on a socket. Throws `SOCKET_UNSAFE` if a socket is there that another user may
 * have made, and `DAEMON_UNREACHABLE` if this user may not use the socket at `http.listen`.
 */
export async function findDaemon(at: Whereabouts, user: string, stop: AbortSignal) {
  const opened = at.http !== undefined && "path" in at.http.listen ? [at.http.listen.path] : [];
  let unsafe: Fault | undefined;
  for (const path of [...at.sockets, ...(await findDaemonSockets(at.work)), ...opened]) {
    try {
      return await connectTo(path, () => findDaemonUsers(at), user, stop);
    } catch (error) {
      const fault = error as Fault;
      if (fault.code === "STOPPED" || (opened.includes(path) && isPermissionFault(fault))) throw fault;
      if (fault.code === "SOCKET_UNSAFE") unsafe ??= fault;
    }
  }
  if (unsafe !== undefined) throw unsafe;
  return undefined;
}

/**
 * The daemon at this socket, which answers. `others`: users, besides root and this one, who may have made the socket. Throws `SOCKET_UNSAFE`,
 * `DAEMON_UNREACHABLE` and `STOPPED`.
 */
export async function connectTo(
  path: string,
  others: () => Promise<readonly number[]>,
  user: string,
  stop: AbortSignal,
) {
  const proven = await proveOwned(path, others).catch((error: unknown) => {
    throw error instanceof Fault ? error : new Fault("DAEMON_UNREACHABLE", { detail: path, cause: error });
  });
  const daemon = new DaemonClient(proven, user, stop);
  await daemon.ask("GET", "/healthz");
  return daemon;
}

/** The answer of whatever listens there; `undefined` without a complete one in time. Throws `DAEMON_UNREACHABLE` if this user may not use it. */
export async function probe(at: ListenAddress, path: string, stop: AbortSignal) {
  return send({ at, path, stop }).catch((fault: Fault) => {
    if (fault.code === "STOPPED" || isPermissionFault(fault)) throw fault;
    return undefined;
  });
}

/** Methods throw the fault that the daemon names, `DAEMON_UNREACHABLE` and `STOPPED`. */
export class DaemonClient {
  /** Of its socket. */
  readonly path: string;
  readonly #user: string;
  readonly #stop: AbortSignal;

  /** `path`: proven to be the daemon's. `user`: the socket does not say who opened it, so the daemon records this name as claimed. */
  constructor(path: string, user: string, stop: AbortSignal) {
    this.path = path;
    this.#user = user;
    this.#stop = stop;
  }

  async get<Path extends ApiPath>(
    path: Path,
    query: Readonly<Record<string, string | number | undefined>>,
  ): Promise<AnswerOf<Path>> {
    return this.#parse(path, await this.ask("GET", linkTo(path, query), undefined, TIMEOUT_MS));
  }

  /** `waitMs`: how long the daemon may take beyond the usual time. */
  async post<Path extends ApiPath>(path: Path, body: object, waitMs: number): Promise<AnswerOf<Path>> {
    return this.#parse(path, await this.ask("POST", path, body, TIMEOUT_MS + waitMs));
  }

  /** The plain answer, whatever its status. Throws `DAEMON_UNREACHABLE` and `STOPPED`. */
  ask(method: "GET" | "POST", path: string, body?: object, timeoutMs?: number): Promise<Answer> {
    const headers = { "inlet-user": encodeURIComponent(this.#user) };
    return send({ at: { path: this.path }, stop: this.#stop, method, path, headers, body, timeoutMs });
  }

  #parse<Path extends ApiPath>(path: Path, { status, body }: Answer): AnswerOf<Path> {
    const answer = status === 200 ? parseAs(API_SHAPES[API[path].answer], body) : undefined;
    // The table names the shape of each route's answer.
    if (answer !== undefined) return answer as AnswerOf<Path>;
    const where = `the daemon at ${this.path}`;
    const { code = "", detail } = parseAs(ProblemShape, body) ?? {};
    if (detail === undefined || !Object.hasOwn(FAULT_CODES, code)) {
      throw new Fault("DAEMON_UNREACHABLE", { detail: `${where}: ${detail ?? `status ${status}`}` });
    }
    // The advice follows by itself.
    const more = detail === FAULT_CODES[code as FaultCode].advice ? "" : `: ${detail}`;
    throw new Fault(code as FaultCode, { detail: `${where} refuses${more}` });
  }
}

interface Asked extends RequestOptions {
  readonly at: ListenAddress;
  readonly body?: object | undefined;
  readonly timeoutMs?: number | undefined;
  readonly stop: AbortSignal;
}

/** Throws `DAEMON_UNREACHABLE` and `STOPPED`. */
function send({ at, body, timeoutMs = PROBE_TIMEOUT_MS, stop, ...options }: Asked): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)]);
  const headers = {
    ...options.headers,
    // A name that every daemon accepts.
    host: "localhost",
    ...(body && { "content-type": "application/json" }),
  };
  const receive = (response: IncomingMessage) =>
    readText(response).then((text) => resolve({ status: response.statusCode ?? 0, body: text }), reject);
  request({ ...options, ...placeOf(at), headers, agent: false, signal }, receive)
    .once("error", reject)
    .end(body && JSON.stringify(body));
  return promise.catch((cause: unknown) => {
    if (stop.aborted) throw new Fault("STOPPED", { cause });
    throw new Fault("DAEMON_UNREACHABLE", { detail: describeListen(at), cause });
  });
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop closes the connection.
    if (bytes > MAX_BYTES) throw new Error("the answer is too large");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

function placeOf(listen: ListenAddress) {
  if ("path" in listen) return { socketPath: listen.path };
  // A daemon that listens on every address is reached on the loopback one.
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[listen.host] ?? listen.host;
  return { host, port: listen.port };
}

/** As the key `listen` writes it. */
export function describeListen(listen: ListenAddress): string {
  if ("path" in listen) return `unix:${listen.path}`;
  return `${listen.host.includes(":") ? `[${listen.host}]` : listen.host}:${listen.port}`;
}
