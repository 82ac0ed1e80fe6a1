/** One delivered folder, file by file, against what it says of itself. */
import { lstat, open, opendir } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../base/faults.ts";
import { MANIFEST, SUMS } from "../../collect/plan.ts";
import { startVerification } from "../../model/checksum.ts";
import { DamagedFolder, type Expected, READ_FLAGS, readExpected } from "./manifest.ts";

interface CheckedFile {
  readonly name: string;
  readonly status: "ok" | "changed" | "missing" | "extra" | "unreadable";
  /** In what it differs. */
  readonly detail?: string;
}

export interface CheckedFolder {
  readonly folder: string;
  readonly status: "ok" | "differs" | "damaged";
  /** Why nothing in it could be held against anything. */
  readonly problem?: string;
  readonly bytes: number;
  readonly files: readonly CheckedFile[];
}

const CHUNK_BYTES = 256 * 1024;

/** `allowed`: names beside those of the manifest that belong there, such as a marker's. */
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
    await using file = await open(join(folder, name), READ_FLAGS);
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
