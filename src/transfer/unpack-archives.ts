/**
 * Unpacks the ZIP files that a sender sent, before the delivery. An archive that cannot be unpacked safely is delivered as it
 * is, and the manifest says why. Archives inside archives are not unpacked.
 *
 * Unpacked files lie in the same folder as the others: `data.zip` with `docs/a.txt` gives `data_docs_a.txt`. A delivered folder
 * stays flat, so that consumers, the check and the removal see every file.
 */

import { join } from "node:path";
import { Fault } from "../base/faults.ts";
import { rm } from "../base/files.ts";
import { formatCount } from "../base/phrases.ts";
import type { Stage } from "../ledger/port.ts";
import { type Contents, RESERVED_NAMES } from "../model/manifest.ts";
import type { Run } from "./run.ts";

type SentFile = Contents["files"][number];

/** Text compresses to a twentieth, and logs to a hundredth. An archive that promises more is probably made to fill a disk. */
const MAX_RATIO = 200;
/** A small archive may expand to this size, whatever its ratio is. */
const MIN_ALLOWED_BYTES = 16 * 1024 * 1024;
/** The time that unpacking may take: a fixed part, and a part for each mebibyte. */
const DEADLINE_MS = { whole: 60_000, perMebibyte: 1_000 };

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
export async function unpackArchives(run: Run, contents: Contents): Promise<Contents> {
  const { unpack = "none" } = run.handoff;
  if (unpack === "none" || contents.unpacked !== undefined) return contents;
  const archives = contents.files.filter(({ name }) => /.\.zip$/i.test(name));
  if (archives.length === 0) return contents;
  const stage = await run.openStage();
  let files = [...contents.files];
  const unpacked: NonNullable<Contents["unpacked"]>[number][] = [];
  for (const archive of archives) {
    run.signal.throwIfAborted();
    const { name, originalName, size, sha256 } = archive;
    const facts = { name, originalName, size, sha256 };
    try {
      const made = await unpackOne(run, stage, archive, files);
      const isDelivered = unpack === "beside";
      files = [...(isDelivered ? files : files.filter((file) => file !== archive)), ...made];
      unpacked.push({ ...facts, isDelivered, files: made.length });
    } catch (error) {
      if (!(error instanceof Fault && REFUSED.has(error.code))) throw error;
      run.tools.emit({ type: "archive-left", record: run.record, archive: originalName, fault: error });
      unpacked.push({ ...facts, isDelivered: true, files: 0, refused: error.message });
    }
  }
  // Only now: until then, a failed attempt leaves everything that was downloaded.
  for (const { name, isDelivered } of unpacked) {
    if (!isDelivered) await rm(join(stage.folder, name), { force: true });
  }
  const extended: Contents = { ...contents, files, unpacked };
  run.contents = extended;
  return extended;
}

/** Unpacks one archive into the stage: all of it or nothing. `files`: the files in the stage so far. */
async function unpackOne(
  run: Run,
  stage: Stage,
  archive: SentFile,
  files: readonly SentFile[],
): Promise<SentFile[]> {
  const { limits, inbox } = run.tools;
  const { signal } = run;
  // Loaded only if it is needed.
  const { listZip, unpackZip } = await import("./unpack.ts");
  const path = join(stage.folder, archive.name);
  // A released transfer may exceed the limits without its archives.
  const maxEntries = limits.maxFiles - files.length;
  const tooMany = () =>
    new Fault("LIMIT_EXCEEDED", {
      detail: `with its entries, the transfer would have more than ${formatCount(limits.maxFiles, "file", "files")}`,
    });
  const entries = await listZip(path, { maxEntries, tooMany }, signal);
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  const totalBytes = files.reduce((sum, { size }) => sum + size, bytes);
  requireRoom(archive, bytes, totalBytes, limits.maxTransferBytes);
  const reserved = [
    ...RESERVED_NAMES,
    run.handoff.marker,
    run.handoff.acknowledgement,
    ...files.map(({ name }) => name),
  ];
  const names = await inbox.safeNames(
    entries.map((entry, at) => ({ id: String(at), name: nameFor(archive, entry.path) })),
    reserved.filter((name) => name !== undefined),
  );
  const digests = new Map<number, string>();
  const wanted = entries.map((entry, at) => ({
    originalName: entry.path,
    target: names.get(String(at)) ?? "",
    bytes: entry.bytes,
    checksums: [],
    onDigest: (sha256: string) => void digests.set(at, sha256),
  }));
  const deadlineMs = DEADLINE_MS.whole + (bytes / 1024 ** 2) * DEADLINE_MS.perMebibyte;
  const reservation = await inbox.reserve(run.key, bytes, entries.length);
  try {
    const { fileMode } = run.handoff;
    const unpackLimits = { maxEntries, maxBytes: bytes, fileMode, deadlineMs, skipsFolders: true };
    await unpackZip(path, wanted, stage.folder, unpackLimits, signal);
  } finally {
    reservation.release();
  }
  return wanted.map(({ originalName, target, bytes: size }, at) => ({
    name: target,
    originalName,
    size,
    sha256: digests.get(at) ?? "",
    verified: archive.verified,
    from: archive.name,
  }));
}

/** `totalBytes`: of the transfer, with the unpacked files. */
function requireRoom({ size }: SentFile, bytes: number, totalBytes: number, maxBytes: number): void {
  if (totalBytes > maxBytes) {
    throw new Fault("LIMIT_EXCEEDED", {
      detail: `with its files, the transfer would have ${totalBytes} bytes, and ${maxBytes} are allowed`,
    });
  }
  if (bytes > Math.max(size * MAX_RATIO, MIN_ALLOWED_BYTES)) {
    throw new Fault("LIMIT_EXCEEDED", { detail: `${size} bytes would become ${bytes}` });
  }
}

/** `data.zip` with `docs/a.txt`: `data_docs_a.txt`. */
function nameFor({ name }: SentFile, path: string): string {
  return `${name.replace(/\.zip$/i, "")}_${path.replaceAll("/", "_")}`;
}
