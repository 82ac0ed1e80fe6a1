/** ZIP archives of simulated files, streamed, with the same bytes each time. */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { ZipFile } from "yazl";
import { countBytes, slice } from "./chunks.ts";
import type { Content } from "./content.ts";
import type { Source } from "./reply.ts";

export interface ZipEntry {
  readonly name: string;
  readonly content: Content;
}

/** `sizes`: the measured lengths of archives, by entity tag. */
export function zipSource(entries: readonly ZipEntry[], sizes: Map<string, number>): Source {
  const named = nameEntries(entries);
  const etag = `"zip-${fingerprintOf(named)}"`;
  return {
    etag,
    bytes: undefined,
    async measure(signal) {
      const bytes = sizes.get(etag) ?? (await countBytes(writeZip(named), signal));
      sizes.set(etag, bytes);
      return bytes;
    },
    read: (start, end) => slice(writeZip(named), start, end),
  };
}

/** Fixed, so that the bytes are the same each time. */
const ENTRY_TIME = new Date(2024, 0, 1, 12, 0, 0);
const MAX_NAME_BYTES = 60_000;

async function* writeZip(entries: readonly ZipEntry[]): AsyncGenerator<Buffer> {
  const zip = new ZipFile();
  let current: Readable | undefined;
  for (const { name, content } of entries) {
    const options = { mtime: ENTRY_TIME, compress: content.isText, size: content.bytes };
    zip.addReadStreamLazy(name, options, (open) => {
      current = Readable.from(content.read(0, content.bytes));
      open(null, current);
    });
  }
  const output = Readable.from(zip.outputStream);
  zip.on("error", (error) => output.destroy(error));
  zip.end();
  try {
    yield* output;
  } finally {
    output.destroy();
    current?.destroy();
  }
}

/** Makes names valid for an archive: relative, without `..`, not empty. */
function nameEntries(entries: readonly ZipEntry[]): readonly ZipEntry[] {
  return entries.map(({ name, content }) => ({ name: safeEntryName(name), content }));
}

function safeEntryName(name: string): string {
  const safe = name
    .replaceAll("\\", "_")
    .replace(/^([a-z]):/i, "$1_")
    .split("/")
    .map((part) => (part === ".." || part === "." || part === "" ? "_" : part))
    .join("/");
  return Buffer.byteLength(safe) > MAX_NAME_BYTES ? safe.slice(0, MAX_NAME_BYTES / 4) : safe;
}

function fingerprintOf(entries: readonly ZipEntry[]): string {
  const hash = createHash("sha256");
  for (const { name, content } of entries) hash.update(JSON.stringify([name, content.fingerprint]));
  return hash.digest("hex").slice(0, 32);
}
