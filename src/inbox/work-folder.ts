/**
 * Whether the work folder is the one that Inlet has made, and the one that this inbox had before.
 *
 * It holds the ledger: with another one in its place, all that the service still lists would be delivered again, and
 * what somebody has put there, a link for example, would lead us astray. So it carries an id that nobody else can read,
 * and the state folder remembers the id of each inbox's work folder.
 */
import { createHash, randomBytes } from "node:crypto";
import { lstat, mkdir, readdir, readFile, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createTextDurably, exists, faultOfDisk, makeFolderDurably } from "../base/durable.ts";
import { Fault, systemCode } from "../base/faults.ts";
import { isExposed } from "./exposure.ts";

export interface WorkPlaces {
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
}

/**
 * To be called before anything is made. Throws `WORK_NOT_OURS` where the folder, or something in it, is a link or
 * somebody else's, and `WORK_LOST` where it is missing or another one than before.
 */
export async function demandWork(places: WorkPlaces): Promise<void> {
  const { work } = places;
  const isThere = await exists(work);
  if (isThere) await demandOurs(work);
  const memory = memoryOf(places);
  const remembered = await readWord(memory);
  if (remembered === undefined || remembered === (await readWord(idOf(work)))) return;
  const what = isThere ? `${work} is another one than this inbox had before` : `${work} is not there`;
  throw new Fault("WORK_LOST", { detail: `${what} (to begin afresh all the same, remove ${memory})` });
}

/**
 * `temporary`: a folder on the file system of the work folder that is cleared after crashes. May be called twice. Returns
 * the work folder's id.
 */
export async function rememberWork(places: WorkPlaces, temporary: string): Promise<string> {
  const { work, state, inbox } = places;
  const memory = memoryOf(places);
  await makeFolderDurably(dirname(memory), 0o700);
  await writeOnce(idOf(work), randomBytes(16).toString("hex"), temporary);
  // Where several share a work folder, whoever was first has named it.
  const id = (await readWord(idOf(work))) ?? "";
  await writeOnce(memory, `${id} ${inbox}`, state);
  return id;
}

/** Folders in which others could exchange the work folder, or what stands in it, while we work. */
export async function findExposed(work: string): Promise<string[]> {
  const exposed: string[] = [];
  for (const folder of [dirname(work), work]) {
    if ((await exists(folder)) && (await isExposed(folder))) exposed.push(folder);
  }
  return exposed;
}

async function demandOurs(work: string): Promise<void> {
  try {
    const { uid } = await lstat(work);
    await demandPlain(work, uid);
    if (uid !== process.geteuid?.() && uid !== (await ownerOfNew(work))) throw notOurs(work, uid);
    for (const name of await readdir(work)) await demandPlain(join(work, name), uid);
  } catch (error) {
    throw faultOfDisk(error, work);
  }
}

/** Also files: what is locked and read there has to be ours. */
async function demandPlain(path: string, owner: number): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    // Another process of ours may be at work.
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (found?.isSymbolicLink()) throw new Fault("WORK_NOT_OURS", { detail: `${path} is a link` });
  if (found !== undefined && found.uid !== owner) throw notOurs(path, found.uid);
}

/** Some file systems, shared by a server, give all that is made there to one owner, whoever made it. */
async function ownerOfNew(folder: string): Promise<number | undefined> {
  const trial = join(folder, `.${randomBytes(6).toString("hex")}.trial`);
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
  const detail = `${path} belongs to user ${uid}, and this runs as user ${process.geteuid?.()}`;
  return new Fault("WORK_NOT_OURS", { detail });
}

function idOf(work: string): string {
  return join(work, "id");
}

/** Where the state folder remembers the work folder of an inbox. */
export function memoryOf({ inbox, state }: Pick<WorkPlaces, "inbox" | "state">): string {
  return join(state, "inboxes", createHash("sha256").update(inbox).digest("hex").slice(0, 32));
}

/** The first word of a file; `undefined` where there is none. */
async function readWord(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).split(/\s/)[0];
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new Fault("DISK_UNREADABLE", { detail: `${path} (${code})`, cause: error });
  }
}

async function writeOnce(path: string, text: string, temporary: string): Promise<void> {
  try {
    await createTextDurably(path, `${text}\n`, temporary);
  } catch (error) {
    if (!(error instanceof Fault && error.code === "TARGET_EXISTS")) throw error;
  }
}
