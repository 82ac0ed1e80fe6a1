/** Requests to the daemon, at the address where its console listens. Answers are not trusted: any program may listen there. */
import { type IncomingMessage, request } from "node:http";
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import type { HttpSettings } from "../config/settings.ts";

const TIMEOUT_MS = 30_000;
/** Enough for many thousands of mailboxes. */
const MAX_BYTES = 32 * 1024 ** 2;

const ErrorShape = v.looseObject({ error: v.string() });

interface Answer {
  readonly status: number;
  readonly body: string;
}

export type Parameters = Readonly<Record<string, string | number | undefined>>;

/** Methods throw `PERMISSION_DENIED`, `CONFIG_INVALID`, `DAEMON_UNREACHABLE` and `STOPPED`. */
export class DaemonClient {
  readonly #listen: HttpSettings["listen"];
  readonly #user: string;
  readonly #stop: AbortSignal;

  /** `user`: the socket does not say who opened it, so the daemon records this name as claimed. */
  constructor({ listen }: HttpSettings, user: string, stop: AbortSignal) {
    this.#listen = listen;
    this.#user = user;
    this.#stop = stop;
  }

  async get<Schema extends v.GenericSchema>(
    route: string,
    parameters: Parameters,
    schema: Schema,
  ): Promise<v.InferOutput<Schema>> {
    return this.#parse(schema, await this.ask("GET", addressOf(route, parameters)));
  }

  /** The same; `undefined` for the status 404. */
  async tryGet<Schema extends v.GenericSchema>(
    route: string,
    parameters: Parameters,
    schema: Schema,
  ): Promise<v.InferOutput<Schema> | undefined> {
    const answer = await this.ask("GET", addressOf(route, parameters));
    return answer.status === 404 ? undefined : this.#parse(schema, answer);
  }

  /** `waitMs`: how long the daemon may take beyond the usual time. */
  async post<Schema extends v.GenericSchema>(
    route: string,
    body: object,
    schema: Schema,
    waitMs: number,
  ): Promise<v.InferOutput<Schema>> {
    return this.#parse(schema, await this.ask("POST", route, body, TIMEOUT_MS + waitMs));
  }

  /** The plain answer, whatever its status. Throws `DAEMON_UNREACHABLE` and `STOPPED`. */
  async ask(
    method: "GET" | "POST",
    path: string,
    body?: object,
    timeoutMs: number = TIMEOUT_MS,
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const content = body === undefined ? undefined : JSON.stringify(body);
    const signal = AbortSignal.any([this.#stop, AbortSignal.timeout(timeoutMs)]);
    const headers = {
      // A name that every daemon accepts.
      host: "localhost",
      "inlet-user": encodeURIComponent(this.#user),
      ...(content === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
    };
    const receive = (response: IncomingMessage) =>
      readText(response).then((text) => resolve({ status: response.statusCode ?? 0, body: text }), reject);
    request({ ...placeOf(this.#listen), method, path, headers, agent: false, signal }, receive)
      .once("error", reject)
      .end(content);
    return promise.catch((cause: unknown) => {
      if (this.#stop.aborted) throw new Fault("STOPPED", { cause });
      throw new Fault("DAEMON_UNREACHABLE", { detail: describePlace(this.#listen), cause });
    });
  }

  #parse<Schema extends v.GenericSchema>(schema: Schema, { status, body }: Answer): v.InferOutput<Schema> {
    const answer = status === 200 ? parseBody(schema, body) : undefined;
    if (answer !== undefined) return answer;
    const where = `the daemon at ${describePlace(this.#listen)}`;
    const refusal = parseBody(ErrorShape, body)?.error;
    if (status === 401 || status === 403 || status === 404) {
      throw new Fault("PERMISSION_DENIED", {
        detail: `${where} refuses: ${refusal ?? "it takes no orders"}`,
      });
    }
    const detail = refusal ?? `status ${status}`;
    if (status === 400 || status === 413) {
      throw new Fault("CONFIG_INVALID", { detail: `${where} refuses the request: ${detail}` });
    }
    throw new Fault("DAEMON_UNREACHABLE", { detail: `${where}: ${detail}` });
  }
}

/** `undefined` for any other text. */
export function parseBody<Schema extends v.GenericSchema>(
  schema: Schema,
  body: string,
): v.InferOutput<Schema> | undefined {
  try {
    const result = v.safeParse(schema, JSON.parse(body));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
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

function placeOf(listen: HttpSettings["listen"]) {
  if ("path" in listen) return { socketPath: listen.path };
  // A daemon that listens on every address is reached on the loopback one.
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[listen.host] ?? listen.host;
  return { host, port: listen.port };
}

function describePlace(listen: HttpSettings["listen"]): string {
  return "path" in listen ? listen.path : `${listen.host}:${listen.port}`;
}

function addressOf(route: string, parameters: Parameters): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return `${route}?${new URLSearchParams(given)}`;
}
