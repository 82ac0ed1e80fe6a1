/** Proves that a ZIP holds the files that the transfer's list announces, each with its size and checksums. */
import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { type Entry, fromFdPromise, type ZipFile } from "yauzl";
import { Fault } from "../../base/faults.ts";
import { type Checksum, startVerification } from "../../model/checksum.ts";
import type { TransferFile } from "../../model/transfer.ts";

/** `extraFile`: the service was asked to add one more, its own list of checksums. */
export async function verifyZip(
  zip: FileHandle,
  files: readonly TransferFile[],
  checksumsOf: (file: TransferFile) => readonly Checksum[],
  extraFile: boolean,
): Promise<void> {
  const missing = new Map(files.map((file) => [file.name, file]));
  let extra = extraFile ? 1 : 0;
  try {
    const archive = await fromFdPromise(zip.fd, { autoClose: false, strictFileNames: false });
    for await (const entry of archive.eachEntry()) {
      const file = missing.get(entry.fileName);
      if (file === undefined && extra-- <= 0)
        throw wrong(`${JSON.stringify(entry.fileName)} is not in the list`);
      if (file !== undefined) await verifyEntry(archive, entry, file, checksumsOf(file));
      missing.delete(entry.fileName);
    }
  } catch (error) {
    throw error instanceof Fault
      ? error
      : wrong(error instanceof Error ? error.message : String(error), error);
  }
  const [name] = missing.keys();
  if (name !== undefined) throw wrong(`${JSON.stringify(name)} is missing`);
}

async function verifyEntry(
  archive: ZipFile,
  entry: Entry,
  file: TransferFile,
  checksums: readonly Checksum[],
): Promise<void> {
  if (entry.uncompressedSize !== file.bytes) {
    const detail = `${file.name} in the ZIP: ${entry.uncompressedSize} bytes instead of ${file.bytes}`;
    throw new Fault("SIZE_MISMATCH", { detail });
  }
  const verification = startVerification(checksums);
  let crc = 0;
  for await (const chunk of (await archive.openReadStreamPromise(entry)) as AsyncIterable<Buffer>) {
    crc = crc32(chunk, crc);
    verification.update(chunk);
  }
  if (crc !== entry.crc32) throw wrong(`${JSON.stringify(file.name)} is damaged`);
  verification.finish(`${file.name} in the ZIP`);
}

function wrong(detail: string, cause?: unknown): Fault {
  return new Fault("ARCHIVE_WRONG", { detail, cause });
}
