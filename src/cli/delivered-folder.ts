/** Delivered folders: finds them below a folder, and compares each with its manifest and its sums, which are not trusted. */
import { lstat, open, opendir } from "node:fs/promises";
import { join } from "node:path";
import { READ_PLAIN_FILE } from "../base/descriptor.ts";
import { Fault } from "../base/faults.ts";
import { type Checksum, nodeAlgorithm, startVerification } from "../model/checksum.ts";
import {
  DamagedFolder,
  filesIn,
  MANIFEST,
  type Manifest,
  readManifest,
  readSums,
  SUMS,
} from "../model/manifest.ts";

interface CheckedFile {
  readonly name: string;
  readonly status: "ok" | "changed" | "missing" | "extra" | "unreadable";
  /** How the file differs. */
  readonly detail?: string;
}

export interface CheckedFolder {
  readonly folder: string;
  readonly status: "ok" | "differs" | "damaged";
  /** Why the folder cannot be compared. */
  readonly problem?: string;
  readonly bytes: number;
  readonly files: readonly CheckedFile[];
}

const CHUNK_BYTES = 256 * 1024;

/** `allowed`: names that may be there beside the manifest's, such as a marker's. */
export async function checkFolder(
  folder: string,
  allowed: ReadonlySet<string>,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
): Promise<CheckedFolder> {
  let bytes = 0;
  const count = (more: number) => {
    bytes += more;
    onBytes(more);
  };
  try {
    const expected = await readExpected(folder);
    const files: CheckedFile[] = [];
    for (const file of expected) files.push(await checkFile(folder, file, count, signal));
    files.push(...(await findExtra(folder, new Set([...expected.map(({ name }) => name), ...allowed]))));
    const isFine = files.every(({ status }) => status === "ok");
    return { folder, status: isFine ? "ok" : "differs", bytes, files };
  } catch (error) {
    if (!(error instanceof DamagedFolder)) throw error;
    return { folder, status: "damaged", problem: error.message, bytes, files: [] };
  }
}

async function checkFile(
  folder: string,
  { name, size, sha256, checksums, conflict }: Expected,
  count: (bytes: number) => void,
  signal: AbortSignal,
): Promise<CheckedFile> {
  try {
    await using file = await open(join(folder, name), READ_PLAIN_FILE);
    const facts = await file.stat();
    if (!facts.isFile()) return { name, status: "changed", detail: "is not a plain file" };
    if (conflict !== undefined) return { name, status: "changed", detail: conflict };
    if (size !== undefined && facts.size !== size) {
      return { name, status: "changed", detail: `has ${facts.size} bytes instead of ${size}` };
    }
    const verification = startVerification(checksums);
    for await (const chunk of file.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES })) {
      if (signal.aborted) throw new Fault("STOPPED");
      verification.update(chunk);
      count(chunk.byteLength);
    }
    return verification.finish(name) === sha256 ? { name, status: "ok" } : otherContent(name);
  } catch (error) {
    return explain(name, error);
  }
}

function otherContent(name: string): CheckedFile {
  return { name, status: "changed", detail: "has other content" };
}

function explain(name: string, error: unknown): CheckedFile {
  if (error instanceof Fault && error.code === "CHECKSUM_MISMATCH") return otherContent(name);
  if (error instanceof Fault || !(error instanceof Error && "code" in error)) throw error;
  if (error.code === "ENOENT") return { name, status: "missing" };
  if (error.code === "ELOOP") return { name, status: "changed", detail: "is a link" };
  return { name, status: "unreadable", detail: `cannot be read (${String(error.code)})` };
}

async function findExtra(folder: string, known: ReadonlySet<string>): Promise<CheckedFile[]> {
  const extra: CheckedFile[] = [];
  for await (const entry of await opendir(folder)) {
    if (known.has(entry.name) || entry.name === MANIFEST || entry.name === SUMS) continue;
    const detail = entry.isDirectory() ? "is a folder" : await describeExtra(join(folder, entry.name));
    extra.push({ name: entry.name, status: "extra", detail });
  }
  return extra;
}

async function describeExtra(path: string): Promise<string> {
  const facts = await lstat(path).catch(() => undefined);
  const isEmpty = facts?.isFile() === true && facts.size === 0;
  return isEmpty
    ? "is not in the manifest; it is empty, as a marker is (see --allow)"
    : "is not in the manifest";
}

/** The facts that a file of the folder must match. */
interface Expected {
  readonly name: string;
  /** Missing for a file that only the sums name. */
  readonly size: number | undefined;
  /** In hexadecimal digits. */
  readonly sha256: string;
  /** The sender's own checksum, where its algorithm is known here. */
  readonly checksums: readonly Checksum[];
  /** Manifest and sums disagree on the file, so it cannot be right. */
  readonly conflict: string | undefined;
}

/** Throws `DamagedFolder`. */
async function readExpected(folder: string): Promise<Expected[]> {
  const manifest = await readManifest(folder);
  const sums = await readSums(folder);
  const senderChecksums = new Map(manifest.files.map((file) => [file.name, checksumsOf(file)]));
  const expected: Expected[] = filesIn(manifest).map(({ name, size, sha256 }) => {
    const sum = sums.get(name);
    const conflict = sum === sha256 ? undefined : describeConflict(sum);
    return { name, size, sha256, checksums: senderChecksums.get(name) ?? [], conflict };
  });
  const named = new Set(expected.map(({ name }) => name));
  if (named.size < expected.length) throw new DamagedFolder(`${MANIFEST} names a file twice`);
  const others = [...sums].filter(([name]) => !named.has(name));
  return [...expected, ...others.map(([name, sha256]) => expectedByItsSum(name, sha256))];
}

/** The sender's checksum, where it can be computed here. */
function checksumsOf({ checksum, algorithm }: Manifest["files"][number]): Checksum[] {
  if (checksum === undefined || algorithm === undefined || nodeAlgorithm(algorithm) === undefined) return [];
  return [{ value: checksum, algorithm }];
}

function describeConflict(sum: string | undefined): string {
  return sum === undefined ? `${SUMS} lacks it` : `${MANIFEST} and ${SUMS} disagree on it`;
}

function expectedByItsSum(name: string, sha256: string): Expected {
  return { name, size: undefined, sha256, checksums: [], conflict: `${MANIFEST} lacks it` };
}

/**
 * The folder itself and every folder below it that hold a manifest. Follows no link, and skips names that begin with a dot:
 * no delivery has one. `onUnreadable` gets folders that cannot be read.
 */
export async function* findDelivered(
  folder: string,
  onUnreadable: (folder: string, code: string) => void,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  if (signal.aborted) throw new Fault("STOPPED");
  if (await isDelivered(folder)) yield folder;
  try {
    for await (const entry of await opendir(folder)) {
      if (!entry.isDirectory() || entry.name.startsWith(".")) continue;
      yield* findDelivered(join(folder, entry.name), onUnreadable, signal);
    }
  } catch (error) {
    if (error instanceof Fault || !(error instanceof Error && "syscall" in error && "code" in error))
      throw error;
    onUnreadable(folder, String(error.code));
  }
}

async function isDelivered(folder: string): Promise<boolean> {
  return lstat(join(folder, MANIFEST)).then(
    () => true,
    () => false,
  );
}
