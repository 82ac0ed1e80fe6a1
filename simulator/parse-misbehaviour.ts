/** The schema of a misbehaviour. */
import * as v from "valibot";
import { atLeastOne, count, secondsFromNow, shape, text } from "./parse-shape.ts";

const status = v.pipe(v.number(), v.integer(), v.minValue(200), v.maxValue(599));

export const misbehaviour = v.variant("kind", [
  shape({ kind: v.literal("reset"), afterBytes: v.exactOptional(count) }),
  shape({
    kind: v.literal("stall"),
    afterBytes: v.exactOptional(count),
    seconds: v.exactOptional(secondsFromNow),
  }),
  shape({ kind: v.literal("drip"), bytes: atLeastOne, pauseMs: v.pipe(v.number(), v.minValue(0)) }),
  shape({ kind: v.literal("truncate"), afterBytes: count, announce: v.exactOptional(v.boolean()) }),
  shape({ kind: v.literal("lengthen"), bytes: count }),
  shape({ kind: v.literal("corrupt"), at: v.exactOptional(count) }),
  shape({
    kind: v.literal("error"),
    status,
    errorCode: v.exactOptional(v.pipe(v.number(), v.integer())),
    errorMessage: v.exactOptional(v.string()),
    retryAfter: v.exactOptional(v.pipe(v.string(), v.regex(/^[\x20-\x7e]+$/))),
  }),
  shape({
    kind: v.picklist(["html", "empty"]),
    status: v.exactOptional(status),
    late: v.exactOptional(v.boolean()),
  }),
  shape({
    kind: v.literal("body"),
    repeat: v.exactOptional(count),
    text: v.string(),
    contentType: v.exactOptional(v.pipe(v.string(), v.regex(/^[\x20-\x7e]+$/))),
    status: v.exactOptional(status),
  }),
  shape({ kind: v.literal("alter"), path: v.string(), value: v.exactOptional(v.unknown()) }),
  shape({
    kind: v.literal("redirect"),
    to: v.pipe(v.string(), v.regex(/^[\x21-\x7e]+$/, "must be a URL without spaces")),
    status: v.exactOptional(v.picklist([301, 302, 303, 307, 308])),
  }),
  shape({
    kind: v.literal("range"),
    mode: v.picklist(["honour", "ignore", "refuse", "elsewhere", "lie"]),
  }),
  shape({ kind: v.literal("omit"), headers: v.array(text) }),
  shape({ kind: v.literal("change-etag") }),
  shape({ kind: v.literal("shift"), by: v.pipe(v.number(), v.safeInteger()) }),
  shape({ kind: v.literal("repeat"), entries: count }),
  shape({ kind: v.literal("endless") }),
  shape({ kind: v.literal("encoding"), encoding: v.picklist(["gzip", "br"]) }),
]);
