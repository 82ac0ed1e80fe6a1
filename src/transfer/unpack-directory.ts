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
  readonly target: string;
  readonly bytes: number;
  readonly checksums: readonly Checksum[];
  /** Called when its bytes are written and verified, with their SHA-256 in hexadecimal digits. */
  onDigest?(sha256: string): void;
}

export interface DirectoryLimits {
  readonly maxEntries: number;
  /** The fault of an archive with more entries; missing: `ARCHIVE_WRONG`. */
  readonly tooMany?: () => Fault;
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

const STORED = 0;
export const DEFLATED = 8;

/** All files of an archive. Throws `ARCHIVE_WRONG` if one is encrypted, special or outside of the archive's own folder. */
export async function listDirectory(
  archive: ZipFile,
  limits: DirectoryLimits,
  signal: AbortSignal,
): Promise<ListedEntry[]> {
  const listed = new Map<string, ListedEntry>();
  const entries: Entry[] = [];
  for await (const found of inTurns(archive.eachEntry())) {
    signal.throwIfAborted();
    demandFew(archive, limits);
    const readings = readName(found);
    if (isFolder(found, readings)) continue;
    refuseSpecial(found, readings);
    const [path] = readings;
    refuseOutside(path);
    if (listed.has(path)) throw wrong(`${quoted(path)} is there twice`);
    listed.set(path, { path, bytes: found.uncompressedSize });
    entries.push(withoutTexts(found));
  }
  refuseOverlaps(entries, archive.fileSize);
  return [...listed.values()];
}

function demandFew({ entriesRead }: ZipFile, { maxEntries, tooMany }: DirectoryLimits): void {
  if (entriesRead > maxEntries) throw tooMany?.() ?? wrong(`it has more than ${maxEntries} entries`);
}

/** Inlet gives files its own names, but an archive with such paths is no honest one. */
function refuseOutside(path: string): void {
  const isOutside = /^[/\\]|^[A-Za-z]:/.test(path) || path.split(/[/\\]/).includes("..");
  if (isOutside) throw wrong(`${quoted(path)} leads out of its folder`);
}

/** Every wanted file with its entry, in the order of the ZIP. Throws `ARCHIVE_WRONG` or `SIZE_MISMATCH`. */
export async function matchDirectory(
  archive: ZipFile,
  wanted: readonly WantedEntry[],
  limits: DirectoryLimits,
  signal: AbortSignal,
): Promise<MatchedEntry[]> {
  const unmatched = await Unmatched.from(wanted);
  const matched: MatchedEntry[] = [];
  let extra: Entry | undefined;
  for await (const found of inTurns(archive.eachEntry())) {
    signal.throwIfAborted();
    const readings = readName(found);
    if (limits.skipsFolders === true && isFolder(found, readings)) continue;
    refuseSpecial(found, readings);
    const entry = withoutTexts(found);
    const match = unmatched.take(readings, entry.uncompressedSize);
    if (match !== undefined) matched.push({ wanted: match, entry });
    else if (limits.allowExtra === true && extra === undefined) extra = entry;
    else throw wrong(`${quoted(readings[0])} is not in the list`);
    demandFew(archive, limits);
  }
  const missing = unmatched.first();
  if (missing !== undefined) throw wrong(`${quoted(missing.originalName)} is missing`);
  const entries = matched.map(({ entry }) => entry);
  refuseOverlaps(extra === undefined ? entries : [...entries, extra], archive.fileSize);
  return matched;
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

/** Wanted files that have no entry yet. */
class Unmatched {
  readonly #left: Set<WantedEntry>;
  readonly #byForm = FORMS.map(() => new Map<string, WantedEntry[]>());
  /** Several files of one name, by size. */
  readonly #bySize = new Map<readonly WantedEntry[], Map<number, WantedEntry[]>>();
  /** Files of one name and size that are known to be interchangeable. */
  readonly #alike = new Set<WantedEntry[]>();

  private constructor(wanted: readonly WantedEntry[]) {
    this.#left = new Set(wanted);
  }

  static async from(wanted: readonly WantedEntry[]): Promise<Unmatched> {
    const unmatched = new Unmatched(wanted);
    // Reversed, so that `pop` takes the first of several files with the same name.
    for await (const file of inTurns(wanted.toReversed())) {
      for (const [at, form] of FORMS.entries()) {
        const namesakes = unmatched.#byForm[at]?.get(form(file.originalName));
        if (namesakes === undefined) unmatched.#byForm[at]?.set(form(file.originalName), [file]);
        else namesakes.push(file);
      }
    }
    return unmatched;
  }

  /** The file that belongs to an entry; `undefined` if no file has its name. */
  take(readings: readonly string[], bytes: number): WantedEntry | undefined {
    for (const [at, form] of FORMS.entries()) {
      for (const reading of readings) {
        const namesakes = this.#byForm[at]?.get(form(reading));
        if (namesakes !== undefined) return this.#takeOne(namesakes, reading, bytes);
      }
    }
    return undefined;
  }

  first(): WantedEntry | undefined {
    const [first] = this.#left;
    return first;
  }

  /** Size distinguishes files of the same name. Files with the same checksums are interchangeable. */
  #takeOne(namesakes: readonly WantedEntry[], name: string, bytes: number): WantedEntry {
    const fitting = this.#sizesOf(namesakes).get(bytes) ?? [];
    let taken = fitting.pop();
    while (taken !== undefined && !this.#left.delete(taken)) taken = fitting.pop();
    if (taken === undefined) {
      const other = namesakes.findLast((file) => this.#left.has(file));
      throw other === undefined
        ? wrong(`${quoted(name)} is there twice`)
        : wrongSize(name, bytes, other.bytes);
    }
    // Compared once: a sender may send a hundred thousand files of one name.
    const isAlike = (file: WantedEntry) => !this.#left.has(file) || haveSameContent(taken, file);
    if (!(this.#alike.has(fitting) || fitting.every(isAlike))) {
      throw wrong(`${quoted(name)} stands for two files that cannot be distinguished`);
    }
    if (fitting.length > 0) this.#alike.add(fitting);
    return taken;
  }

  #sizesOf(namesakes: readonly WantedEntry[]): Map<number, WantedEntry[]> {
    const known = this.#bySize.get(namesakes);
    if (known !== undefined) return known;
    const bySize = Map.groupBy(namesakes, ({ bytes }) => bytes);
    if (namesakes.length > 1) this.#bySize.set(namesakes, bySize);
    return bySize;
  }
}

function haveSameContent(one: WantedEntry, other: WantedEntry): boolean {
  return one.checksums.length > 0 && JSON.stringify(one.checksums) === JSON.stringify(other.checksums);
}

/** In the encoding that the entry declares, and as UTF-8, which many programs use without declaring it. */
function readName(entry: Entry): readonly [string, string] {
  const { generalPurposeBitFlag, fileNameRaw, extraFields } = entry;
  return [
    getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true),
    fileNameRaw.toString("utf8"),
  ];
}

const FILE_TYPE = { mask: 0o170000, none: 0, plain: 0o100000 };
const DOS_FOLDER = 0x10;

function isFolder({ externalFileAttributes }: Entry, [name]: readonly [string, ...string[]]): boolean {
  return name.endsWith("/") || (externalFileAttributes & DOS_FOLDER) !== 0;
}

function refuseSpecial(entry: Entry, [name]: readonly [string, string]): void {
  const type = (entry.externalFileAttributes >>> 16) & FILE_TYPE.mask;
  if (isFolder(entry, [name])) throw wrong(`${quoted(name)} is a folder`);
  if (type !== FILE_TYPE.none && type !== FILE_TYPE.plain) throw wrong(`${quoted(name)} is not a plain file`);
  if (entry.isEncrypted()) throw wrong(`${quoted(name)} is encrypted`);
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    throw wrong(`${quoted(name)} is compressed in an unknown way (${entry.compressionMethod})`);
  }
}

/** Names, comments and extra fields of a hostile archive could fill the memory. */
function withoutTexts(entry: Entry): Entry {
  const { relativeOffsetOfLocalHeader, compressionMethod, compressedSize, uncompressedSize, crc32 } = entry;
  return Object.assign(new Entry(), {
    relativeOffsetOfLocalHeader,
    compressionMethod,
    compressedSize,
    uncompressedSize,
    crc32,
  });
}

const LOCAL_HEADER_BYTES = 30;

/** Entries that share bytes would let a small archive expand to any size. */
function refuseOverlaps(entries: readonly Entry[], archiveBytes: number): void {
  let end = 0;
  for (const { relativeOffsetOfLocalHeader: start, compressedSize } of entries.toSorted(byOffset)) {
    if (start < end) throw wrong("its entries overlap");
    end = start + LOCAL_HEADER_BYTES + compressedSize;
  }
  if (end > archiveBytes) throw wrong("it ends before its last entry does");
}

function byOffset(one: Entry, other: Entry): number {
  return one.relativeOffsetOfLocalHeader - other.relativeOffsetOfLocalHeader;
}
