/** The directory of a ZIP, matched to the files that the transfer's list announces, before any of them is written. */
import { Entry, getFileNameLowLevel, type ZipFile } from "yauzl";
import { Fault } from "../base/faults.ts";
import { composed } from "../base/fold-name.ts";
import { inTurns } from "../base/timers.ts";
import type { Checksum } from "../model/checksum.ts";

export interface WantedEntry {
  /** As the transfer's list, or the archive's own directory, spells it. */
  readonly originalName: string;
  /** A plain, safe file name inside the folder. */
  readonly name: string;
  readonly bytes: number;
  readonly checksums: readonly Checksum[];
}

export interface MatchOptions {
  /** Allows and skips one entry that was not announced: the service's own list of checksums. */
  readonly allowExtra?: boolean;
  /** Skips entries that are folders. Otherwise the archive is refused. */
  readonly skipsFolders?: boolean;
}

/** A file in an archive of unknown content. */
export interface ListedEntry {
  /** As the archive spells it. */
  readonly path: string;
  readonly bytes: number;
}

export interface MatchedEntry {
  readonly wanted: WantedEntry;
  readonly entry: Entry;
}

export const STORED = 0;
export const DEFLATED = 8;

/**
 * All files of an archive. `onCount` is called with the number of entries after each, and may throw to stop. Throws
 * `ARCHIVE_WRONG` if one is encrypted, special or outside of the archive's own folder.
 */
export async function listDirectory(
  archive: ZipFile,
  onCount: (entries: number) => void,
  signal: AbortSignal,
): Promise<ListedEntry[]> {
  const listed = new Map<string, ListedEntry>();
  for await (const { names, entry } of plainEntries(archive, true, signal, onCount)) {
    const [path] = names;
    refuseOutside(path);
    if (listed.has(path)) throw wrong(`${quoted(path)} is there twice`);
    listed.set(path, { path, bytes: entry.uncompressedSize });
  }
  return [...listed.values()];
}

/** Inlet gives files its own names anyway, but such a path means an attack or a broken program. */
function refuseOutside(path: string): void {
  const isOutside = /^[/\\]|^[A-Za-z]:/.test(path) || path.split(/[/\\]/).includes("..");
  if (isOutside) throw wrong(`${quoted(path)} leads out of its folder`);
}

/** Every wanted file with its entry, in the order of the ZIP. Throws `ARCHIVE_WRONG` or `SIZE_MISMATCH`. */
export async function matchDirectory(
  archive: ZipFile,
  wanted: readonly WantedEntry[],
  { allowExtra = false, skipsFolders = false }: MatchOptions,
  signal: AbortSignal,
): Promise<MatchedEntry[]> {
  const unmatched = new Unmatched(wanted);
  const matched: MatchedEntry[] = [];
  let extras = 0;
  for await (const { names, entry } of plainEntries(archive, skipsFolders, signal)) {
    const match = await unmatched.take(names, entry.uncompressedSize);
    if (match !== undefined) matched.push({ wanted: match, entry });
    else if (++extras > (allowExtra ? 1 : 0)) throw wrong(`${quoted(names[0])} is not in the list`);
  }
  const [missing] = unmatched.left;
  if (missing !== undefined) throw wrong(`${quoted(missing.originalName)} is missing`);
  return matched;
}

/** The files of an archive, each with its name in both decodings. Entries that share bytes are refused at the end. */
async function* plainEntries(
  archive: ZipFile,
  skipsFolders: boolean,
  signal: AbortSignal,
  onCount: (entries: number) => void = () => {},
): AsyncGenerator<{ readonly names: readonly [string, string]; readonly entry: Entry }> {
  const entries: Entry[] = [];
  for await (const found of inTurns(archive.eachEntry())) {
    signal.throwIfAborted();
    onCount(archive.entriesRead);
    const names = decodeName(found);
    if (skipsFolders && isFolder(found, names[0])) continue;
    refuseSpecial(found, names[0]);
    const entry = withoutTexts(found);
    entries.push(entry);
    yield { names, entry };
  }
  refuseOverlaps(entries, archive.fileSize);
}

export function wrong(detail: string, cause?: unknown): Fault {
  return new Fault("ARCHIVE_WRONG", { detail, cause });
}

export function wrongSize(name: string, bytes: number | string, announced: number): Fault {
  const detail = `${quoted(name)} in the ZIP: ${bytes} bytes instead of ${announced}`;
  return new Fault("SIZE_MISMATCH", { detail });
}

/** For messages: shortened, and with control and invisible characters escaped. */
export function quoted(name: string): string {
  const short = name.length > 80 ? `${name.slice(0, 79)}…` : name;
  return JSON.stringify(short).replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** Spellings under which a name is looked for, the strictest first. */
const FORMS: readonly ((name: string) => string)[] = [
  (name) => name,
  composed,
  (name) => composed(name).replaceAll("\\", "/"),
];

/** Finds the wanted file of each entry. Without `bytes` the size is not compared. */
export class Unmatched {
  readonly #wanted: readonly WantedEntry[];
  /** Wanted files that have no entry yet. */
  readonly left: Set<WantedEntry>;
  /** Made when it is needed: most archives need only the first form. */
  readonly #byForm: Map<string, WantedEntry | "several">[] = [];

  constructor(wanted: readonly WantedEntry[]) {
    this.#wanted = wanted;
    this.left = new Set(wanted);
  }

  /** The file that belongs to an entry; `undefined` if no file has its name. */
  async take(names: readonly string[], bytes?: number): Promise<WantedEntry | undefined> {
    for (const [at, form] of FORMS.entries()) {
      this.#byForm[at] ??= await this.#indexBy(form);
      for (const name of names) {
        const file = this.#byForm[at].get(form(name));
        if (file === undefined) continue;
        if (file === "several") throw wrong(`${quoted(name)} stands for several files`);
        if (!this.left.delete(file)) throw wrong(`${quoted(name)} is there twice`);
        if (bytes !== undefined && file.bytes !== bytes) throw wrongSize(name, bytes, file.bytes);
        return file;
      }
    }
    return undefined;
  }

  async #indexBy(form: (name: string) => string): Promise<Map<string, WantedEntry | "several">> {
    const byName = new Map<string, WantedEntry | "several">();
    for await (const file of inTurns(this.#wanted)) {
      const name = form(file.originalName);
      byName.set(name, byName.has(name) ? "several" : file);
    }
    return byName;
  }
}

/** In the encoding that the entry declares, and as UTF-8, which many programs use without declaring it. */
export function decodeName({
  generalPurposeBitFlag,
  fileNameRaw,
  extraFields,
}: Pick<Entry, "generalPurposeBitFlag" | "fileNameRaw" | "extraFields">): readonly [string, string] {
  return [
    getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true),
    fileNameRaw.toString("utf8"),
  ];
}

const FILE_TYPE = { mask: 0o170000, none: 0, plain: 0o100000 };
const DOS_FOLDER = 0x10;

function isFolder({ externalFileAttributes }: Entry, name: string): boolean {
  return name.endsWith("/") || (externalFileAttributes & DOS_FOLDER) !== 0;
}

function refuseSpecial(entry: Entry, name: string): void {
  const type = (entry.externalFileAttributes >>> 16) & FILE_TYPE.mask;
  if (isFolder(entry, name)) throw wrong(`${quoted(name)} is a folder`);
  if (type !== FILE_TYPE.none && type !== FILE_TYPE.plain) throw wrong(`${quoted(name)} is not a plain file`);
  if (entry.isEncrypted()) throw wrong(`${quoted(name)} is encrypted`);
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    throw wrong(`${quoted(name)} is compressed in an unknown way (${entry.compressionMethod})`);
  }
}

/** Names, comments and extra fields of a hostile archive could fill the memory. */
function withoutTexts(entry: Entry): Entry {
  const { relativeOffsetOfLocalHeader, compressionMethod, compressedSize, uncompressedSize, crc32 } = entry;
  const sizes = { relativeOffsetOfLocalHeader, compressionMethod, compressedSize, uncompressedSize, crc32 };
  return Object.assign(new Entry(), sizes);
}

const LOCAL_HEADER_BYTES = 30;

/** Entries that share bytes would let a small archive expand to any size. */
function refuseOverlaps(entries: readonly Entry[], archiveBytes: number): void {
  let end = 0;
  const inOrder = entries.toSorted((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader);
  for (const { relativeOffsetOfLocalHeader: start, compressedSize } of inOrder) {
    if (start < end) throw wrong("its entries overlap");
    end = start + LOCAL_HEADER_BYTES + compressedSize;
  }
  if (end > archiveBytes) throw wrong("it ends before its last entry does");
}
