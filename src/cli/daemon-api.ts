/** Asks a running daemon over the address of its status page. */
import { type IncomingMessage, request } from "node:http";
import type { HttpSettings } from "../config/settings.ts";

const TIMEOUT_MS = 5_000;
/** Many thousands of mailboxes fit into it. */
const MOST_BYTES = 32 * 1024 ** 2;

export interface DaemonAnswer {
  readonly status: number;
  readonly body: string;
}

/** `undefined` where nobody answers, or without an end. Anybody may have the address: nothing in an answer is certain. */
export async function askDaemon(
  http: HttpSettings | undefined,
  path: string,
  signal: AbortSignal,
): Promise<DaemonAnswer | undefined> {
  if (http === undefined) return undefined;
  const { listen } = http;
  const place =
    "path" in listen ? { socketPath: listen.path } : { host: reachable(listen.host), port: listen.port };
  const { promise, resolve, reject } = Promise.withResolvers<DaemonAnswer>();
  const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  // By this name every daemon may be called.
  const headers = { host: "localhost" };
  request({ ...place, path, headers, agent: false, signal: within }, (response) => {
    readText(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  })
    .once("error", reject)
    .end();
  return promise.catch(() => undefined);
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop ends the connection.
    if (bytes > MOST_BYTES) throw new Error("the answer is too long");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

/** What listens on every address is reached by the machine's own. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
