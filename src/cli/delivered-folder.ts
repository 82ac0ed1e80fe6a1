/** Delivered folders: finds them below a folder, and compares each with its manifest and its sums, which are not trusted. */
import { constants } from "node:fs";
import { lstat, open, opendir } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import { type Checksum, nodeAlgorithm, startVerification } from "../model/checksum.ts";
import { MANIFEST, MESSAGE, SUMS } from "../transfer/plan.ts";

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

/** Larger than the manifest of the largest transfer, and small enough for memory. */
const MOST_BYTES = 512 * 1024 * 1024;

const Manifest = v.object({
  version: v.number(),
  messageFile: v.optional(v.object({ name: v.literal(MESSAGE), size: v.number(), sha256: v.string() })),
  files: v.array(
    v.object({
      name: v.string(),
      size: v.number(),
      sha256: v.optional(v.string()),
      checksum: v.optional(v.string()),
      algorithm: v.optional(v.string()),
    }),
  ),
});

/** A folder that cannot be compared. The message is the end of a sentence about the folder. */
class DamagedFolder extends Error {
  override name = "DamagedFolder";
}

/** Throws `DamagedFolder` where manifest or sums cannot be parsed, or name something outside the folder. */
async function readExpected(folder: string): Promise<Expected[]> {
  const manifest = parseManifest(await readText(folder, MANIFEST));
  const sums = parseSums(await readText(folder, SUMS));
  const conflictOf = (name: string, sha256: string) => {
    const sum = sums.get(checkName(name, MANIFEST));
    return sum === sha256 ? undefined : describeConflict(sum);
  };
  const expected: Expected[] = manifest.files.map(({ name, size, sha256 = "", checksum, algorithm }) => {
    const conflict = conflictOf(name, sha256);
    const isKnown = algorithm !== undefined && nodeAlgorithm(algorithm) !== undefined;
    const checksums = isKnown && checksum !== undefined ? [{ value: checksum, algorithm }] : [];
    return { name, size, sha256, checksums, conflict };
  });
  if (manifest.messageFile !== undefined) {
    const { name, size, sha256 } = manifest.messageFile;
    expected.push({ name, size, sha256, checksums: [], conflict: conflictOf(name, sha256) });
  }
  const named = new Set(expected.map(({ name }) => name));
  if (named.size < expected.length) throw new DamagedFolder(`${MANIFEST} names a file twice`);
  const others = [...sums].filter(([name]) => !named.has(name));
  return [...expected, ...others.map(([name, sha256]) => expectedByItsSum(name, sha256))];
}

function describeConflict(sum: string | undefined): string {
  return sum === undefined ? `${SUMS} lacks it` : `${MANIFEST} and ${SUMS} disagree on it`;
}

function expectedByItsSum(name: string, sha256: string): Expected {
  return { name, size: undefined, sha256, checksums: [], conflict: `${MANIFEST} lacks it` };
}

/** Opens plain files: follows no link, and does not wait for the writer of a pipe. */
const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

async function readText(folder: string, name: string): Promise<string> {
  try {
    await using file = await open(join(folder, name), READ_FLAGS);
    const facts = await file.stat();
    if (!facts.isFile()) throw new DamagedFolder(`${name} is not a plain file`);
    if (facts.size > MOST_BYTES) throw new DamagedFolder(`${name} is larger than any of ours`);
    return await file.readFile("utf8");
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code === "ELOOP") throw new DamagedFolder(`${name} is a link`);
    throw new DamagedFolder(
      error.code === "ENOENT" ? `${name} is missing` : `${name} cannot be read (${error.code})`,
    );
  }
}

function parseManifest(text: string): v.InferOutput<typeof Manifest> {
  try {
    const result = v.safeParse(Manifest, JSON.parse(text));
    if (result.success) return result.output;
    const place = result.issues[0].path?.map((step) => String(step.key)).join(".");
    throw new DamagedFolder(`${MANIFEST} is not one of ours: look at ${place ?? "its beginning"}`);
  } catch (error) {
    if (error instanceof DamagedFolder) throw error;
    throw new DamagedFolder(`${MANIFEST} is not JSON`);
  }
}

/** Name → SHA-256, as `sha256sum` writes them. */
function parseSums(text: string): Map<string, string> {
  const sums = new Map<string, string>();
  for (const [at, line] of text.split("\n").entries()) {
    if (line === "") continue;
    const [, sum, name] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
    if (sum === undefined || name === undefined) {
      throw new DamagedFolder(`line ${at + 1} of ${SUMS} is no sum with a name`);
    }
    if (sums.has(checkName(name, SUMS)))
      throw new DamagedFolder(`${SUMS} names ${JSON.stringify(name)} twice`);
    sums.set(name, sum);
  }
  return sums;
}

/** Every file is in the folder itself: a name with a path is refused. */
function checkName(name: string, where: string): string {
  const isPlain = name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
  if (!isPlain)
    throw new DamagedFolder(`${where} names ${JSON.stringify(name)}, which is not a name in the folder`);
  return name;
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
