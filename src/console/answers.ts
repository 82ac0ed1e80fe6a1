/** Sends HTTP answers. */
import { type ServerResponse, STATUS_CODES } from "node:http";
import { FAULT_CODES, type FaultCode } from "../base/fault-codes.ts";
import { detailOf, type Fault } from "../base/faults.ts";
import type { Problem } from "../model/api.ts";

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

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(value)}\n`);
}

/** Problem details for programs, plain text for others. */
export function refuse(
  response: ServerResponse,
  status: number,
  detail: string,
  { code, ...more }: Pick<Problem, "results"> & { readonly code?: FaultCode } = {},
): void {
  if (status === 401) response.setHeader("www-authenticate", "Bearer");
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
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
  response.end(response.req.method === "HEAD" ? undefined : body);
}
