/** Asks a running daemon over the address of its status page. */
import { request } from "node:http";
import { text } from "node:stream/consumers";
import type { HttpSettings } from "../config/settings.ts";

const TIMEOUT_MS = 5_000;

export interface DaemonAnswer {
  readonly status: number;
  readonly body: string;
}

/** `undefined` where nobody answers. */
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
    text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  })
    .once("error", reject)
    .end();
  return promise.catch(() => undefined);
}

/** What listens on every address is reached by the machine's own. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
