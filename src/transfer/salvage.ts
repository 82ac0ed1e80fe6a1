/** Unpacks what has arrived of a ZIP that broke off, without the directory at its end. */
import { join } from "node:path";
import { finishFile } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { rm, withFile } from "../base/files.ts";
import type { Sum } from "../base/sums.ts";
import { contentOf, verifyContent, withReader, type ZipReader } from "./unpack.ts";
import { DEFLATED, decodeName, STORED, Unmatched, type WantedEntry, wrong } from "./unpack-directory.ts";

const LOCAL_START = Buffer.from("PK\x03\x04");
const HEADER_BYTES = 30;
const ENCRYPTED = 1;
/** Sizes and checksum may follow the content. */
const DESCRIPTOR_BYTES = 24;

interface Salvage<File> {
  readonly fileMode: number;
  /** The folder has this file already. */
  has(file: File): boolean;
  /** The file is synced, and the folder is not. */
  add(file: File, sum: Sum): void;
}

/**
 * Unpacks one file after the other, up to the first that is not whole: it must have its size, and match its checksums. Throws
 * `DISK_FULL`, `DISK_REFUSED` or `STOPPED`.
 */
export async function salvageZip<File extends WantedEntry>(
  zipPath: string,
  files: readonly File[],
  folder: string,
  { fileMode, has, add }: Salvage<File>,
  signal: AbortSignal,
): Promise<void> {
  const unmatched = new Unmatched(files);
  const unpackOne = (file: File, chunks: AsyncIterable<Buffer>) =>
    withFile(join(folder, file.name), "wx", async (target) => {
      const sum = await verifyContent(chunks, file, (chunk) => target.write(chunk), signal);
      await finishFile(target, fileMode);
      add(file, sum);
    });
  const salvageFrom = async (reader: ZipReader) => {
    for (let at = 0; at !== -1; ) {
      const { names, method, start } = await readHeader(reader, at);
      const file = (await unmatched.take(names)) as File | undefined;
      if (file === undefined || file.checksums.length === 0) return;
      let end = start;
      const chunks = (async function* () {
        end += yield* contentOf(reader, start, file, method, signal);
      })();
      // Read to its end, where the next one begins.
      if (has(file)) await verifyContent(chunks, file, async () => {}, signal);
      else {
        await rm(join(folder, file.name), { force: true });
        await unpackOne(file, chunks);
      }
      at = await nextAfter(reader, end);
    }
  };
  try {
    await withFile(zipPath, "r", (zip) => withReader(zip, signal, salvageFrom));
  } catch (error) {
    // What follows is not whole.
    if (!(error instanceof Fault && error.verdict === "quarantine")) throw error;
  }
}

/** Throws if no file begins here that can be read. */
async function readHeader(reader: ZipReader, at: number) {
  const header = await reader.bytesAt(at, HEADER_BYTES);
  const number = (place: number) => header.readUInt16LE(place);
  const [flags, method, nameBytes, extraBytes] = [number(6), number(8), number(26), number(28)];
  const isReadable = (method === STORED || method === DEFLATED) && (flags & ENCRYPTED) === 0;
  if (!isReadable || header.indexOf(LOCAL_START) !== 0) throw wrong("no file follows");
  const fileNameRaw = await reader.bytesAt(at + HEADER_BYTES, nameBytes);
  const names = decodeName({ generalPurposeBitFlag: flags, fileNameRaw, extraFields: [] });
  return { names, method, start: at + HEADER_BYTES + nameBytes + extraBytes };
}

/** Where the next file begins; -1 if none does. */
async function nextAfter(reader: ZipReader, end: number): Promise<number> {
  const tail = await reader.bytesAt(end, Math.min(DESCRIPTOR_BYTES + LOCAL_START.length, reader.bytes - end));
  const gap = tail.indexOf(LOCAL_START);
  return gap === -1 ? -1 : end + gap;
}
