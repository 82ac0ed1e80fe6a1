/** A POST of which only the status of the answer counts. */

import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { trustSystemStore } from "./trust.ts";

export interface PostAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/**
 * Without `fetch`, which limits the wait for an answer to five minutes. Each call has a new connection: the receiver
 * may close an idle one at any moment.
 */
export function postByHttp(
  url: URL,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<PostAnswer> {
  return new Promise((resolve, reject) => {
    const isSecure = url.protocol === "https:";
    if (isSecure) trustSystemStore();
    const request = isSecure ? requestHttps : requestHttp;
    const call = request(url, { method: "POST", headers, agent: false, signal }, (answer) => {
      resolve({ status: answer.statusCode ?? 0, retryAfter: answer.headers["retry-after"] });
      // The rest of the answer is of no interest.
      answer.on("error", () => {}).destroy();
    });
    call.on("error", reject);
    call.end(body);
  });
}
