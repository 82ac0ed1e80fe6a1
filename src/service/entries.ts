/**
 * Long JSON lists, parsed while they arrive: of `{ "data": [ … ] }` one entry at a time is in memory. The file list of a
 * large transfer has tens of megabytes, mostly links that are not needed.
 */
import { foreignAnswer } from "./answers.ts";
import { unzipped } from "./bodies.ts";
import type { Answer } from "./receiving.ts";

/** Enough for 100,000 files, the default of `limits.maxFiles`, with 500 bytes each. */
const MAX_BYTES = 48 * 1024 * 1024;
const MAX_ENTRIES = 200_000;
const MAX_ENTRY_BYTES = 64 * 1024;

const [QUOTE, BACKSLASH, COMMA, OPEN_ARRAY, OPEN_OBJECT, CLOSE_ARRAY, CLOSE_OBJECT] = Buffer.from('"\\,[{]}');

/** Calls `take` with each entry as soon as it is complete. Throws `BAD_ANSWER` if the list is missing or incomplete. */
export async function readEntries(
  answer: Answer,
  what: string,
  take: (entry: unknown) => void,
): Promise<void> {
  try {
    const cutter = new EntryCutter(what, take);
    let bytes = 0;
    for await (const chunk of unzipped(answer, what)) {
      bytes += chunk.byteLength;
      if (bytes > MAX_BYTES) throw foreignAnswer("ANSWER_TOO_LARGE", what);
      cutter.add(chunk);
    }
    cutter.end();
  } finally {
    answer.body.cancel();
  }
}

/** Counts brackets. Depth 1 holds the keys of the envelope, depth 2 the entries of `data`. */
class EntryCutter {
  readonly #what: string;
  readonly #take: (entry: unknown) => void;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #isInData = false;
  #hasData = false;
  #entries = 0;
  /** Parts of the current key or entry in earlier chunks. */
  #parts: Uint8Array[] = [];
  #partsBytes = 0;

  constructor(what: string, take: (entry: unknown) => void) {
    this.#what = what;
    this.#take = take;
  }

  add(chunk: Uint8Array): void {
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      if (this.#followString(byte) || !this.#followBrackets(byte)) continue;
      this.#endPart(this.#takePart(chunk, from, at), byte);
      from = at + 1;
    }
    this.#keep(chunk.slice(from));
  }

  end(): void {
    if (this.#hasData && this.#depth === 0) return;
    throw foreignAnswer("BAD_ANSWER", `${this.#what}: the list in data is missing or incomplete`);
  }

  /** True if the byte belongs to a string. */
  #followString(byte: number | undefined): boolean {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isInString = !this.#isInString;
    else return this.#isInString;
    return true;
  }

  /** True if a key of the envelope or an entry of the list ends here. */
  #followBrackets(byte: number | undefined): boolean {
    if (byte === COMMA) return this.#depth <= 2;
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) return ++this.#depth <= 2;
    return (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) && --this.#depth === 1;
  }

  /** `byte`: the comma or bracket after the text, which is an entry, or a key if the bracket opens its value. */
  #endPart(text: string, byte: number | undefined): void {
    if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      this.#isInData = this.#depth === 2 && byte === OPEN_ARRAY && /^\s*"data"\s*:\s*$/.test(text);
      this.#hasData ||= this.#isInData;
      return;
    }
    const isEmptyList = byte !== COMMA && this.#entries === 0 && text.trim() === "";
    if (this.#isInData && !isEmptyList) this.#pass(text);
    if (byte !== COMMA) this.#isInData = false;
  }

  #keep(part: Uint8Array): void {
    this.#partsBytes += part.byteLength;
    this.#parts.push(part);
    if (this.#partsBytes <= MAX_ENTRY_BYTES) return;
    if (this.#isInData) throw foreignAnswer("ANSWER_TOO_LARGE", `${this.#what}: one entry`);
    // Outside `data` nothing is needed.
    this.#dropParts();
  }

  #dropParts(): void {
    this.#parts = [];
    this.#partsBytes = 0;
  }

  #takePart(chunk: Uint8Array, from: number, to: number): string {
    this.#keep(chunk.subarray(from, to));
    const text = Buffer.concat(this.#parts).toString();
    this.#dropParts();
    return text;
  }

  #pass(text: string): void {
    this.#entries += 1;
    if (this.#entries > MAX_ENTRIES) {
      throw foreignAnswer("ANSWER_TOO_LARGE", `${this.#what}: more than ${MAX_ENTRIES} entries`);
    }
    this.#take(this.#parse(text));
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw foreignAnswer("BAD_ANSWER", `${this.#what}: entry ${this.#entries} is not JSON`);
    }
  }
}
