/** Reads small ZIP archives in tests, by their central directory. */
import { crc32, inflateRawSync } from "node:zlib";

const END_BYTES = 22;

/** The entries by name; throws for a wrong checksum. */
export function readZip(archive: Buffer): Record<string, Buffer> {
  const end = archive.length - END_BYTES;
  const entries: Record<string, Buffer> = {};
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    const nameBytes = archive.readUInt16LE(at + 28);
    const name = archive.toString("utf8", at + 46, at + 46 + nameBytes);
    const bytes = readEntry(archive, at);
    if (crc32(bytes) !== archive.readUInt32LE(at + 16)) throw new Error(`${name} is damaged`);
    entries[name] = bytes;
    at += 46 + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return entries;
}

function readEntry(archive: Buffer, at: number): Buffer {
  const local = archive.readUInt32LE(at + 42);
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  const stored = archive.subarray(start, start + archive.readUInt32LE(at + 20));
  return archive.readUInt16LE(at + 10) === 0 ? stored : inflateRawSync(stored);
}
