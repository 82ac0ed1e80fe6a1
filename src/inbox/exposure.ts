/**
 * Finds what other users could change among the files that Inlet trusts: configuration, secrets, state and work. What others
 * may change for certain is refused; what only might be is reported (docs/decisions/036-whose-files-are-trusted.md).
 */
import type { Stats } from "node:fs";
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

interface Exposure {
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

/** The others are named once these are mended. */
const MAX_NAMED = 5;

function faultOf(code: "FILES_UNPROTECTED" | "FILES_EXPOSED", found: readonly Exposure[]): Fault {
  const named = found.slice(0, MAX_NAMED).map(({ what, remedy }) => `${what}: ${remedy}`);
  return new Fault(code, { detail: named.join("; ") });
}

/** `uid`: the user of the daemon. */
export async function findExposures(
  { work, state, files }: Trusted,
  uid: number | undefined = process.geteuid?.(),
): Promise<Exposure[]> {
  if (uid === undefined) return [];
  // A file that cannot be found is reported by its reader.
  const read = await Promise.all(files.map((file) => realpath(file).catch(() => file)));
  // Who may write the folder above could replace what is in it.
  const above = new Set([work, state, ...read].map((path) => dirname(path)));
  const own = [work, ...["", "passwords", "tokens"].map((name) => join(state, name)), ...read];
  const found = own.map((path) => exposuresOf(path, uid, false));
  return (await Promise.all([...found, ...[...above].map((path) => exposuresOf(path, uid, true))])).flat();
}

/** `isAbove`: only what is in the folder counts, which the sticky bit protects. */
async function exposuresOf(path: string, uid: number, isAbove: boolean): Promise<Exposure[]> {
  const facts = await lookAt(path);
  if (facts === undefined) return [];
  const { mode, gid, uid: owner } = facts;
  const found: Exposure[] = [];
  if (!isAbove && owner !== 0 && owner !== uid) {
    const isRefused = !(await isOwnerHidden(path, facts));
    const what = isRefused
      ? `${path} belongs to user ${await nameIn("/etc/passwd", owner)}`
      : `the owner of ${path} cannot be seen from here`;
    const all = facts.isDirectory() ? "-R " : "";
    const remedy = `chown ${all}${await nameIn("/etc/passwd", uid)} ${quote(path)}`;
    found.push({ what, remedy, isRefused });
  }
  const isSticky = facts.isDirectory() && (mode & STICKY) !== 0;
  if (isAbove && isSticky) return found;
  const add = (who: string, bit: string, isRefused: boolean) => {
    const remedy = `chmod ${isAbove ? "+t" : bit} ${quote(path)}`;
    found.push({ what: `${who} may write to ${path}`, remedy, isRefused });
  };
  if ((mode & OTHERS) !== 0) add("every user", "o-w", !isSticky);
  else if ((mode & GROUP) !== 0 && !(await isAlone(uid, gid)))
    add(`the group ${await nameIn("/etc/group", gid)}`, "g-w", false);
  return found;
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
const WHOLE_MAP = "0 0 4294967295";

/** Whether the owner that is shown may be another one in truth. */
async function isOwnerHidden(path: string, facts: Stats): Promise<boolean> {
  // Without the file, there are no namespaces.
  const map = await readFile("/proc/self/uid_map", "utf8").catch(() => WHOLE_MAP);
  if (facts.uid === UNMAPPED && map.trim().split(/\s+/).join(" ") !== WHOLE_MAP) return true;
  const { kind, point } = await findMountOf(path);
  if (/^(cifs|smb3)$/.test(kind)) return true;
  // Containers mount single files of another system, with its owners.
  return facts.isDirectory() ? facts.uid === (await ownerOfNew(path)) : point === path;
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

/** A user who may write a folder may rename every entry in it, even those of others, unless it has the sticky bit. */
export async function isExposed(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  return (mode & (GROUP | OTHERS)) !== 0 && (mode & STICKY) === 0;
}
