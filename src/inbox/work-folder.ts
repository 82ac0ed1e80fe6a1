/**
 * Checks that the work folder is the one that Inlet made for this inbox, that this program knows its format, and that the
 * folders of a running daemon are still there and writable: a disk can be unmounted, replaced or mounted read-only at any time.
 *
 * The work folder holds the ledger. With another folder in its place, everything that the service still lists would be
 * delivered again; through a link, Inlet would write elsewhere. So the folder carries an id that no other user can
 * read, and the state folder remembers the id of each inbox's work folder. Numbers of devices are used again, and identify
 * nothing.
 */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { createDurably, exists, makeFolderDurably, replaceDurably, temporaryName } from "../base/durable.ts";
import { Fault, tolerate, unreadable } from "../base/faults.ts";
import { lstat, mkdir, readdir, rm, rmdir, stat, statfs, tryReadFile, writeFile } from "../base/files.ts";
import { randomHex } from "../base/random.ts";
import { readVersion } from "../base/version.ts";

/** Raised if an older program could not read, or would damage, files of a newer one. */
const FORMAT = 4;

export interface Folders {
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
}

/**
 * Called before anything is created. Throws `WORK_NOT_OURS` if the folder, or an entry in it, is a link or belongs
 * to another user, and `WORK_LOST` if the folder is missing or is not the one that this inbox had before.
 */
export async function demandWork(folders: Folders): Promise<void> {
  const { work } = folders;
  const isThere = await exists(work);
  if (isThere) await demandOurs(work);
  const memory = memoryOf(folders);
  const remembered = await readWord(memory);
  if (remembered === undefined || remembered === (await readWord(idOf(work)))) return;
  const why = isThere ? `${work} is not the one that this inbox had before` : `${work} is missing`;
  throw new Fault("WORK_LOST", { detail: `${why} (to start with a new one, remove ${memory})` });
}

/** Throws `WORK_NEWER` or `WORK_OLDER`. Called before anything in the work folder is changed. */
export async function demandKnownFormat(work: string): Promise<void> {
  const { format, program } = await readFormat(work);
  if (format === FORMAT) return;
  // A new work folder gets its format before anything else that lasts.
  if (format === 0 && !(await exists(join(work, "ledger")))) return;
  if (format < FORMAT) throw new Fault("WORK_OLDER", { detail: `${work} was used by ${program}` });
  throw new Fault("WORK_NEWER", { detail: `${work} was used by ${program}, and this is ${readVersion()}` });
}

/** The folders as they were opened. */
export interface KnownFolders extends Folders {
  /** Of the work folder, and remembered by the state folder. */
  readonly id: string;
  /** In the work folder, for temporary files. */
  readonly temporary: string;
  /** The file systems of the two folders. */
  readonly devices: { readonly work: number; readonly state: number };
}

/**
 * Gives the work folder an id, notes the format, and has the state folder remember the id. May be called twice.
 * `temporary`: a folder in the work folder whose files are removed after a crash.
 */
export async function rememberWork(folders: Folders, temporary: string): Promise<KnownFolders> {
  const { work, state, inbox } = folders;
  const memory = memoryOf(folders);
  await makeFolderDurably(dirname(memory), 0o700);
  await writeOnce(idOf(work), randomHex(16), temporary);
  // Of several processes that share the work folder, the first one has chosen the id.
  const id = (await readWord(idOf(work))) ?? "";
  await writeOnce(memory, `${id} ${inbox}`, state);
  if ((await readFormat(work)).format < FORMAT) {
    await replaceDurably(formatOf(work), `${FORMAT} ${readVersion()}\n`, 0o600, temporary);
  }
  const devices = { work: (await stat(work)).dev, state: (await stat(state)).dev };
  return { inbox, work, state, id, temporary, devices };
}

/** Folders in which other users could replace the work folder, or entries of it, while Inlet runs. */
export async function findExposed(work: string): Promise<string[]> {
  const exposed: string[] = [];
  for (const folder of [dirname(work), work]) {
    if ((await exists(folder)) && (await isExposed(folder))) exposed.push(folder);
  }
  return exposed;
}

/** The folders in the state folder whose files Inlet trusts. The empty name is the state folder itself. */
export const TRUSTED_FOLDERS = ["", "passwords", "tokens"];

/**
 * Folders in which every user could replace tokens and passwords. A group is not named: in a container it is usually the
 * daemon's own. `doctor` names it.
 */
export async function findExposedState(state: string): Promise<string[]> {
  const exposed: string[] = [];
  const parent = await stat(dirname(state));
  // The sticky bit protects what is in the parent, but does not prevent a new file in the state folder.
  if ((parent.mode & STICKY) === 0 && isWrittenByAll(parent.mode)) exposed.push(dirname(state));
  for (const name of TRUSTED_FOLDERS) {
    const found = await stat(join(state, name)).catch(tolerate("ENOENT"));
    if (found !== undefined && isWrittenByAll(found.mode)) exposed.push(join(state, name));
  }
  return exposed;
}

export function isWrittenByAll(mode: number): boolean {
  return (mode & 0o002) !== 0;
}

const WRITTEN_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/**
 * A user who may write a folder may rename every entry in it, even those of others: only the sticky bit prevents that.
 */
export async function isExposed(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  return (mode & WRITTEN_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
}

/** The file in the state folder that remembers the work folder of an inbox. */
export function memoryOf({ inbox, state }: Pick<Folders, "inbox" | "state">): string {
  return join(state, "inboxes", createHash("sha256").update(inbox).digest("hex").slice(0, 32));
}

async function demandOurs(work: string): Promise<void> {
  const { uid } = await lstat(work);
  await demandPlain(work, uid);
  if (uid !== process.geteuid?.() && uid !== (await ownerOfNew(work))) throw notOurs(work, uid);
  for (const name of await readdir(work)) await demandPlain(join(work, name), uid);
}

async function demandPlain(path: string, owner: number): Promise<void> {
  // Another process of ours may have removed it.
  const found = await lstat(path).catch(tolerate("ENOENT"));
  if (found?.isSymbolicLink()) throw new Fault("WORK_NOT_OURS", { detail: `${path} is a link` });
  if (found !== undefined && found.uid !== owner) throw notOurs(path, found.uid);
}

/** Some network file systems give everything to one owner, whichever user creates it. */
async function ownerOfNew(folder: string): Promise<number | undefined> {
  const trial = join(folder, `.${randomHex(6)}.trial`);
  try {
    await mkdir(trial, { mode: 0o700 });
  } catch {
    return undefined;
  }
  const { uid } = await lstat(trial);
  await rmdir(trial);
  return uid;
}

function notOurs(path: string, uid: number): Fault {
  const detail = `${path} belongs to user ${uid}, and Inlet runs as user ${process.geteuid?.()}`;
  return new Fault("WORK_NOT_OURS", { detail });
}

function idOf(work: string): string {
  return join(work, "id");
}

function formatOf(work: string): string {
  return join(work, "format");
}

/** 0 if no format is noted yet. */
async function readFormat(work: string): Promise<{ readonly format: number; readonly program: string }> {
  const [, format, version] = /^(\d+)(?: (\S+))?/.exec((await tryReadText(formatOf(work))) ?? "") ?? [];
  return { format: Number(format ?? 0), program: `Inlet ${version ?? "of an unknown version"}` };
}

/** The first word of a file; `undefined` if the file is missing. */
async function readWord(path: string): Promise<string | undefined> {
  return (await tryReadText(path))?.split(/\s/)[0];
}

async function tryReadText(path: string): Promise<string | undefined> {
  return tryReadFile(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
}

async function writeOnce(path: string, text: string, temporary: string): Promise<void> {
  await createDurably(path, `${text}\n`, temporary).catch(tolerate("TARGET_EXISTS"));
}

/** Throws if these are no longer the known folders. Changes nothing. */
export async function demandSame(known: KnownFolders): Promise<void> {
  const { inbox, work, state, devices } = known;
  await demandId(idOf(work), known, async () => {
    const isInboxHere = (await tryStat(inbox))?.dev === devices.work;
    return explainLoss(isInboxHere ? work : inbox, devices.work);
  });
  await demandId(memoryOf(known), known, () => explainLoss(state, devices.state));
  await demandInbox(known, inbox);
}

async function demandId(path: string, { id }: KnownFolders, explain: () => Promise<Fault>): Promise<void> {
  if ((await readWord(path)) === id) return;
  const fault = await explain();
  // The disk may have been mounted meanwhile, and the explanation is wrong then.
  if ((await readWord(path)) !== id) throw fault;
}

/** Room for the records of a delivery. A disk with less is full: some of them would be written, and others not. */
export const NEEDED_BYTES = 32 * 1024;

/** A disk that was full needs more room, or files that come and go would begin and end the trouble again and again. */
export const NEEDED_AFTER_TROUBLE = { bytes: 4 * NEEDED_BYTES, files: 32 };

const ZEROS = Buffer.alloc(NEEDED_AFTER_TROUBLE.bytes);

/** Throws if no file of a few blocks can be written in the work folder or the state folder. */
export async function demandWritable(
  { temporary, state }: KnownFolders,
  wasInTrouble = false,
): Promise<void> {
  const bytes = wasInTrouble ? NEEDED_AFTER_TROUBLE.bytes : NEEDED_BYTES;
  for (const folder of [temporary, state]) {
    const path = join(folder, temporaryName());
    try {
      await writeFile(path, ZEROS.subarray(0, bytes), { flag: "wx", mode: 0o600 });
      if (wasInTrouble) await demandFiles(folder);
      await rm(path, { force: true });
    } catch (error) {
      // A full disk leaves a part of the file. If the disk refuses the removal too, the next start removes it.
      await rm(path, { force: true }).catch(() => {});
      throw error;
    }
  }
}

async function demandFiles(folder: string): Promise<void> {
  const { files, ffree } = await statfs(folder);
  // Some file systems have no fixed number of files and report zero.
  if (files > 0 && ffree < NEEDED_AFTER_TROUBLE.files) {
    throw new Fault("DISK_FULL", { detail: `${folder}: only ${ffree} more files fit (inodes)` });
  }
}

/** Throws if a delivery cannot be renamed into an inbox. */
export async function demandInbox({ work, devices }: KnownFolders, inbox: string): Promise<void> {
  const isThere = async () => {
    const found = await tryStat(inbox);
    // After a remount, the device of the work folder may be another one.
    return found !== undefined && (found.dev === devices.work || found.dev === (await tryStat(work))?.dev);
  };
  if (await isThere()) return;
  const loss = await explainLoss(inbox, devices.work);
  // It may have come back between the two looks.
  if (!(await isThere())) throw loss;
}

/** `device`: of the file system that the folder was on. */
async function explainLoss(folder: string, device: number): Promise<Fault> {
  let nearest = folder;
  let found = await tryStat(nearest);
  while (found === undefined) {
    nearest = dirname(nearest);
    found = await tryStat(nearest);
  }
  if (found.dev === device) {
    return new Fault(nearest === folder ? "DISK_REPLACED" : "FOLDER_MISSING", { detail: folder });
  }
  // Without a mount, a folder is on the file system of the folder above it.
  const isMountPoint = found.dev !== (await tryStat(dirname(nearest)))?.dev;
  return new Fault(isMountPoint ? "DISK_REPLACED" : "DISK_UNMOUNTED", { detail: folder });
}

function tryStat(path: string): Promise<{ readonly dev: number } | undefined> {
  return stat(path).catch(tolerate("ENOENT", "ENOTDIR"));
}
