/** Writes ZIP archives field by field, so that every field can be wrong. */
import { crc32, deflateRawSync } from "node:zlib";

/** Header fields that describe the content of an entry. */
interface EntryFields {
  readonly name?: string | Buffer;
  readonly flags?: number;
  readonly method?: number;
  readonly crc?: number;
  readonly compressedBytes?: number;
  readonly bytes?: number;
}

export interface ZipEntry extends EntryFields {
  readonly name: string | Buffer;
  readonly content?: Buffer | string;
  /** Replaces the stored or deflated content. */
  readonly data?: Buffer;
  /** Fields of the local header that differ from the directory's. */
  readonly local?: EntryFields;
  /** The higher half is the Unix mode. */
  readonly attributes?: number;
  readonly extra?: Buffer;
  /** The entry's offset in the directory. */
  readonly offset?: number | bigint;
  /** Sizes and offset in 64 bits; a number replaces both sizes. */
  readonly zip64?: boolean | bigint;
  /** Sizes and checksum after the content, not before it. */
  readonly descriptor?: boolean;
  /** Content without a directory entry, or a directory entry without content. */
  readonly only?: "bytes" | "directory";
}

export interface ZipWhole {
  readonly comment?: Buffer;
  /** Before the archive, not counted in any offset. */
  readonly prefix?: Buffer;
  readonly suffix?: Buffer;
  /** Added to all offsets, for an archive that follows other bytes. */
  readonly base?: number;
  readonly zip64?: boolean;
  readonly entryCount?: number;
  readonly directoryOffset?: number | bigint;
  /** The offset of the 64-bit end record. */
  readonly zip64EndOffset?: bigint;
}

const UTF8_FLAG = 0x800;
const DESCRIPTOR_FLAG = 0x8;
const UNIX = 3 << 8;
const IN_ZIP64 = 0xffffffff;

export function writeZip(entries: readonly ZipEntry[], whole: ZipWhole = {}): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = whole.base ?? 0;
  for (const entry of entries) {
    const { data, fields } = fieldsOf(entry);
    const bytes = entry.only === "directory" ? Buffer.alloc(0) : localEntry(entry, fields, data);
    if (entry.only !== "bytes") directory.push(directoryEntry(entry, fields, entry.offset ?? at));
    locals.push(bytes);
    at += bytes.length;
  }
  const central = Buffer.concat(directory);
  const count = whole.entryCount ?? directory.length;
  return Buffer.concat([
    whole.prefix ?? Buffer.alloc(0),
    ...locals,
    central,
    ...(whole.zip64 === true ? zip64End(whole, count, central.length, at) : []),
    plainEnd(whole, count, central.length, at),
    whole.suffix ?? Buffer.alloc(0),
  ]);
}

/** An extra field of an entry. */
export function extraField(id: number, data: Buffer): Buffer {
  return Buffer.concat([integers([2, id], [2, data.length]), data]);
}

function fieldsOf(entry: ZipEntry): { data: Buffer; fields: Required<EntryFields> } {
  const content = Buffer.from(entry.content ?? "");
  const method = entry.method ?? 0;
  const data = entry.data ?? (method === 8 ? deflateRawSync(content) : content);
  const fields = {
    name: entry.name,
    flags: (entry.flags ?? UTF8_FLAG) | (entry.descriptor === true ? DESCRIPTOR_FLAG : 0),
    method,
    crc: entry.crc ?? crc32(content),
    compressedBytes: entry.compressedBytes ?? data.length,
    bytes: entry.bytes ?? content.length,
  };
  return { data, fields };
}

function localEntry(entry: ZipEntry, fields: Required<EntryFields>, data: Buffer): Buffer {
  const before = entry.descriptor === true ? { crc: 0, compressedBytes: 0, bytes: 0 } : {};
  const local = { ...fields, ...before, ...entry.local };
  const isLong = entry.zip64 !== undefined && entry.zip64 !== false;
  const longSizes = integers([8, local.bytes], [8, local.compressedBytes]);
  const extra = isLong ? extraField(1, longSizes) : Buffer.alloc(0);
  const sizes = isLong ? { compressedBytes: IN_ZIP64, bytes: IN_ZIP64 } : {};
  const sizeBytes = isLong ? 8 : 4;
  const after = integers(
    [4, 0x08074b50],
    [4, fields.crc],
    [sizeBytes, fields.compressedBytes],
    [sizeBytes, fields.bytes],
  );
  return Buffer.concat([
    integers([4, 0x04034b50], [2, isLong ? 45 : 20]),
    describe({ ...local, ...sizes }),
    integers([2, Buffer.from(local.name).length], [2, extra.length]),
    Buffer.from(local.name),
    extra,
    data,
    entry.descriptor === true ? after : Buffer.alloc(0),
  ]);
}

function directoryEntry(entry: ZipEntry, fields: Required<EntryFields>, offset: number | bigint): Buffer {
  const isLong = entry.zip64 !== undefined && entry.zip64 !== false;
  const claimed = typeof entry.zip64 === "bigint" ? entry.zip64 : undefined;
  const long = integers([8, claimed ?? fields.bytes], [8, claimed ?? fields.compressedBytes], [8, offset]);
  const extra = Buffer.concat([...(isLong ? [extraField(1, long)] : []), entry.extra ?? Buffer.alloc(0)]);
  const sizes = isLong ? { compressedBytes: IN_ZIP64, bytes: IN_ZIP64 } : {};
  return Buffer.concat([
    integers([4, 0x02014b50], [2, UNIX | (isLong ? 45 : 20)], [2, isLong ? 45 : 20]),
    describe({ ...fields, ...sizes }),
    integers([2, Buffer.from(fields.name).length], [2, extra.length], [2, 0], [2, 0], [2, 0]),
    integers([4, entry.attributes ?? 0o100644 * 0x10000], [4, isLong ? IN_ZIP64 : offset]),
    Buffer.from(fields.name),
    extra,
  ]);
}

/** The common part of local and directory headers. */
function describe({ flags, method, crc, compressedBytes, bytes }: Required<EntryFields>): Buffer {
  const [time, date] = [0x6000, 0x5821];
  return integers([2, flags], [2, method], [2, time], [2, date], [4, crc], [4, compressedBytes], [4, bytes]);
}

function zip64End(whole: ZipWhole, count: number, directoryBytes: number, at: number): Buffer[] {
  const offset = whole.directoryOffset ?? at;
  return [
    integers([4, 0x06064b50], [8, 44], [2, UNIX | 45], [2, 45], [4, 0], [4, 0]),
    integers([8, count], [8, count], [8, directoryBytes], [8, offset]),
    integers([4, 0x07064b50], [4, 0], [8, whole.zip64EndOffset ?? at + directoryBytes], [4, 1]),
  ];
}

function plainEnd(whole: ZipWhole, count: number, directoryBytes: number, at: number): Buffer {
  const isLong = whole.zip64 === true;
  const counted = isLong ? 0xffff : count;
  const offset = isLong ? IN_ZIP64 : (whole.directoryOffset ?? at);
  const comment = whole.comment ?? Buffer.alloc(0);
  return Buffer.concat([
    integers([4, 0x06054b50], [2, 0], [2, 0], [2, counted], [2, counted]),
    integers([4, isLong ? IN_ZIP64 : directoryBytes], [4, offset], [2, comment.length]),
    comment,
  ]);
}

/** Little-endian numbers of the given lengths; larger values are cut off. */
function integers(...fields: readonly (readonly [bytes: number, value: number | bigint])[]): Buffer {
  return Buffer.concat(
    fields.map(([bytes, value]) => {
      const long = Buffer.alloc(8);
      long.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
      return long.subarray(0, bytes);
    }),
  );
}
