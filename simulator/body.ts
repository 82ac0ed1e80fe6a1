/** Turns a reply into bytes to send: ranges, entity tags, lengths and compression. */
import type { IncomingHttpHeaders } from "node:http";
import { gzipSync } from "node:zlib";
import { acceptsEncoding } from "./accept.ts";
import { type Chunks, gzip } from "./chunks.ts";
import { planRange, type RangeMode, wantsRange } from "./ranges.ts";
import type { Reply, Source } from "./reply.ts";

export interface Outgoing {
  readonly status: number;
  /** Without Content-Length, which comes from `announcedBytes`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly announcedBytes: number | undefined;
  readonly chunks: Chunks;
  /** Whether to close the connection after the chunks, although more bytes were announced. */
  readonly isCutOff: boolean;
}

/** Deviations from the normal behaviour of the service. */
export interface Quirks {
  readonly rangeMode: RangeMode;
  readonly etag: string | undefined;
  readonly forcesGzip: boolean;
}

export async function prepareBody(
  reply: Reply,
  requested: IncomingHttpHeaders,
  quirks: Quirks,
  signal: AbortSignal,
): Promise<Outgoing> {
  const { body } = reply;
  if (body.kind === "source") {
    const outgoing = await prepareSource(reply, body.source, requested, quirks, signal);
    return quirks.forcesGzip ? compress(outgoing) : outgoing;
  }
  const isJson = body.kind === "json";
  const plain = isJson ? Buffer.from(JSON.stringify(body.value)) : body.bytes;
  const isGzipped = quirks.forcesGzip || (isJson && acceptsEncoding(requested["accept-encoding"], "gzip"));
  const bytes = isGzipped ? gzipSync(plain) : plain;
  return {
    status: reply.status,
    headers: {
      ...(isJson ? { "Content-Type": "application/json;charset=utf-8", Vary: "Accept-Encoding" } : {}),
      ...(isGzipped ? { "Content-Encoding": "gzip" } : {}),
      ...reply.headers,
    },
    announcedBytes: bytes.length,
    chunks: [bytes],
    isCutOff: false,
  };
}

async function prepareSource(
  reply: Reply,
  source: Source,
  requested: IncomingHttpHeaders,
  { rangeMode, etag = source.etag }: Quirks,
  signal: AbortSignal,
): Promise<Outgoing> {
  const headers = { ...reply.headers, ETag: etag, "Accept-Ranges": "bytes" };
  if (requested.range !== undefined && wantsRange(requested, etag, rangeMode)) {
    const total = source.bytes ?? (await source.measure(signal));
    const plan = planRange(requested.range, total, rangeMode);
    if (plan === "unsatisfiable") return unsatisfiable(total);
    if (plan !== "whole") {
      const { sent, claimed } = plan;
      return {
        status: 206,
        headers: { ...headers, "Content-Range": `bytes ${claimed.start}-${claimed.end - 1}/${total}` },
        announcedBytes: sent.end - sent.start,
        chunks: source.read(sent.start, sent.end),
        isCutOff: false,
      };
    }
  }
  const chunks = source.read(0, source.bytes ?? Number.POSITIVE_INFINITY);
  return { status: reply.status, headers, announcedBytes: source.bytes, chunks, isCutOff: false };
}

function unsatisfiable(total: number): Outgoing {
  const headers = { "Content-Range": `bytes */${total}` };
  return { status: 416, headers, announcedBytes: 0, chunks: [], isCutOff: false };
}

function compress(outgoing: Outgoing): Outgoing {
  const headers = { ...outgoing.headers, "Content-Encoding": "gzip" };
  return { ...outgoing, headers, announcedBytes: undefined, chunks: gzip(outgoing.chunks) };
}
