/**
 * Finds the parts of an EML that may be files of the transfer: their decoded bytes are as many as those of a file. Reads the EML
 * once, and keeps little of it in memory.
 */
import { createHash, type Hash } from "node:crypto";
import { type Sum, sumOf } from "../base/sums.ts";

/** Without these bytes, the EML lacks one part. */
export interface EmlPart {
  readonly start: number;
  readonly end: number;
  readonly sha256: Sum;
}

/** A part whose end is still to come. */
interface OpenPart {
  readonly start: number;
  /** Separates its own parts. Missing if it has none, or they are over. */
  boundary?: string | undefined;
  readonly content?: Content | undefined;
}

/** `isWhole`: of the EML itself, or of an attached message. */
interface OpenHead {
  readonly start: number;
  readonly isWhole: boolean;
}

/** What is longer, deeper or more than that is left as it is. `lines`: those that may separate parts. */
const MAX_HEAD_BYTES = 64 * 1024;
const MAX_LINE_BYTES = 1_000;
const MAX_DEPTH = 20;
const MAX_PARTS = 100_000;
const MAX_LINES = 1_000_000;

const [CARRIAGE_RETURN, LINE_END] = Buffer.from("\r\n");
const SEPARATOR = Buffer.from("\n--");
/** So many bytes may begin a line that separates parts. */
const BEGINNING_BYTES = "\r\n-".length;

export class EmlReader {
  /** An attached message comes after its own parts. */
  readonly found: EmlPart[] = [];
  readonly #sizes: ReadonlySet<number>;
  readonly #open: OpenPart[] = [];
  #parts = 0;
  #lines = 0;
  /** Missing while content is read. */
  #head: OpenHead | undefined = { start: 0, isWhole: true };
  /** The last bytes. Those before `#readTo` are here only because a separator may begin with them. */
  #rest: Buffer = Buffer.alloc(0);
  /** The position of the first of them. */
  #restAt = 0;
  #readTo = 0;

  /** `sizes`: of the files. */
  constructor(sizes: ReadonlySet<number>) {
    this.#sizes = sizes;
  }

  push(chunk: Uint8Array): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#head === undefined ? this.#findSeparator() : this.#findHeadEnd(this.#head));
  }

  end(): void {
    this.#read(this.#rest.length);
    this.#close(0);
  }

  /** As `#findSeparator`: false if more bytes are needed. */
  #findHeadEnd(head: OpenHead): boolean {
    const rest = this.#rest;
    for (let at = 0, end = 0; end >= 0 && at < MAX_HEAD_BYTES; at = end + 1) {
      end = rest.indexOf(LINE_END as number, at);
      const line = end < 0 ? undefined : rest.toString("latin1", at, end).trimEnd();
      if (line === "") return this.#openPart(head, rest.toString("latin1", 0, at), end);
      if (line?.startsWith("--") && this.#separate(line, at, end)) return true;
    }
    return rest.length >= MAX_HEAD_BYTES && this.#openPart(head, "", 0);
  }

  #findSeparator(): boolean {
    const rest = this.#rest;
    let at = rest.indexOf(SEPARATOR);
    for (; at >= 0; at = rest.indexOf(SEPARATOR, at + 1)) {
      const end = rest.indexOf(LINE_END as number, at + 1);
      if (end < 0 && rest.length - at < MAX_LINE_BYTES) break;
      if (end < 0 || end - at > MAX_LINE_BYTES) continue;
      const before = rest[at - 1] === CARRIAGE_RETURN ? at - 1 : at;
      if (this.#separate(rest.toString("latin1", at + 1, end).trimEnd(), before, end)) return true;
    }
    this.#drop(Math.max(0, at < 0 ? rest.length - BEGINNING_BYTES : at - 1));
    return false;
  }

  /** Whether the line, with the line end before it, separates parts. `end`: of the line. */
  #separate(line: string, before: number, end: number): boolean {
    if (this.#parts > MAX_PARTS || ++this.#lines > MAX_LINES) return false;
    const of = ({ boundary = "\n" }) => line === `--${boundary}` || line === `--${boundary}--`;
    const at = this.#open.findLastIndex(of);
    const part = this.#open[at];
    if (part === undefined) return false;
    this.#read(before);
    this.#close(at + 1);
    const isLast = line !== `--${part.boundary}`;
    if (isLast) part.boundary = undefined;
    this.#head = isLast ? undefined : { start: this.#readTo, isWhole: false };
    this.#drop(isLast ? end : end + 1);
    return true;
  }

  /** `end`: of the line that ends the head. It may also be the line end before a separator. */
  #openPart({ start, isWhole }: OpenHead, text: string, end: number): true {
    this.#parts++;
    const head = parseHead(text);
    this.#read(end + 1);
    const isDeep = this.#open.length >= MAX_DEPTH;
    const boundary = isDeep ? undefined : head.boundary;
    const isNone = this.#sizes.size === 0 || isWhole || head.isText || boundary !== undefined;
    this.#open.push({ start, boundary, content: isNone ? undefined : new Content(head.encoding) });
    const isMessage = head.isMessage && !isDeep;
    this.#head = isMessage ? { start: this.#readTo, isWhole: true } : undefined;
    this.#drop(isMessage ? end + 1 : end);
    return true;
  }

  #read(end: number): void {
    const bytes = this.#rest.subarray(this.#readTo - this.#restAt, end);
    for (const { content } of this.#open) content?.push(bytes);
    this.#readTo = Math.max(this.#readTo, this.#restAt + end);
  }

  #drop(count: number): void {
    this.#read(count);
    this.#rest = this.#rest.subarray(count);
    this.#restAt += count;
  }

  /** Ends the open parts from this one on. */
  #close(from: number): void {
    for (const { start, content } of this.#open.splice(from).reverse()) {
      if (content !== undefined && this.#sizes.has(content.end()))
        this.found.push({ start, end: this.#readTo, sha256: content.sum() });
    }
  }
}

function parseHead(text: string) {
  const lines = text.replace(/\r?\n[ \t]+/g, " ");
  const field = (name: string) => new RegExp(`^${name}:(.*)`, "im").exec(lines)?.[1]?.trim() ?? "";
  const [type, disposition] = [field("content-type"), field("content-disposition")];
  const [, quoted, plain] = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))/i.exec(type) ?? [];
  const encoding = field("content-transfer-encoding").toLowerCase();
  const isAttached = /^attachment|\bname[*\d]*\s*=/i.test(
    `${disposition};${type}`.replace(/filename/gi, "name"),
  );
  return {
    encoding,
    // Without one of its parts, a signed message is no longer what was signed.
    boundary: /^multipart\/(?!signed)/i.test(type) ? (quoted ?? plain) : undefined,
    isMessage: /^message\/rfc822/i.test(type) && decoderOf(encoding) === undefined,
    /** It is read as part of the message. */
    isText: /^(text\/|$)/i.test(type) && !isAttached,
  };
}

/** The decoded bytes of a part. */
class Content {
  #bytes = 0;
  #hash: Hash | undefined;
  readonly #decode: Decode | undefined;
  /** Encoded bytes that cannot be decoded alone. */
  #rest = "";

  constructor(encoding: string) {
    this.#decode = decoderOf(encoding);
  }

  push(bytes: Buffer): void {
    const coded = this.#decode?.(this.#rest + bytes.toString("latin1"));
    this.#rest = coded?.rest ?? "";
    this.#take(coded?.decoded ?? bytes);
  }

  /** Returns how many there are. */
  end(): number {
    this.#take(Buffer.from(this.#rest, this.#decode === decodeBase64 ? "base64" : "latin1"));
    return this.#bytes;
  }

  sum(): Sum {
    return sumOf(this.#hash ?? createHash("sha256"));
  }

  #take(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    // Parts may be many, and empty.
    this.#hash ??= createHash("sha256");
    this.#hash.update(bytes);
    this.#bytes += bytes.byteLength;
  }
}

type Decode = (text: string) => { readonly decoded: Buffer; readonly rest: string };

function decoderOf(encoding: string): Decode | undefined {
  return encoding === "base64" ? decodeBase64 : encoding === "quoted-printable" ? decodeQuoted : undefined;
}

function decodeBase64(text: string) {
  const digits = text.replace(/[^A-Za-z0-9+/]+/g, "");
  const end = digits.length - (digits.length % 4);
  return { decoded: Buffer.from(digits.slice(0, end), "base64"), rest: digits.slice(end) };
}

function decodeQuoted(text: string) {
  const last = text.lastIndexOf("=");
  const end = last >= 0 && last > text.length - 3 ? last : text.length;
  const decode = (_: string, digits?: string) =>
    digits === undefined ? "" : String.fromCharCode(Number.parseInt(digits, 16));
  const decoded = text.slice(0, end).replace(/=(?:\r?\n|([0-9a-f]{2}))/gi, decode);
  return { decoded: Buffer.from(decoded, "latin1"), rest: text.slice(end) };
}
