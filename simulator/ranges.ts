/** Range requests: the requested bytes and the bytes to send. */
import type { IncomingHttpHeaders } from "node:http";

export type RangeMode = "honour" | "ignore" | "refuse" | "elsewhere" | "lie";

interface ByteRange {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** The answer to a Range header: the whole body, a refusal, or the bytes of `sent` with `claimed` in Content-Range. */
export type RangePlan = "whole" | "unsatisfiable" | { readonly sent: ByteRange; readonly claimed: ByteRange };

/** Whether the Range header applies; If-Range with another entity tag cancels it. */
export function wantsRange(headers: IncomingHttpHeaders, etag: string, mode: RangeMode): boolean {
  if (headers.range === undefined || mode === "ignore") return false;
  const condition = headers["if-range"];
  return condition === undefined || condition === etag;
}

export function planRange(header: string, total: number, mode: RangeMode): RangePlan {
  const asked = parseRange(header, total);
  if (asked === undefined) return "whole";
  if (asked === "unsatisfiable" || mode === "refuse") return "unsatisfiable";
  if (mode === "elsewhere") return { sent: moved(asked, total), claimed: moved(asked, total) };
  if (mode === "lie") return { sent: moved(asked, total), claimed: asked };
  return { sent: asked, claimed: asked };
}

/** `undefined` for an invalid header or several ranges, which are ignored. */
function parseRange(header: string, total: number): ByteRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header.trim()) ?? [];
  if (first === "" && last === "") return undefined;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const range =
    first === ""
      ? { start: Math.max(total - Number(last), 0), end: total }
      : { start: Number(first), end: last === "" ? total : Math.min(Number(last) + 1, total) };
  return range.start < range.end ? range : "unsatisfiable";
}

/** Another range, of the same length if possible: at the start, else shifted or shortened by one byte. */
function moved({ start, end }: ByteRange, total: number): ByteRange {
  if (start > 0) return { start: 0, end: end - start };
  return end < total ? { start: 1, end: end + 1 } : { start: Math.min(1, end - 1), end };
}
