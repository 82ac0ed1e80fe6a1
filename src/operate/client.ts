/** Requests to the daemon, at the address where its console listens. Answers are not trusted: any program may listen there. */

import { type IncomingMessage, request } from "node:http";
import { FAULT_CODES, type FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import { parseAs } from "../base/json.ts";
import type { Secret } from "../base/secret.ts";
import type { HttpSettings } from "../config/settings.ts";
import { type AnswerOf, API, API_SHAPES, type ApiPath, ProblemShape } from "../model/api.ts";
import { linkTo } from "../model/queries.ts";

const TIMEOUT_MS = 30_000;
/** Enough for many thousands of mailboxes. */
const MAX_BYTES = 32 * 1024 ** 2;

export type ListenAddress = HttpSettings["listen"];

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Methods throw the fault that the daemon names, `DAEMON_UNREACHABLE` and `STOPPED`. */
export class DaemonClient {
  readonly #http: HttpSettings;
  readonly #user: string;
  readonly #stop: AbortSignal;
  #token: Promise<Secret | undefined> | undefined;

  /** `user`: the socket does not say who opened it, so the daemon records this name as claimed. */
  constructor(http: HttpSettings, user: string, stop: AbortSignal) {
    this.#http = http;
    this.#user = user;
    this.#stop = stop;
  }

  async get<Path extends ApiPath>(
    path: Path,
    query: Readonly<Record<string, string | number | undefined>>,
  ): Promise<AnswerOf<Path>> {
    return this.#parse(path, await this.ask("GET", linkTo(path, query)));
  }

  /** `waitMs`: how long the daemon may take beyond the usual time. */
  async post<Path extends ApiPath>(path: Path, body: object, waitMs: number): Promise<AnswerOf<Path>> {
    return this.#parse(path, await this.ask("POST", path, body, TIMEOUT_MS + waitMs));
  }

  /** The plain answer, whatever its status. Throws `DAEMON_UNREACHABLE` and `STOPPED`. */
  async ask(
    method: "GET" | "POST",
    path: string,
    body?: object,
    timeoutMs: number = TIMEOUT_MS,
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const signal = AbortSignal.any([this.#stop, AbortSignal.timeout(timeoutMs)]);
    if (method === "GET") this.#token ??= findToken(this.#http, this.#stop);
    const token = method === "GET" ? await this.#token : undefined;
    const headers = {
      ...(token && { authorization: `Bearer ${token.reveal()}` }),
      // A name that every daemon accepts.
      host: "localhost",
      "inlet-user": encodeURIComponent(this.#user),
      ...(body && { "content-type": "application/json" }),
    };
    const receive = (response: IncomingMessage) =>
      readText(response).then((text) => resolve({ status: response.statusCode ?? 0, body: text }), reject);
    request({ ...placeOf(this.#http.listen), method, path, headers, agent: false, signal }, receive)
      .once("error", reject)
      .end(body && JSON.stringify(body));
    return promise.catch((cause: unknown) => {
      if (this.#stop.aborted) throw new Fault("STOPPED", { cause });
      throw new Fault("DAEMON_UNREACHABLE", { detail: describeListen(this.#http.listen), cause });
    });
  }

  #parse<Path extends ApiPath>(path: Path, { status, body }: Answer): AnswerOf<Path> {
    const answer = status === 200 ? parseAs(API_SHAPES[API[path].answer], body) : undefined;
    // The table names the shape of each route's answer.
    if (answer !== undefined) return answer as AnswerOf<Path>;
    const where = `the daemon at ${describeListen(this.#http.listen)}`;
    const { code = "", detail } = parseAs(ProblemShape, body) ?? {};
    if (detail === undefined || !Object.hasOwn(FAULT_CODES, code)) {
      throw new Fault("DAEMON_UNREACHABLE", { detail: `${where}: ${detail ?? `status ${status}`}` });
    }
    // The advice follows by itself.
    const more = detail === FAULT_CODES[code as FaultCode].advice ? "" : `: ${detail}`;
    throw new Fault(code as FaultCode, { detail: `${where} refuses${more}` });
  }
}

/** To read where that needs a token: the first one that this user can read. An action has to name its operator instead. */
async function findToken(
  { read = "open", tokens }: HttpSettings,
  stop: AbortSignal,
): Promise<Secret | undefined> {
  if (read === "open") return undefined;
  for (const { source } of tokens.values()) {
    // Without any token, the daemon says that it needs one.
    const token = await source.read(stop).catch(() => undefined);
    if (token !== undefined) return token;
  }
  return undefined;
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
