/** Deliveries: finds them below a folder, and compares each with its manifest and its sums, which are not trusted. */
import type { Dirent } from "node:fs";
import { open, opendir, readdir } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { Fault, tolerate } from "../base/faults.ts";
import { lookAtLink, READ_PLAIN_FILE, tryReadFile } from "../base/files.ts";
import { LedgerPaths, PLACEMENT } from "../ledger/paths.ts";
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
import { contentOf, parsePlacement, pathOf } from "../model/placement.ts";

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

/** The path of a file, in two parts. */
interface FileAt {
  readonly folder: string;
  readonly file: string;
}

/** A delivery, and where its manifest is. */
export interface FoundDelivery {
  /** The folder with its files. */
  readonly folder: string;
  readonly manifest: FileAt;
  /** `undefined`: it has none. `within`: how the paths in it begin. */
  readonly sums: (FileAt & { readonly within?: string }) | undefined;
  /** Other deliveries, and files of consumers, may be in the folder too. */
  readonly isShared?: boolean;
}

const CHUNK_BYTES = 256 * 1024;

/** A delivered folder with its manifest inside. */
export function manifestInside(folder: string): FoundDelivery {
  return { folder, manifest: { folder, file: MANIFEST }, sums: { folder, file: SUMS } };
}

/** `allowed`: names that may be there beside the manifest's, such as a marker's. */
export async function checkFolder(
  delivery: FoundDelivery,
  allowed: ReadonlySet<string>,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
): Promise<CheckedFolder> {
  const { folder } = delivery;
  let bytes = 0;
  const count = (more: number) => {
    bytes += more;
    onBytes(more);
  };
  try {
    const expected = await readExpected(delivery);
    const files: CheckedFile[] = [];
    for (const file of expected) files.push(await checkFile(folder, file, count, signal));
    const known = new Set([...expected.map(({ name }) => name), ...allowed]);
    if (!delivery.isShared) files.push(...(await findExtra(folder, known)));
    const isFine = files.every(({ status }) => status === "ok");
    return { folder, status: isFine ? "ok" : "differs", bytes, files };
  } catch (error) {
    if (!(error instanceof DamagedFolder)) throw error;
    return { folder, status: "damaged", problem: error.message, bytes, files: [] };
  }
}

export async function checkFile(
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
    const found = verification.finish(name);
    return found === (sha256 ?? found) ? { name, status: "ok" } : otherContent(name);
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
  const facts = await lookAtLink(path);
  const isEmpty = facts?.isFile() === true && facts.size === 0;
  return `is not in the manifest${isEmpty ? "; it is empty, as a marker is (see --allow)" : ""}`;
}

/** The facts that a file of the folder must match. */
interface Expected {
  readonly name: string;
  /** Missing for a file that only the sums name. */
  readonly size: number | undefined;
  /** In hexadecimal digits. */
  readonly sha256?: string;
  /** The sender's own checksum, where its algorithm is known here. */
  readonly checksums: readonly Checksum[];
  /** Manifest and sums disagree on the file, so it cannot be right. */
  readonly conflict?: string | undefined;
}

/** Throws `DamagedFolder`. */
async function readExpected({ manifest: at, sums: beside }: FoundDelivery): Promise<Expected[]> {
  const manifest = await readManifest(at.folder, at.file);
  const sums = beside && (await readSums(beside.folder, beside.file, beside.within));
  const expected: Expected[] = filesIn(manifest).map(
    ({ name, deliveredAs = name, size, sha256, ...file }) => {
      const sum = sums?.get(name);
      const differs = sum === undefined ? `${SUMS} lacks it` : `${MANIFEST} and ${SUMS} disagree on it`;
      const conflict = sums === undefined || sum === sha256 ? undefined : differs;
      return { name: deliveredAs, size, sha256, checksums: checksumsOf(file), conflict };
    },
  );
  const named = new Set(expected.map(({ name }) => name));
  if (named.size < expected.length) throw new DamagedFolder(`${MANIFEST} names a file twice`);
  const conflict = `${MANIFEST} lacks it`;
  for (const [name, sha256] of sums ?? []) {
    if (!named.has(name)) expected.push({ name, size: undefined, sha256, checksums: [], conflict });
  }
  return expected;
}

/** The sender's checksum, where it can be computed here. */
function checksumsOf({ checksum, algorithm }: Partial<Manifest["files"][number]>): Checksum[] {
  if (checksum === undefined || algorithm === undefined || nodeAlgorithm(algorithm) === undefined) return [];
  return [{ value: checksum, algorithm }];
}

/** As `findDelivered`, and deliveries whose manifest is beside `root`, or only in the work folder of the configuration. */
export async function* findDeliveries(
  root: string,
  configured: Parameters<typeof findWithoutManifest>[1] | undefined,
  onUnreadable: (folder: string, code: string) => void,
  signal: AbortSignal,
): AsyncGenerator<FoundDelivery, void, undefined> {
  const folder = resolve(root);
  const [parent, name] = [dirname(folder), basename(folder)];
  const manifest = { folder: parent, file: `${name}.${MANIFEST}` };
  const facts = await lookAtLink(join(parent, manifest.file));
  if (facts?.isFile()) yield { folder, manifest, sums: sumsBeside(parent, name) };
  yield* findDelivered(root, onUnreadable, signal);
  if (configured !== undefined) yield* findWithoutManifest(folder, configured);
}

/**
 * The deliveries in the folder itself and in every folder below it: folders with a manifest inside or beside them, and
 * single files with a manifest. Follows no link, and skips names that begin with a dot: no delivery has one. `onUnreadable`
 * gets folders that cannot be read.
 */
export async function* findDelivered(
  folder: string,
  onUnreadable: (folder: string, code: string) => void,
  signal: AbortSignal,
): AsyncGenerator<FoundDelivery, void, undefined> {
  if (signal.aborted) throw new Fault("STOPPED");
  try {
    if ((await lookAtLink(join(folder, MANIFEST))) !== undefined) yield manifestInside(folder);
    for await (const entry of await opendir(folder)) {
      if (entry.name.startsWith(".")) continue;
      if (entry.isFile()) yield* findBeside(folder, entry);
      if (!entry.isDirectory()) continue;
      yield* findDelivered(join(folder, entry.name), onUnreadable, signal);
    }
  } catch (error) {
    if (error instanceof Fault || !(error instanceof Error && "syscall" in error && "code" in error))
      throw error;
    onUnreadable(folder, String(error.code));
  }
}

/** The delivery whose manifest this file is, if it is one. */
async function* findBeside(folder: string, { name: file }: Dirent): AsyncGenerator<FoundDelivery> {
  if (!MANIFEST_BESIDE.test(file) || file === MANIFEST) return;
  const manifest = { folder, file };
  const name = file.endsWith(`.${MANIFEST}`) ? file.slice(0, -MANIFEST.length - 1) : undefined;
  const facts = name === undefined ? undefined : await lookAtLink(join(folder, name));
  if (name !== undefined && facts?.isDirectory()) {
    yield { folder: join(folder, name), manifest, sums: sumsBeside(folder, name) };
    return;
  }
  // Any file may have such a name.
  const found = await readManifest(folder, file).catch(() => undefined);
  if (found !== undefined && filesIn(found).some(({ deliveredAs }) => deliveredAs !== undefined))
    yield { folder, manifest, sums: undefined, isShared: true };
}

/** The sums beside the delivered folder `name`. */
function sumsBeside(folder: string, name: string): FoundDelivery["sums"] {
  return { folder, file: `${name}.${SUMS}`, within: `${name}/` };
}

/** Beside a folder, `NAME.transfer.json`. Beside single files, as the configuration names it, perhaps with a number. */
const MANIFEST_BESIDE = /transfer(?:-\d+)?\.json/;

/** Deliveries below a folder of which only the work folder has a manifest, because consumers get none. */
async function* findWithoutManifest(
  root: string,
  { inbox, work }: { readonly inbox: string; readonly work: string },
): AsyncGenerator<FoundDelivery> {
  const { placements } = new LedgerPaths(work);
  for (const entry of (await readdir(placements).catch(tolerate("ENOENT"))) ?? []) {
    const folder = join(placements, entry);
    const placement = parsePlacement((await tryReadFile(join(folder, PLACEMENT))) ?? "");
    if (placement === undefined || placement.manifest !== undefined || placement.isManifestInside) continue;
    const isShared = placement.deliver === "files";
    const content = contentOf(placement)[0]?.as ?? "";
    const place = join(inbox, isShared ? placement.parent : pathOf(placement, content));
    if (relative(root, place).startsWith("..")) continue;
    yield { folder: place, manifest: { folder, file: MANIFEST }, sums: undefined, isShared };
  }
}
