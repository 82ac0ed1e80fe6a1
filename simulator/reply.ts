/** Answers of the simulated service, before encoding and misbehaviour. */
import type { Chunks } from "./chunks.ts";
import type { ServiceError } from "./errors.ts";

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReplyBody;
}

type ReplyBody =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "bytes"; readonly bytes: Buffer }
  | { readonly kind: "source"; readonly source: Source };

/** A seekable body with the same bytes each time. */
export interface Source {
  readonly etag: string;
  /** Announced if it is known in advance. */
  readonly bytes: number | undefined;
  /** Finds the length, which may take a while. */
  measure(signal: AbortSignal): Promise<number>;
  read(start: number, end: number): Chunks;
}

/** A success in the service's envelope. */
export function dataReply(data: unknown): Reply {
  return jsonReply(200, { data, meta: {} });
}

export function jsonReply(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status, headers, body: { kind: "json", value } };
}

export function textReply(status: number, contentType: string, text: string | Buffer): Reply {
  return {
    status,
    headers: { "Content-Type": contentType },
    body: { kind: "bytes", bytes: Buffer.from(text) },
  };
}

export function errorReply({ status, errorCode, message, headers }: ServiceError): Reply {
  if (errorCode === undefined) return { status, headers, body: { kind: "bytes", bytes: Buffer.alloc(0) } };
  return jsonReply(status, { errorCode, errorMessage: message }, headers);
}

/** ISO 8601 with a numeric offset, as the service writes every date. */
export function formatDate(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19)}+00:00`;
}
