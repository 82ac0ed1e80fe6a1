/** `verify`: finds deliveries below a folder, hashes them again, and compares each with its manifest and its sums. */
import { type FileHandle, open, opendir, readdir, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import { INBOX_EXTRA_FILES, INBOX_VERIFY_FILES } from "../base/bounds.ts";
import { Fault, systemCode, tolerate } from "../base/faults.ts";
import { lookAtLink, READ_PLAIN_FILE, tryReadFile } from "../base/files.ts";
import { DamagedFolder } from "../base/foreign-files.ts";
import { formatCount, formatSize } from "../base/phrases.ts";
import { loadSettings } from "../config/load.ts";
import { handoffsOf, type Settings } from "../config/settings.ts";
import { ledgerPaths, PLACEMENT } from "../ledger/paths.ts";
import { type Checksum, nodeAlgorithm, startVerification } from "../model/checksum.ts";
import {
  filesIn,
  MANIFEST,
  type Manifest,
  manifestBound,
  readManifest,
  readSums,
  SUMS,
} from "../model/manifest.ts";
import { contentOf, parsePlacement, pathOf } from "../model/placement.ts";
import { addExitCodes, type Context, invalid, type Outcome, type Runner } from "./command.ts";
import { addConfig, type CommonOptions, gather } from "./options.ts";
import { formatCells, formatJson, printable, say, startProgress, writeOut } from "./printing.ts";

const HELP = `
It reads every file below FOLDER again. The configuration, if there is one, names the marker, and finds deliveries
without a transfer.json, until they are picked up.

  ok          as it was delivered
  changed     other content, another size, or no longer a plain file
  missing     no longer there
  extra       there, but not delivered by Inlet; permit it with --allow
  unreadable  this user may not read it, or the disk fails

A user who can change the files can also change the manifest and the sums beside them: keep a copy of SHA256SUMS
elsewhere to detect that.`;

export function define(command: Command, run: Runner): void {
  addConfig(command)
    .argument("<folder...>", "delivered folders, or folders above them")
    .option(
      "--allow <name>",
      "a file name to permit, such as one that a consumer adds; may be repeated",
      gather,
    )
    .option("--json", "print every folder with its files as JSON")
    .addHelpText("after", HELP)
    .action(run(verifyFolders));
  addExitCodes(command, { fine: "everything is as it was delivered", attention: "something differs" });
}

async function verifyFolders(
  context: Context,
  folders: readonly string[],
  options: CommonOptions & { readonly allow?: readonly string[] },
): Promise<Outcome> {
  for (const folder of folders) await demandFolder(folder);
  const { config: path, json } = options;
  const load = { env: context.env, path, ignoreSecrets: true };
  // The configuration is optional, unless `--config` names it.
  const unlessNeeded = (error: unknown) => (path === undefined ? undefined : Promise.reject(error));
  const known = await loadSettings(load).catch(unlessNeeded);
  const added =
    known && handoffsOf(known).flatMap(({ marker, acknowledgement }) => [marker, acknowledgement]);
  const allowed = new Set([...(options.allow ?? []), ...(added ?? [])].filter((name) => name !== undefined));
  const format = json ? formatEntry : formatFolder;
  const tally = { folders: 0, files: 0, bytes: 0, troubles: 0 };
  for (const root of folders) {
    let isEmpty = true;
    const complain = (folder: string, why: string) => {
      isEmpty = false;
      tally.troubles++;
      say(context, `inlet: ${folder} ${why}.`);
    };
    const onUnreadable = (folder: string, code: string) => complain(folder, `cannot be read (${code})`);
    for await (const delivery of findDeliveries(root, known, onUnreadable, context.stop)) {
      isEmpty = false;
      const progress = startProgress(context, delivery.folder, undefined);
      const checked = await checkFolder(delivery, allowed, progress.advance, context.stop).finally(
        progress.end,
      );
      await writeOut(context, format(checked, context, tally.folders));
      tally.folders++;
      tally.files += checked.files.length;
      tally.bytes += checked.bytes;
      tally.troubles += Number(checked.status !== "ok");
    }
    if (isEmpty && folders.length === 1) throw invalid(`${root} ${NOTHING}`);
    if (isEmpty) complain(root, NOTHING);
  }
  if (json) context.stdout.write(tally.folders === 0 ? "[]\n" : "\n]\n");
  say(context, summaryOf(tally));
  return tally.troubles === 0 ? "fine" : "attention";
}

const NOTHING = "holds no delivered folder: none in it has a transfer.json";

async function demandFolder(folder: string): Promise<void> {
  const facts = await stat(folder).catch((cause: unknown) => {
    const code = systemCode(cause);
    throw invalid(`${folder} ${code === "ENOENT" ? "does not exist" : `cannot be read (${code})`}`, cause);
  });
  if (!facts.isDirectory()) throw invalid(`${folder} is not a folder`);
}

/** One document, written folder by folder: a tree may hold more than fits into memory. `at`: its place, from 0. */
function formatEntry(checked: CheckedFolder, _context: Context, at: number): string {
  return `${at === 0 ? "[" : ","}\n${formatJson(checked)}`;
}

/** A terminal gets the folder and its differences. A pipe gets a line per file. */
function formatFolder({ folder, status, problem, bytes, files }: CheckedFolder, { stdout }: Context): string {
  if (!stdout.isTTY) {
    const rows = problem === undefined ? files : [{ name: "", status, detail: problem }];
    return rows.map((row) => formatCells([row.status, join(folder, row.name), row.detail ?? ""])).join("");
  }
  const mark = styleText(status === "ok" ? "green" : "red", status.padEnd(7), { stream: stdout });
  const size = formatSize({ files: files.length, bytes });
  const troubles = files.filter((file) => file.status !== "ok");
  const lines = [
    `${mark}  ${printable(folder)}  (${printable(problem ?? size)})`,
    ...troubles.map((it) =>
      `         ${it.status}: ${printable(it.name)} ${printable(it.detail ?? "")}`.trimEnd(),
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function summaryOf({ folders, files, bytes, troubles }: Tally): string {
  const what = `${formatCount(folders, "folder", "folders")}, ${formatSize({ files, bytes })}`;
  if (troubles === 0) return `${what}: all as they were delivered.`;
  return `${what}: ${formatCount(troubles, "folder differs", "folders differ")} from what was delivered.`;
}

type Tally = Readonly<Record<"folders" | "files" | "bytes" | "troubles", number>>;

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

/** A delivery, and where its manifest is. */
export interface FoundDelivery {
  /** The folder with its files. */
  readonly folder: string;
  /** The folder with its manifest and its sums. */
  readonly records: string;
  /** The names of these files. */
  readonly manifest: string;
  readonly sums?: string;
  /** The beginning of all paths in the sums, such as `NAME/`. */
  readonly within?: string;
  /** Other deliveries, and files of consumers, may be in the folder too. */
  readonly isShared?: boolean;
}

const CHUNK_BYTES = 256 * 1024;
const BOUND = manifestBound({ files: INBOX_VERIFY_FILES });

/** A delivered folder with its manifest inside. */
export function manifestInside(folder: string): FoundDelivery {
  return { folder, records: folder, manifest: MANIFEST, sums: SUMS };
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

async function checkFile(
  folder: string,
  expected: Expected,
  count: (bytes: number) => void,
  signal: AbortSignal,
): Promise<CheckedFile> {
  const { name } = expected;
  try {
    await using file = await open(join(folder, name), READ_PLAIN_FILE);
    const detail = await describeDifference(file, expected, count, signal);
    return detail === undefined ? { name, status: "ok" } : { name, status: "changed", detail };
  } catch (error) {
    if (error instanceof Fault || !(error instanceof Error && "code" in error)) throw error;
    if (error.code === "ENOENT") return { name, status: "missing" };
    if (error.code === "ELOOP") return { name, status: "changed", detail: "is a link" };
    return { name, status: "unreadable", detail: `cannot be read (${String(error.code)})` };
  }
}

async function describeDifference(
  file: FileHandle,
  { name, size, sha256, checksums, conflict }: Expected,
  count: (bytes: number) => void,
  signal: AbortSignal,
): Promise<string | undefined> {
  const facts = await file.stat();
  if (!facts.isFile()) return "is not a plain file";
  if (conflict !== undefined) return conflict;
  if (size !== undefined && facts.size !== size) return `has ${facts.size} bytes instead of ${size}`;
  const verification = startVerification(checksums);
  for await (const chunk of file.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES })) {
    if (signal.aborted) throw new Fault("STOPPED");
    verification.update(chunk);
    count(chunk.byteLength);
  }
  try {
    const found = verification.finish(name);
    if (sha256 === undefined || found === sha256) return undefined;
  } catch (error) {
    if (!(error instanceof Fault && error.code === "CHECKSUM_MISMATCH")) throw error;
  }
  return "has other content";
}

async function findExtra(folder: string, known: ReadonlySet<string>): Promise<CheckedFile[]> {
  const extra: CheckedFile[] = [];
  for await (const entry of await opendir(folder)) {
    if (known.has(entry.name) || entry.name === MANIFEST || entry.name === SUMS) continue;
    if (extra.length === INBOX_EXTRA_FILES)
      return [...extra, { name: "", status: "extra", detail: "and more" }];
    const facts = await lookAtLink(join(folder, entry.name));
    const isEmpty = facts?.isFile() === true && facts.size === 0;
    const hint = isEmpty ? "; it is empty, as a marker is (see --allow)" : "";
    const detail = entry.isDirectory() ? "is a folder" : `is not in the manifest${hint}`;
    extra.push({ name: entry.name, status: "extra", detail });
  }
  return extra;
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
async function readExpected({ records, manifest, sums: file, within }: FoundDelivery): Promise<Expected[]> {
  const bound = { ...BOUND, isOwned: manifest === MANIFEST };
  const delivered = filesIn(await readManifest(records, bound, manifest));
  const sums = file === undefined ? undefined : await readSums(records, delivered.length, file, within);
  const expected: Expected[] = delivered.map(({ name, deliveredAs = name, size, sha256, ...file }) => {
    const sum = sums?.get(name);
    const isAgreed = sums === undefined || sum === sha256;
    const why = sum === undefined ? `${SUMS} lacks it` : `${MANIFEST} and ${SUMS} disagree on it`;
    const conflict = isAgreed ? undefined : why;
    return { name: deliveredAs, size, sha256, checksums: checksumsOf(file), conflict };
  });
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

/**
 * Finds the deliveries in and below a folder, by the manifests inside and beside them, and by those in the work folder
 * if `configured` is given. `onUnreadable` gets folders that cannot be read.
 */
export async function* findDeliveries(
  root: string,
  configured: Pick<Settings, "inbox" | "work"> | undefined,
  onUnreadable: (folder: string, code: string) => void,
  signal: AbortSignal,
): AsyncGenerator<FoundDelivery, void, undefined> {
  const folder = resolve(root);
  const beside = join(dirname(folder), `${basename(folder)}.${MANIFEST}`);
  if ((await lookAtLink(beside))?.isFile()) yield* findBeside(beside);
  yield* findBelow(root, onUnreadable, signal);
  if (configured !== undefined) yield* findWithoutManifest(folder, configured);
}

/** Follows no link, and skips names that begin with a dot: no delivery has one. */
async function* findBelow(
  folder: string,
  onUnreadable: (folder: string, code: string) => void,
  signal: AbortSignal,
): AsyncGenerator<FoundDelivery, void, undefined> {
  if (signal.aborted) throw new Fault("STOPPED");
  try {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      if (entry.name === MANIFEST) yield manifestInside(folder);
      else if (entry.name.startsWith(".")) continue;
      else if (entry.isDirectory()) yield* findBelow(path, onUnreadable, signal);
      else if (entry.isFile()) yield* findBeside(path);
    }
  } catch (error) {
    if (error instanceof Fault || !(error instanceof Error && "syscall" in error && "code" in error))
      throw error;
    onUnreadable(folder, String(error.code));
  }
}

/** `NAME.transfer.json` is beside a folder. Beside single files, `handoff.names` decides: `ID_transfer-2.json`. */
const MANIFEST_BESIDE = /transfer(?:-\d+)?\.json/;

/** The delivery whose manifest this file is, if it is one. */
async function* findBeside(path: string): AsyncGenerator<FoundDelivery> {
  const [records, manifest] = [dirname(path), basename(path)];
  if (!MANIFEST_BESIDE.test(manifest)) return;
  const name = basename(manifest, `.${MANIFEST}`);
  const folder = join(records, name);
  if ((await lookAtLink(folder))?.isDirectory()) {
    yield { folder, records, manifest, sums: `${name}.${SUMS}`, within: `${name}/` };
    return;
  }
  // Any file may have such a name.
  const found = await readManifest(records, { ...BOUND, isOwned: false }, manifest).catch(() => undefined);
  if (found !== undefined && filesIn(found).some(({ deliveredAs }) => deliveredAs !== undefined))
    yield { folder: records, records, manifest, isShared: true };
}

/** Deliveries below a folder whose manifest is only in the work folder, because consumers get none. */
async function* findWithoutManifest(
  root: string,
  { inbox, work }: Pick<Settings, "inbox" | "work">,
): AsyncGenerator<FoundDelivery> {
  const { placements } = ledgerPaths(work);
  for (const entry of (await readdir(placements).catch(tolerate("ENOENT"))) ?? []) {
    const records = join(placements, entry);
    const placement = parsePlacement((await tryReadFile(join(records, PLACEMENT))) ?? "");
    if (placement === undefined || placement.manifest !== undefined || placement.isManifestInside) continue;
    const isShared = placement.deliver === "files";
    const content = contentOf(placement)[0]?.as ?? "";
    const folder = join(inbox, isShared ? placement.parent : pathOf(placement, content));
    if (relative(root, folder).startsWith("..")) continue;
    yield { folder, records, manifest: MANIFEST, isShared };
  }
}
