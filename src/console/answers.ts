/** Sends HTTP answers. */
import { type ServerResponse, STATUS_CODES } from "node:http";
import { DROPPED_BODY_MS, PIECE_BYTES, RETRY_AFTER_SECONDS } from "../base/bounds.ts";
import { FAULT_CODES, type FaultCode } from "../base/fault-codes.ts";
import { detailOf, type Fault } from "../base/faults.ts";
import { clearTimeout, setTimeout } from "../base/timers.ts";
import type { Problem } from "../model/api.ts";
import { type Callers, inTurn } from "./callers.ts";

/** Every other fault may pass: 503. */
const STATUS_OF: Readonly<Partial<Record<FaultCode, number>>> = {
  REQUEST_INVALID: 400,
  UNAUTHORIZED: 401,
  NOT_ALLOWED: 403,
  NO_SUCH_TRANSFER: 404,
  ORDER_IMPOSSIBLE: 409,
  REQUEST_TOO_LARGE: 413,
  TOKENS_THROTTLED: 429,
  UNEXPECTED: 500,
};

export function statusOf({ code }: Fault): number {
  return STATUS_OF[code] ?? 503;
}

/** Aborts when the client has gone. */
export function whenClosed(response: ServerResponse): AbortSignal {
  if (response.destroyed) return AbortSignal.abort();
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  return closed.signal;
}

/** What a visitor is told. The details of an unexpected error are for the log alone. */
export function explain(fault: Fault): string {
  return (fault.code === "UNEXPECTED" ? "" : detailOf(fault)) || fault.advice;
}

const JSON_TYPE = "application/json; charset=utf-8";

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, JSON_TYPE, `${JSON.stringify(value)}\n`);
}

/**
 * Sends an object with one more key, which holds a list, in pieces. Does not wait for the client, so that the caller can drop
 * the list: its text alone is kept, and `Callers` limits that.
 */
export async function sendList(
  callers: Callers,
  response: ServerResponse,
  others: object,
  key: string,
  list: Iterable<unknown>,
): Promise<void> {
  let text = `${JSON.stringify(others).slice(0, -1)},${JSON.stringify(key)}:[`;
  let isFirst = true;
  const entries = Iterator.from(list);
  const addEntries = () => {
    while (text.length < PIECE_BYTES) {
      const { done, value } = entries.next();
      if (done) return true;
      text += `${isFirst ? "" : ","}${JSON.stringify(value)}`;
      isFirst = false;
    }
    return false;
  };
  const gone = whenClosed(response);
  let isWhole = await inTurn(gone, addEntries);
  if (isWhole) return send(response, 200, JSON_TYPE, `${text}]}\n`);
  response.writeHead(200, { "content-type": JSON_TYPE });
  while (!isWhole && response.req.method !== "HEAD") {
    response.write(text);
    callers.trim();
    text = "";
    isWhole = await inTurn(gone, addEntries);
  }
  response.end(`${text}]}\n`);
}

/** Problem details for programs, plain text for others. */
export function refuse(
  response: ServerResponse,
  status: number,
  detail: string,
  { code, ...more }: Pick<Problem, "results"> & { readonly code?: FaultCode } = {},
): void {
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
  if (status === 429 || status === 503) response.setHeader("retry-after", RETRY_AFTER_SECONDS);
  if (response.req.url?.startsWith("/api/")) {
    const about =
      code === undefined
        ? { type: "about:blank", title: STATUS_CODES[status] ?? "Error" }
        : { type: `docs/faults.md#${code}`, title: FAULT_CODES[code].happened };
    const problem: Problem = { ...about, status, detail, ...(code === undefined ? {} : { code }), ...more };
    send(response, status, "application/problem+json", `${JSON.stringify(problem)}\n`);
  } else send(response, status, "text/plain; charset=utf-8", `${detail}\n`);
}

export function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  const { req } = response;
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
  if (req.method !== "POST" || req.readableEnded) return void response.end(req.method === "HEAD" ? "" : body);
  // The request is answered before its body has arrived. A connection that closes now would lose the answer.
  response.write(body);
  const end = () => response.end();
  const timer = setTimeout(end, DROPPED_BODY_MS);
  req
    .once("close", () => clearTimeout(timer))
    .once("end", end)
    .resume();
}
