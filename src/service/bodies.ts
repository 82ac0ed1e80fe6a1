/** Reads the bodies of answers without trusting their size, encoding or form. */
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { Fault } from "../base/faults.ts";
import { foreignAnswer, kindOfAnswer } from "./answers.ts";
import type { Answer } from "./receiving.ts";

/**
 * Limits of a JSON answer, decompressed. `values` are objects, arrays and their entries. They are counted before the text is
 * parsed, because a value of two bytes can take a hundred bytes of memory.
 */
const LIMITS = {
  small: { bytes: 1024 * 1024, values: 20_000 },
  /** A page of a list: up to a hundred transfers, each with its recipients. */
  page: { bytes: 4 * 1024 * 1024, values: 100_000 },
} as const;

export type AnswerSize = keyof typeof LIMITS;

/** A success without a body instead of JSON. A proxy may have sent it, so it is no verdict on a password. */
export class EmptyAnswer extends Fault {
  /** Status 204: the service itself ends a list with it. */
  readonly isNoContent: boolean;

  constructor({ statusCode }: Answer, what: string) {
    super("BAD_ANSWER", { detail: `${what}: an empty answer`, answeredBy: "intermediary" });
    this.isNoContent = kindOfAnswer(statusCode) === "nothing";
  }
}

/** Throws `ANSWER_TOO_LARGE` before anything is parsed, and `EmptyAnswer`. */
export async function readJson(answer: Answer, what: string, size: AnswerSize = "small"): Promise<unknown> {
  const { bytes, values } = LIMITS[size];
  const raw = await readUnzipped(answer, bytes, what);
  if (hasMoreValues(raw, values)) throw foreignAnswer("ANSWER_TOO_LARGE", `${what}: too many values`);
  const text = raw.toString();
  if (text.trim() === "") throw new EmptyAnswer(answer, what);
  return parseJson(text, what);
}

const [QUOTE, BACKSLASH, COMMA, OPEN_ARRAY, OPEN_OBJECT] = Buffer.from('"\\,[{');

function hasMoreValues(json: Uint8Array, max: number): boolean {
  let values = 0;
  let isInString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    // The next character is escaped.
    if (byte === BACKSLASH) at++;
    else if (byte === QUOTE) isInString = !isInString;
    else if (!isInString && (byte === COMMA || byte === OPEN_ARRAY || byte === OPEN_OBJECT)) values++;
    if (values > max) return true;
  }
  return false;
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    const instead = text.trimStart().startsWith("<") ? "an HTML page" : "incomplete or foreign text";
    throw foreignAnswer("BAD_ANSWER", `${what}: ${instead} instead of JSON`);
  }
}

/** Throws `ANSWER_TOO_LARGE` if the decompressed body is longer than `maxBytes`. */
export async function readText(answer: Answer, maxBytes: number, what: string): Promise<string> {
  return (await readUnzipped(answer, maxBytes, what)).toString();
}

async function readUnzipped(answer: Answer, maxBytes: number, what: string): Promise<Buffer> {
  const body = await readAtMost(unzipped(answer, what), maxBytes);
  if (body === undefined) throw foreignAnswer("ANSWER_TOO_LARGE", what);
  return body;
}

/** `undefined` if the body is longer; the rest is not read. */
export async function readAtMost(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function headerOf(answer: Answer, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** In lower case; `identity` without the header. */
export function encodingOf(answer: Answer): string {
  return headerOf(answer, "content-encoding")?.trim().toLowerCase() || "identity";
}

/** The body of any length. Cancels it, and throws `BAD_ANSWER`, if its encoding is not known. */
export function unzipped(answer: Answer, what: string): AsyncIterable<Uint8Array> {
  const encoding = encodingOf(answer);
  if (encoding === "identity") return answer.body;
  // The reader of the result gets the failure.
  if (encoding === "gzip") return pipeline(answer.body, createGunzip(), () => {});
  answer.body.cancel();
  throw unknownEncoding(encoding, what);
}

export function unknownEncoding(encoding: string, what: string): Fault {
  return foreignAnswer("BAD_ANSWER", `${what}: encoded as ${JSON.stringify(encoding.slice(0, 40))}`);
}
