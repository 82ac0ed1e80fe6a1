/** Reading the bodies of answers without trusting their size, encoding or form. */
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { giveBack } from "../base/blocks.ts";
import { Fault } from "../base/faults.ts";
import type { Answer } from "./receiving.ts";

const MOST_JSON_BYTES = 16 * 1024 * 1024;

/** A JSON answer that is taken apart where somebody wants to know more of it than its text. */
export interface JsonText {
  readonly text: string;
  readonly status: number;
  /** `undefined` where it is empty. */
  parse(): unknown;
}

export async function readJson(answer: Answer, what: string): Promise<JsonText> {
  const text = await readText(answer, MOST_JSON_BYTES, what);
  return { text, status: answer.statusCode, parse: () => parseJson(text, answer.statusCode, what) };
}

function parseJson(text: string, status: number, what: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    const instead = text.trimStart().startsWith("<") ? "a page for people" : "incomplete or foreign text";
    throw new Fault("BAD_ANSWER", { detail: `${what}: ${instead} instead of JSON`, status });
  }
}

/** UTF-8 text that is no longer than that, neither packed nor unpacked. */
export async function readText(answer: Answer, mostBytes: number, what: string): Promise<string> {
  const raw = await readAtMost(answer.body, mostBytes);
  if (raw === undefined) throw new Fault("ANSWER_TOO_LARGE", { detail: what });
  return (await unzip(raw, encodingOf(answer), mostBytes, what)).toString();
}

/** `undefined` where there is more than that; the rest is not read. */
export async function readAtMost(
  body: AsyncIterable<Uint8Array>,
  mostBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > mostBytes) return undefined;
    chunks.push(chunk);
  }
  const whole = Buffer.concat(chunks);
  for (const chunk of chunks) giveBack(chunk);
  return whole;
}

export function headerOf(answer: Answer, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** In small letters; `identity` where nothing is said. */
export function encodingOf(answer: Answer): string {
  return headerOf(answer, "content-encoding")?.trim().toLowerCase() || "identity";
}

async function unzip(raw: Buffer, encoding: string, mostBytes: number, what: string): Promise<Buffer> {
  if (encoding === "identity") return raw;
  if (encoding !== "gzip") throw unknownEncoding(encoding, what);
  try {
    return await promisify(gunzip)(raw, { maxOutputLength: mostBytes });
  } catch (cause) {
    if (cause instanceof RangeError) throw new Fault("ANSWER_TOO_LARGE", { detail: what, cause });
    throw new Fault("BAD_ANSWER", { detail: `${what}: the gzip is broken`, cause });
  }
}

export function unknownEncoding(encoding: string, what: string): Fault {
  return new Fault("BAD_ANSWER", { detail: `${what}: encoded as ${JSON.stringify(encoding.slice(0, 40))}` });
}
