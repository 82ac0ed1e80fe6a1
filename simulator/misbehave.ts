/** Applies misbehaviours to an answer, its bytes and the connection. */
import type { Outgoing, Quirks } from "./body.ts";
import { append, drip, flipBitAt, interruptAt } from "./chunks.ts";
import { literalContent } from "./content.ts";
import { meaningOfStatus } from "./errors.ts";
import type { Strike } from "./faults.ts";
import { jsonReply, type Reply, textReply } from "./reply.ts";
import type { Misbehaviour } from "./scenario.ts";
import type { Wire } from "./wire.ts";

/** Whether the answer comes from something in front of the service. */
export function isIntercepted(strikes: readonly Strike[]): boolean {
  return strikes.some(
    ({ does }) =>
      does.kind === "error" ||
      does.kind === "redirect" ||
      ((does.kind === "html" || does.kind === "empty") && does.late !== true),
  );
}

/** Changes the content of the answer. */
export function alterReply(reply: Reply, does: Misbehaviour): Reply {
  switch (does.kind) {
    case "error":
      return errorOf(does);
    case "html":
      return textReply(does.status ?? 200, "text/html; charset=utf-8", HTML_PAGE);
    case "empty":
      return textReply(does.status ?? 204, "text/plain", "");
    case "redirect":
      return { ...textReply(does.status ?? 302, "text/plain", ""), headers: { Location: does.to } };
    case "body":
      return textReply(
        does.status ?? reply.status,
        does.contentType ?? "application/json",
        does.text.repeat(does.repeat ?? 1),
      );
    case "alter":
      if (reply.body.kind !== "json") return reply;
      return { ...reply, body: { kind: "json", value: alterValue(reply.body.value, does) } };
    default:
      return reply;
  }
}

/** Changes the encoding of the answer. */
export function quirksOf(strikes: readonly Strike[]): Quirks {
  const kinds = strikes.map(({ does }) => does);
  const changed = strikes.findLast(({ does }) => does.kind === "change-etag");
  return {
    rangeMode: kinds.findLast((does) => does.kind === "range")?.mode ?? "honour",
    etag: changed === undefined ? undefined : `"changed-${changed.id}-${changed.count}"`,
    forcesGzip: kinds.some((does) => does.kind === "encoding" && does.encoding === "gzip"),
  };
}

/** Changes the bytes of the answer and their timing. */
export function alterOutgoing(outgoing: Outgoing, does: Misbehaviour, wire: Wire): Outgoing {
  const { chunks, announcedBytes } = outgoing;
  switch (does.kind) {
    case "omit":
      return omitHeaders(outgoing, does.headers);
    case "encoding":
      // The body is compressed already: see `quirksOf`.
      if (does.encoding === "gzip") return outgoing;
      return { ...outgoing, headers: { ...outgoing.headers, "Content-Encoding": does.encoding } };
    case "truncate":
      return truncate(outgoing, does.afterBytes, does.announce ?? false);
    case "lengthen":
      return {
        ...outgoing,
        announcedBytes: announcedBytes === undefined ? undefined : announcedBytes + does.bytes,
        chunks: append(chunks, literalContent(Buffer.alloc(does.bytes, "?"), false).read(0, does.bytes)),
      };
    case "corrupt":
      return { ...outgoing, chunks: flipBitAt(chunks, does.at ?? 0) };
    case "drip":
      return { ...outgoing, chunks: drip(chunks, does.bytes, () => wire.pause(does.pauseMs)) };
    case "stall":
    case "reset":
      if (does.afterBytes === undefined) return outgoing;
      return {
        ...outgoing,
        chunks: interruptAt(chunks, does.afterBytes, () => strikeConnection(does, wire)),
      };
    default:
      return outgoing;
  }
}

/** Faults of the connection before the answer; `stop` if no answer follows. */
export async function beforeAnswer(strikes: readonly Strike[], wire: Wire): Promise<"continue" | "stop"> {
  for (const { does } of strikes) {
    if ((does.kind !== "stall" && does.kind !== "reset") || does.afterBytes !== undefined) continue;
    if ((await strikeConnection(does, wire)) === "stop") return "stop";
  }
  return "continue";
}

const HTML_PAGE = `<!doctype html>
<html><head><title>Sign in</title></head>
<body><h1>Please sign in</h1><p>Your network requires you to sign in.</p></body></html>
`;

async function strikeConnection(
  does: Extract<Misbehaviour, { kind: "stall" | "reset" }>,
  wire: Wire,
): Promise<"continue" | "stop"> {
  if (does.kind === "reset") {
    await wire.reset();
    return "stop";
  }
  await wire.pause(does.seconds === undefined ? undefined : does.seconds * 1000);
  return "continue";
}

function errorOf(does: Extract<Misbehaviour, { kind: "error" }>): Reply {
  const fallback = meaningOfStatus(does.status);
  const { errorCode = fallback.errorCode, errorMessage = fallback.text } = does;
  const headers: Record<string, string> =
    does.retryAfter === undefined ? {} : { "Retry-After": does.retryAfter };
  return jsonReply(does.status, { errorCode, errorMessage }, headers);
}

function omitHeaders(outgoing: Outgoing, names: readonly string[]): Outgoing {
  const omitted = new Set(names.map((name) => name.toLowerCase()));
  const kept = Object.entries(outgoing.headers).filter(([name]) => !omitted.has(name.toLowerCase()));
  return {
    ...outgoing,
    headers: Object.fromEntries(kept),
    announcedBytes: omitted.has("content-length") ? undefined : outgoing.announcedBytes,
  };
}

function truncate(outgoing: Outgoing, afterBytes: number, isAnnounced: boolean): Outgoing {
  const { announcedBytes } = outgoing;
  const chunks = interruptAt(outgoing.chunks, afterBytes, () => Promise.resolve("stop"));
  if (isAnnounced) return { ...outgoing, chunks, isCutOff: true };
  const bytes = announcedBytes === undefined ? undefined : Math.min(announcedBytes, afterBytes);
  return { ...outgoing, chunks, announcedBytes: bytes };
}

/** A copy of a JSON value in which the value at a path is changed or removed; an equal copy if the path does not exist. */
function alterValue(value: unknown, does: Extract<Misbehaviour, { kind: "alter" }>): unknown {
  if (does.path === "") return does.value ?? null;
  const copy: unknown = structuredClone(value);
  const steps = does.path.split(".");
  const last = steps.pop() ?? "";
  let place: unknown = copy;
  for (const step of steps) place = isObject(place) && Object.hasOwn(place, step) ? place[step] : undefined;
  if (!isObject(place)) return copy;
  if (Object.hasOwn(does, "value")) place[last] = does.value;
  else if (Array.isArray(place)) place.splice(Number(last), 1);
  else delete place[last];
  return copy;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
