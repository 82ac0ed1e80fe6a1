/** The real machine's POST. Only the status of the answer counts. */
import type { ConnectionOptions } from "./connection.ts";

export interface Post extends Pick<ConnectionOptions, "proxy" | "ca" | "timeoutMs"> {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Each call has a new connection: the receiver may close an idle one at any moment. */
export async function postByHttp({ url, headers, body, ...options }: Post, signal: AbortSignal) {
  // Loaded only here: most commands call no webhook.
  const { openConnections } = await import("./connection.ts");
  const connections = openConnections({ ...options, cert: undefined, key: undefined }, url);
  try {
    const path = url.pathname + url.search;
    const request = { origin: url.origin, path, method: "POST", headers, body, signal } as const;
    const answer = await connections.request(request);
    // The rest of the answer is of no interest.
    answer.body.on("error", () => {});
    const { "retry-after": retryAfter } = answer.headers;
    return { status: answer.statusCode, retryAfter: [retryAfter].flat()[0] };
  } finally {
    await connections.destroy();
  }
}
