/** Requests to the daemon through its Unix socket. Answers are not trusted: any program may listen there. */
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import type { HttpSettings } from "../config/settings.ts";
import { nameOfUser } from "./actor.ts";
import type { Context } from "./context.ts";
import { invalid } from "./options.ts";
import { isPermissionFault } from "./permission.ts";

const TIMEOUT_MS = 30_000;

const ErrorShape = v.looseObject({ error: v.string() });

interface Answer {
  readonly status: number;
  readonly body: string;
}

type Parameters = Readonly<Record<string, string | number | undefined>>;

/** `undefined` if the configuration names no socket, or no daemon answers there. Throws if this user may not use it. */
export async function openSocket(
  context: Context,
  http: HttpSettings | undefined,
): Promise<DaemonSocket | undefined> {
  if (http === undefined || !("path" in http.listen)) return undefined;
  const socket = new DaemonSocket(context, http.listen.path);
  return (await socket.isReachable()) ? socket : undefined;
}

/** Methods throw `PERMISSION_DENIED`, `CONFIG_INVALID`, `DAEMON_UNREACHABLE` and `STOPPED`. */
export class DaemonSocket {
  readonly #context: Context;
  readonly #path: string;

  constructor(context: Context, path: string) {
    this.#context = context;
    this.#path = path;
  }

  isReachable(): Promise<boolean> {
    return this.#send("GET", "/healthz").then(
      () => true,
      (error: Fault) => {
        if (isPermissionFault(error)) throw error;
        return false;
      },
    );
  }

  async get<Schema extends v.GenericSchema>(
    route: string,
    parameters: Parameters,
    schema: Schema,
  ): Promise<v.InferOutput<Schema>> {
    return this.#parse(schema, await this.#send("GET", addressOf(route, parameters)));
  }

  /** The same; `undefined` for the status 404. */
  async tryGet<Schema extends v.GenericSchema>(
    route: string,
    parameters: Parameters,
    schema: Schema,
  ): Promise<v.InferOutput<Schema> | undefined> {
    const answer = await this.#send("GET", addressOf(route, parameters));
    return answer.status === 404 ? undefined : this.#parse(schema, answer);
  }

  /** `waitMs`: how long the daemon may take beyond the usual time. */
  async post<Schema extends v.GenericSchema>(
    route: string,
    body: object,
    schema: Schema,
    waitMs: number,
  ): Promise<v.InferOutput<Schema>> {
    return this.#parse(schema, await this.#send("POST", route, body, TIMEOUT_MS + waitMs));
  }

  #parse<Schema extends v.GenericSchema>(schema: Schema, { status, body }: Answer): v.InferOutput<Schema> {
    const json = parseJson(body);
    const result = v.safeParse(schema, json);
    if (status === 200 && result.success) return result.output;
    const refusal = v.safeParse(ErrorShape, json);
    const where = `the daemon at ${this.#path}`;
    if (status === 401 || status === 403 || status === 404) {
      const why = refusal.success ? refusal.output.error : "it takes no orders";
      throw new Fault("PERMISSION_DENIED", { detail: `${where} refuses: ${why}` });
    }
    const detail = refusal.success ? refusal.output.error : `status ${status}`;
    if (status === 400 || status === 413) throw invalid(`${where} refuses the request: ${detail}`);
    throw new Fault("DAEMON_UNREACHABLE", { detail: `${where}: ${detail}` });
  }

  async #send(method: "GET" | "POST", path: string, body?: object, timeoutMs = TIMEOUT_MS): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const content = body === undefined ? undefined : JSON.stringify(body);
    const signal = AbortSignal.any([this.#context.stop, AbortSignal.timeout(timeoutMs)]);
    const headers = {
      host: "localhost",
      // The socket does not say who opened it: the daemon records this name as claimed.
      "inlet-user": encodeURIComponent(nameOfUser()),
      ...(content === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
    };
    const receive = (response: IncomingMessage) =>
      text(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject);
    request({ socketPath: this.#path, method, path, headers, agent: false, signal }, receive)
      .once("error", reject)
      .end(content);
    return promise.catch((cause: unknown) => {
      if (this.#context.stop.aborted) throw new Fault("STOPPED", { cause });
      throw new Fault("DAEMON_UNREACHABLE", { detail: this.#path, cause });
    });
  }
}

function addressOf(route: string, parameters: Parameters): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return `${route}?${new URLSearchParams(given)}`;
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
