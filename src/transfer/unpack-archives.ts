/**
 * Unpacks the ZIP files that a sender sent, before the delivery. An archive that cannot be unpacked safely is delivered as it
 * is, and the manifest says why. Archives inside archives are not unpacked.
 *
 * Unpacked files lie in the same folder as the others: `data.zip` with `docs/a.txt` gives `data_docs_a.txt`. A delivered folder
 * stays flat, so that consumers, the check and the removal see every file.
 */

import { join } from "node:path";
import { UNPACK_RATIO, UNPACK_SMALL_BYTES } from "../base/bounds.ts";
import { Fault } from "../base/faults.ts";
import { rm } from "../base/files.ts";
import { formatCount } from "../base/phrases.ts";
import type { Sum } from "../base/sums.ts";
import type { Stage } from "../ledger/port.ts";
import { bytesOf, type Proven, type ProvenFile as SentFile } from "../model/manifest.ts";
import { safeNames } from "../model/names.ts";
import { reservedNames } from "./open-transfer.ts";
import type { Run } from "./run.ts";
import type { ListedEntry } from "./unpack-directory.ts";

interface Archive {
  readonly sent: SentFile;
  entries: readonly ListedEntry[];
  /** Its unpacked files, once all are there. */
  made?: readonly SentFile[];
  /** Why it is delivered as it is. */
  refused?: Fault;
}

/** Faults that say that an archive is wrong or too large. All others concern the disk, or the end of this attempt. */
const REFUSED: ReadonlySet<string> = new Set([
  "ARCHIVE_WRONG",
  "SIZE_MISMATCH",
  "CHECKSUM_MISMATCH",
  "LIMIT_EXCEEDED",
]);

/**
 * The contents with the unpacked files. Returns the same contents if nothing is to be unpacked, or if an earlier attempt
 * has unpacked everything. Throws the faults of the disk.
 */
export async function unpackArchives(run: Run, contents: Proven): Promise<Proven> {
  const { unpack = "none" } = run.handoff;
  if (unpack === "none" || contents.unpacked !== undefined) return contents;
  const isInstead = unpack === "instead";
  const zips = contents.files.filter(({ name }) => /.\.zip$/i.test(name));
  if (zips.length === 0) return contents;
  const archives = zips.map((sent): Archive => ({ sent, entries: [] }));
  const stage = await run.openStage();
  const forEachArchive = async (work: (archive: Archive) => Promise<void>) => {
    for (const archive of archives) {
      run.signal.throwIfAborted();
      if (archive.refused !== undefined) continue;
      await work(archive).catch((error: unknown) => {
        if (!(error instanceof Fault && REFUSED.has(error.code))) throw error;
        const { originalName } = archive.sent;
        run.tools.emit({ type: "archive-left", record: run.record, archive: originalName, fault: error });
        archive.refused = error;
      });
    }
  };
  const total = { files: contents.files.length, bytes: bytesOf(contents) };
  await forEachArchive(async (archive) => {
    archive.entries = await listArchive(run, stage, archive.sent, total);
    total.files += archive.entries.length - (isInstead ? 1 : 0);
    total.bytes += sizeOf(archive.entries) - (isInstead ? archive.sent.size : 0);
  });
  // In one call: with one for each archive, the time would grow with the square of their number.
  const entries = archives.flatMap((archive) =>
    archive.entries.map(({ path }, at) => ({ id: idOf(archive, at), name: nameFor(archive, path) })),
  );
  const reserved = [...reservedNames(run.handoff), ...contents.files.map(({ name }) => name)];
  const names = await safeNames(entries, reserved);
  await forEachArchive(async (archive) => {
    archive.made = await unpackOne(run, stage, archive, names);
  });
  const isReplaced = ({ made }: Archive) => isInstead && made !== undefined;
  const replaced = new Set(archives.filter(isReplaced).map(({ sent }) => sent));
  // Only now: until then, a failed attempt leaves everything that was downloaded.
  for (const { name } of replaced) await rm(join(stage.folder, name), { force: true });
  const whole: Proven = {
    ...contents,
    files: [
      ...contents.files.filter((file) => !replaced.has(file)),
      ...archives.flatMap(({ made = [] }) => made),
    ],
    unpacked: archives.map(({ sent, made = [], refused }) => {
      const { name, originalName, size, sha256 } = sent;
      const isDelivered = !replaced.has(sent);
      return { name, originalName, size, sha256, isDelivered, files: made.length, refused: refused?.message };
    }),
  };
  run.contents = whole;
  return whole;
}

/** `total`: of the transfer, with the archives that are listed so far. */
async function listArchive(
  { tools: { limits }, signal }: Run,
  stage: Stage,
  { name, size }: SentFile,
  total: { readonly files: number; readonly bytes: number },
): Promise<ListedEntry[]> {
  // Loaded only if it is needed.
  const { listZip } = await import("./unpack.ts");
  const { maxFiles, maxTransferBytes } = limits;
  const demand = (isAllowed: boolean, detail: string) => {
    if (!isAllowed) throw new Fault("LIMIT_EXCEEDED", { detail });
  };
  const tooMany = `with its entries, the transfer would have more than ${formatCount(maxFiles, "file", "files")}`;
  // The files sent may exceed the limits already: a released transfer is not checked.
  const demandFew = (entries: number) => demand(total.files + entries <= maxFiles, tooMany);
  const entries = await listZip(join(stage.folder, name), demandFew, signal);
  const bytes = sizeOf(entries);
  const totalBytes = total.bytes + bytes;
  const tooLarge = `with its files, the transfer would have ${totalBytes} bytes, and ${maxTransferBytes} are allowed`;
  demand(totalBytes <= maxTransferBytes, tooLarge);
  const isUsualRatio = bytes <= Math.max(size * UNPACK_RATIO, UNPACK_SMALL_BYTES);
  demand(isUsualRatio, `${size} bytes would become ${bytes}`);
  return entries;
}

/** Of one entry of an archive. */
function idOf({ sent }: Archive, at: number): string {
  return `${at}/${sent.name}`;
}

function sizeOf(entries: readonly ListedEntry[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Unpacks one archive into the stage: all of it or nothing. */
async function unpackOne(
  run: Run,
  stage: Stage,
  archive: Archive,
  names: ReadonlyMap<string, string>,
): Promise<SentFile[]> {
  const { unpackZip } = await import("./unpack.ts");
  const { sent, entries } = archive;
  const wanted = entries.map((entry, at) => ({
    originalName: entry.path,
    name: names.get(idOf(archive, at)) ?? "",
    bytes: entry.bytes,
    checksums: [],
  }));
  const reservation = await run.tools.inbox.reserve(run.key, sizeOf(entries), entries.length);
  try {
    const options = { fileMode: run.handoff.fileMode, skipsFolders: true };
    const path = join(stage.folder, sent.name);
    const digests = await unpackZip(path, wanted, stage.folder, options, run.signal);
    return wanted.map((file) => ({
      name: file.name,
      originalName: file.originalName,
      size: file.bytes,
      sha256: digests.get(file) as Sum,
      verified: sent.verified,
      from: sent.name,
    }));
  } finally {
    reservation.release();
  }
}

/** `data.zip` with `docs/a.txt`: `data_docs_a.txt`. */
function nameFor({ sent }: Archive, path: string): string {
  return `${sent.name.replace(/\.zip$/i, "")}_${path.replaceAll("/", "_")}`;
}
