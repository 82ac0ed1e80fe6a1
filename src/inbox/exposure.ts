/**
 * Finds what other users could change among the files that Inlet trusts: configuration, secrets, state and work. What others
 * may change for certain is refused; what only might be is reported (docs/decisions/036-whose-files-are-trusted.md).
 */
import { dirname, join } from "node:path";
import { Fault } from "../base/faults.ts";
import { lookAt, lstat, mkdir, readFile, realpath, rmdir, stat } from "../base/files.ts";
import { entriesIn, nameIn } from "../base/process.ts";
import { randomHex } from "../base/random.ts";
import { quote } from "../model/order.ts";
import { findMountOf } from "./mounts.ts";

export interface Trusted {
  readonly work: string;
  readonly state: string;
  /** The configuration, and the files of its secrets. */
  readonly files: readonly string[];
}

export interface Exposure {
  readonly path: string;
  readonly what: string;
  /** A command. */
  readonly remedy: string;
  /** Inlet does not start. */
  readonly isRefused: boolean;
}

const [GROUP, OTHERS, STICKY] = [0o020, 0o002, 0o1000];

/** Throws `FILES_UNPROTECTED`. Returns `FILES_EXPOSED` for what is only doubtful. */
export async function demandProtected(trusted: Trusted): Promise<Fault | undefined> {
  const found = await findExposures(trusted);
  const refused = found.filter(({ isRefused }) => isRefused);
  if (refused.length > 0) throw faultOf("FILES_UNPROTECTED", refused);
  return found.length === 0 ? undefined : faultOf("FILES_EXPOSED", found);
}

const MAX_NAMED = 5;

function faultOf(code: "FILES_UNPROTECTED" | "FILES_EXPOSED", found: readonly Exposure[]): Fault {
  const named = found.slice(0, MAX_NAMED).map(({ what, remedy }) => `${what}: ${remedy}`);
  const more = found.length > MAX_NAMED ? [`and ${found.length - MAX_NAMED} more`] : [];
  return new Fault(code, { detail: [...named, ...more].join("; ") });
}

/** `uid`: the user of the daemon. */
export async function findExposures(
  { work, state, files }: Trusted,
  uid: number | undefined = process.geteuid?.(),
): Promise<Exposure[]> {
  if (uid === undefined) return [];
  const folders = [work, ...["", "passwords", "tokens"].map((name) => join(state, name))];
  // A file that cannot be found is reported by its reader.
  const read = await Promise.all(files.map((file) => realpath(file).catch(() => file)));
  // Who may write the folder above could replace what is in it.
  const above = new Set([work, state, ...read].map((path) => dirname(path)));
  const trusted = [...new Set([...folders, ...read])].map((path) => findExposuresOf(path, uid));
  return (
    await Promise.all([...trusted, ...[...above].map((folder) => findWriters(folder, uid, true))])
  ).flat();
}

async function findExposuresOf(path: string, uid: number): Promise<Exposure[]> {
  const facts = await lookAt(path);
  if (facts === undefined) return [];
  const writers = await findWriters(path, uid, false);
  if (facts.uid === 0 || facts.uid === uid) return writers;
  const isRefused = !(await isOwnerHidden(path, facts.uid));
  const owner = await nameIn("/etc/passwd", facts.uid);
  const what = isRefused
    ? `${path} belongs to user ${owner}`
    : `the owner of ${path} cannot be seen from here`;
  const user = await nameIn("/etc/passwd", uid);
  const remedy = `chown ${facts.isDirectory() ? "-R " : ""}${user} ${quote(path)}`;
  return [{ path, what, remedy, isRefused }, ...writers];
}

async function findWriters(path: string, uid: number, isAbove: boolean): Promise<Exposure[]> {
  const facts = await lookAt(path);
  if (facts === undefined) return [];
  const { mode, gid } = facts;
  // The sticky bit protects what is in a folder, but does not prevent new files.
  const isSticky = facts.isDirectory() && (mode & STICKY) !== 0;
  if (isAbove && isSticky) return [];
  const exposed = (who: string, letter: string, isRefused: boolean) => ({
    path,
    what: `${who} may write to ${path}`,
    remedy: `chmod ${isAbove ? "+t" : `${letter}-w`} ${quote(path)}`,
    isRefused,
  });
  if ((mode & OTHERS) !== 0) return [exposed("every user", "o", !isSticky)];
  if ((mode & GROUP) === 0 || (await isAlone(uid, gid))) return [];
  return [exposed(`the group ${await nameIn("/etc/group", gid)}`, "g", false)];
}

/** Whether the group is the user's own, without another member: as in a container, and on systems with a group for each user. */
async function isAlone(uid: number, gid: number): Promise<boolean> {
  const users = await entriesIn("/etc/passwd");
  const user = users.find(([, , id]) => id === String(uid));
  const own = user === undefined ? process.getegid?.() : Number(user[3]);
  if (gid === 0 || gid !== own) return false;
  const groups = (await entriesIn("/etc/group")).filter(([, , id]) => id === String(gid));
  const members = groups.flatMap(([, , , names = ""]) => names.split(",").filter(Boolean));
  const others = users.filter(([, , id, group]) => group === String(gid) && id !== String(uid));
  return others.length === 0 && members.every((name) => name === user?.[0]);
}

/** The owner of files whose owner is not mapped into a user namespace. */
const UNMAPPED = 65_534;

/** Whether the owner that is shown may be another one in truth. */
async function isOwnerHidden(path: string, uid: number): Promise<boolean> {
  // Without the file, there are no namespaces.
  const map = await readFile("/proc/self/uid_map", "utf8").catch(() => "");
  if (uid === UNMAPPED && /^\s*\d+\s+\d+\s+\d+\s*$/m.test(map) && !/^\s*0\s+0\s+4294967295\s*$/.test(map))
    return true;
  const { kind, point } = await findMountOf(path);
  if (/^(cifs|smb3)$/.test(kind)) return true;
  // Containers mount single files of another system, with its owners.
  const facts = await stat(path);
  if (!facts.isDirectory()) return point === path;
  return uid === (await ownerOfNew(path));
}

/** Some network file systems give everything to one owner, whichever user creates it. */
export async function ownerOfNew(folder: string): Promise<number | undefined> {
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

/**
 * A user who may write a folder may rename every entry in it, even those of others: only the sticky bit prevents that.
 */
export async function isExposed(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  return (mode & (GROUP | OTHERS)) !== 0 && (mode & STICKY) === 0;
}
