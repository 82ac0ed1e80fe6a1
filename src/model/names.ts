/**
 * Names for a transfer's files and folders. They work on every common file system and for SMB clients, resemble the
 * original, and no two in one folder are the same.
 */
import { hash } from "node:crypto";
import { composed, foldName, IGNORED, limitMarks } from "../base/fold-name.ts";
import { compareTexts } from "../base/phrases.ts";
import { inTurns } from "../base/timers.ts";
import { PLACEHOLDERS, type Placeholder } from "./mailbox.ts";

/** File systems hold 255 bytes or UTF-16 units. The rest is room for what consumers append, such as `.part`. */
export const MAX_NAME_BYTES = 240;
/** The length of the mark in a name that is not portable, or that several files would get. */
const MARK_DIGITS = 8;

interface NamedFile {
  readonly id: string;
  readonly name: string;
}

/**
 * A name for each file, by id. A portable name stays as it is. If several files would get the same name, or a
 * reserved one, each name gets a mark made from its original. The order of the files does not matter. Ids must differ.
 */
export async function safeNames(
  files: readonly NamedFile[],
  reserved: readonly string[],
): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  /** As the strictest file system compares them. A name that several files claim is given to none of them. */
  const taken = new Set<string>();
  for await (const name of inTurns(reserved)) taken.add(foldName(name));
  let unnamed = files;
  for (const candidateOf of CANDIDATES) {
    const others: (readonly NamedFile[])[] = [];
    for await (const [key, claimants] of inTurns(await groupByName(unnamed, candidateOf))) {
      const [file, rival] = claimants;
      const name = file && candidateOf(file);
      const isFree = rival === undefined && !taken.has(key);
      if (file !== undefined && name !== undefined && isFree) names.set(file.id, name);
      else others.push(claimants);
      taken.add(key);
    }
    unnamed = others.flat();
  }
  const sorted = unnamed.toSorted((a, b) => compareTexts(a.name, b.name) || compareTexts(a.id, b.id));
  for (const file of sorted) names.set(file.id, numberedMark(file, taken));
  return names;
}

async function groupByName(
  files: readonly NamedFile[],
  nameOf: (file: NamedFile) => string | undefined,
): Promise<Map<string, NamedFile[]>> {
  const groups = new Map<string, NamedFile[]>();
  for await (const file of inTurns(files)) {
    const key = foldName(nameOf(file) ?? "");
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [file]);
    else group.push(file);
  }
  return groups;
}

/** For a file with candidates that are all taken: the sender has foreseen its marks. Adds the name to `taken`. */
function numberedMark({ id, name }: NamedFile, taken: Set<string>): string {
  for (let number = 1; ; number++) {
    const numbered = addMark(toPortable(name).text, `${markOf([name, id], MARK_DIGITS)}-${number}`);
    const key = foldName(numbered);
    if (taken.has(key)) continue;
    taken.add(key);
    return numbered;
  }
}

/** One segment of a path: never empty, otherwise named as a file is. */
export function safeSegment(text: string): string {
  if (text === "") return "_";
  const portable = toPortable(text);
  return portable.isOriginal ? portable.text : addMark(portable.text, markOf([text], MARK_DIGITS));
}

/** A name of at most this many bytes: a longer one is cut, and gets a mark. */
export function shortened(name: string, maxBytes: number): string {
  if (Buffer.byteLength(name) <= maxBytes) return name;
  return addMark(name, markOf([name], MARK_DIGITS), maxBytes);
}

/** `report.pdf`, then `report-2.pdf`, `report-3.pdf` … */
export function numberedName(name: string, number: number): string {
  if (number === 1) return name;
  const [extension = ""] = EXTENSION.exec(name) ?? [];
  return `${name.slice(0, name.length - extension.length)}-${number}${extension}`;
}

export interface LayoutValues {
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly transferId: string;
  readonly subject: string;
  /** When the transfer was discovered. The day is that of UTC. */
  readonly discovered: Date;
}

/** A relative path with as many segments as the layout has, whatever the values are. */
export function formatLayout(layout: string, values: LayoutValues): string {
  const segments = layout.split("/").map((segment) => safeSegment(fillIn(segment, values)));
  return segments.join("/");
}

/** A name for a file that is delivered by itself, from a pattern such as `{trackingId}_{name}`. Not safe yet. */
export function formatName(pattern: string, values: LayoutValues, name: string): string {
  // Split first, so that no value can hold the placeholder.
  return pattern
    .split("{name}")
    .map((piece) => fillIn(piece, values))
    .join(name);
}

const PLACEHOLDER = new RegExp(`\\{(${PLACEHOLDERS.join("|")})\\}`, "g");

const VALUE_OF: Readonly<Record<Placeholder, (values: LayoutValues) => string>> = {
  mailbox: ({ mailbox }) => mailbox,
  sender: ({ sender }) => sender,
  senderDomain: ({ sender }) => (/@([^@]*)$/.exec(sender)?.[1] ?? "").toLowerCase(),
  trackingId: ({ trackingId }) => trackingId,
  transferId: ({ transferId }) => transferId,
  subject: ({ subject }) => subject,
  year: ({ discovered }) => String(discovered.getUTCFullYear()).padStart(4, "0"),
  month: ({ discovered }) => String(discovered.getUTCMonth() + 1).padStart(2, "0"),
  day: ({ discovered }) => String(discovered.getUTCDate()).padStart(2, "0"),
};

/** In one pass, so that a value that looks like a placeholder is not filled in. The configuration allows no other braces. */
function fillIn(text: string, values: LayoutValues): string {
  return text.replace(PLACEHOLDER, (_, name: Placeholder) => {
    const value = VALUE_OF[name](values);
    return value.trim() === "" ? "_" : value;
  });
}

/** The names that are tried for a file, in this order. `undefined`: its own name is not portable. */
const CANDIDATES: readonly ((file: NamedFile) => string | undefined)[] = [
  ({ name }) => {
    const { text, isOriginal } = toPortable(name);
    return isOriginal ? text : undefined;
  },
  ({ name }) => addMark(toPortable(name).text, markOf([name], MARK_DIGITS)),
  ({ name, id }) => addMark(toPortable(name).text, markOf([name, id], 16)),
  ({ name, id }) => addMark(toPortable(name).text, markOf([name, id], 40)),
];

/**
 * A text in NFC, of characters that are allowed everywhere. It never begins with a dot, which `*` does not match, nor with a
 * dash, which commands read as an option. Unless it is the original, it may be too long, and needs a mark.
 */
function toPortable(original: string) {
  const limited = limitMarks(original);
  const plain = limited.normalize("NFC");
  const text = replaceForbidden(plain).replace(/^[-.]+/, "_");
  const isOriginal = limited === original && text === plain && Buffer.byteLength(text) <= MAX_NAME_BYTES;
  return { text, isOriginal };
}

/** `report.pdf` with the mark `1a2b3c4d` → `report~1a2b3c4d.pdf`, shortened if it would be too long. */
function addMark(text: string, mark: string, maxBytes: number = MAX_NAME_BYTES): string {
  const [extension = ""] = EXTENSION.exec(text) ?? [];
  const stem = text.slice(0, text.length - extension.length);
  const ending = `~${mark}${extension}`;
  return cutToBytes(stem, maxBytes - Buffer.byteLength(ending)) + ending;
}

/** The first hexadecimal digits of a hash over texts, which may hold any code units. */
function markOf(texts: readonly string[], digits: number): string {
  return hash("sha256", JSON.stringify(texts)).slice(0, digits);
}

/**
 * Control characters, lone surrogates, line separators and noncharacters; the characters that SMB clients substitute
 * for forbidden ones; separators, and characters that Windows forbids.
 */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\uf001-\uf07f/\\<>:"|?*]/gu;

/** Device names of Windows, whatever follows the first dot. */
const DEVICE = /^(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³]|conin\$|conout\$|clock\$) *(?:\.|$)/i;

/** Short, and not the whole name. Both parts of `.tar.gz`, because programs that unpack look for both. */
const EXTENSION = /(?<=.)(?:\.tar)?\.[\p{L}\p{N}]{1,12}$/iu;

function replaceForbidden(plain: string): string {
  const text = composed(plain.replace(IGNORED, ""))
    .replace(FORBIDDEN, "_")
    .replace(/^ +/, "")
    // The look-behind keeps this linear for long runs in the middle.
    .replace(/(?<![. ])[. ]+$/, "");
  return text === "" || DEVICE.test(text) ? `_${text}` : text;
}

function cutToBytes(text: string, maxBytes: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) return text.slice(0, end);
    end += character.length;
  }
  return text;
}
