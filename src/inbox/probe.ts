/**
 * What the file system below a folder really does, found out by doing it: in a folder of the probe's own, which is gone
 * afterwards. Nothing else is touched.
 */
import { randomBytes } from "node:crypto";
import { link, lstat, mkdir, open, readdir, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemDisk } from "../base/disk.ts";
import { exists, faultOfDisk, syncFile } from "../base/durable.ts";
import { Fault, systemCode } from "../base/faults.ts";
import { isLockKept } from "./lock-trial.ts";

/** `undefined` where it works, else why it does not: the system's code, or a few words. */
export type Trial = string | undefined;

export interface ProbeFacts {
  readonly fileSync: Trial;
  readonly folderSync: Trial;
  /** A folder can be moved from here into the inbox. */
  readonly reachesInbox: boolean;
  /** A folder moves to a free name, and whoever looks there sees all of it or nothing. */
  readonly rename: Trial;
  /** A folder with content stays where it is when another one is moved onto its name. */
  readonly keepsFull: Trial;
  /** An empty folder gives way to one that is moved onto its name. */
  readonly replacesEmpty: boolean;
  /** Of two who make a file of one name, one fails. */
  readonly exclusiveCreate: Trial;
  readonly hardLink: Trial;
  /** The kernel's lock on a file keeps another process out. */
  readonly lock: Trial;
  readonly caseSensitive: boolean;
  /** Two spellings of `é`: two names, one name, or one that is changed to the other. */
  readonly unicode: "distinct" | "same" | "changed";
  /** In bytes, of at most 255 that were tried. */
  readonly longestName: number;
}

const NAME = /^\.inlet-probe-[0-9a-f]{12}$/;
const ABANDONED_MS = 60 * 60_000;

const ROUNDS = 6;
const FILES = 12;
const LONGEST_TRIED = 255;

/**
 * Throws `DISK_FULL` or `DISK_REFUSED` where nothing can be written there at all, and `STOPPED`. Both must exist. Nobody
 * else may be able to rename what is in `folder`: what is deleted afterwards could be something else then.
 */
export async function probeFolder(
  folder: string,
  inbox: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<ProbeFacts> {
  await clearAbandoned(folder, nowMs);
  const place = newPlace(folder);
  try {
    await mkdir(place, { mode: 0o700 });
    return await probe(place, inbox, signal);
  } catch (error) {
    throw signal.aborted ? new Fault("STOPPED", { cause: error }) : faultOfDisk(error, folder);
  } finally {
    await rm(place, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Makes a folder there and takes it away again: permissions alone do not tell. Throws the system's error. */
export async function tryMaking(folder: string): Promise<void> {
  const place = newPlace(folder);
  await mkdir(place, { mode: 0o700 });
  await rmdir(place);
}

function newPlace(folder: string): string {
  return join(folder, `.inlet-probe-${randomBytes(6).toString("hex")}`);
}

async function probe(place: string, inbox: string, signal: AbortSignal): Promise<ProbeFacts> {
  const attempt = async (work: () => Promise<Trial>): Promise<Trial> => {
    signal.throwIfAborted();
    return work().catch(reasonOf);
  };
  const at = (name: string) => join(place, name);
  return {
    fileSync: await attempt(() => trySync(at("file"))),
    folderSync: await attempt(() => systemDisk.syncFolder(place).then(() => undefined)),
    reachesInbox: await canReach(at("traveller"), inbox),
    rename: await attempt(() => tryRename(at)),
    keepsFull: await attempt(() => tryFull(at)),
    replacesEmpty: (await attempt(() => tryEmpty(at))) === undefined,
    exclusiveCreate: await attempt(() => tryExclusive(at("exclusive"))),
    hardLink: await attempt(() => tryLink(at("file"), at("linked"))),
    lock: await attempt(async () =>
      (await isLockKept(at("lock"), signal)) ? undefined : "it lets others in",
    ),
    caseSensitive: await isCaseSensitive(at),
    unicode: await findUnicode(place),
    longestName: await findLongestName(at),
  };
}

async function trySync(path: string): Promise<Trial> {
  await writeFile(path, "probe");
  await syncFile(path, 0o600);
  return undefined;
}

/**
 * Asked without a trace in the inbox: the new name is longer than any that a file system holds, but before the kernel
 * looks at it, it refuses to leave the mount. Parts of one mount can still be apart, as subvolumes are.
 */
async function canReach(folder: string, inbox: string): Promise<boolean> {
  await mkdir(folder);
  const impossible = join(inbox, "n".repeat(LONGEST_TRIED * 4));
  const code = await rename(folder, impossible).then(() => undefined, systemCode);
  if (code === undefined) await rmdir(impossible);
  return code !== "EXDEV" && (await stat(inbox)).dev === (await stat(dirname(folder))).dev;
}

/** Some file systems move a folder by copying one file after the other: a look at the right moment sees it. */
async function tryRename(at: (name: string) => string): Promise<Trial> {
  for (let round = 0; round < ROUNDS; round++) {
    const [from, to] = [at(`staged-${round}`), at(`moved-${round}`)];
    await mkdir(from);
    for (let file = 0; file < FILES; file++) await writeFile(join(from, String(file)), "probe");
    const looking = new AbortController();
    const [seen] = await Promise.all([
      firstLook(to, looking.signal),
      rename(from, to).finally(() => looking.abort()),
    ]);
    if (seen !== undefined && seen !== FILES) return "the folder appears before all of its files do";
    if ((await readdir(to)).length !== FILES || (await exists(from)))
      return "the folder did not move as a whole";
  }
  return undefined;
}

/** How many files whoever looks sees first; `undefined` where it was moved before anybody did. */
async function firstLook(folder: string, signal: AbortSignal): Promise<number | undefined> {
  while (!signal.aborted) {
    const names = await readdir(folder).catch(() => undefined);
    if (names !== undefined) return names.length;
  }
  return undefined;
}

async function tryFull(at: (name: string) => string): Promise<Trial> {
  for (const name of ["full", "other"]) {
    await mkdir(at(name));
    await writeFile(join(at(name), name), "probe");
  }
  const code = await rename(at("other"), at("full")).then(() => undefined, systemCode);
  if (code === undefined) return "a folder with content is replaced";
  const isKept = (await exists(join(at("full"), "full"))) && (await exists(join(at("other"), "other")));
  return isKept ? undefined : "a refused move changes something all the same";
}

async function tryEmpty(at: (name: string) => string): Promise<Trial> {
  for (const name of ["empty", "another"]) await mkdir(at(name));
  await rename(at("another"), at("empty"));
  await rmdir(at("empty"));
  return undefined;
}

async function tryExclusive(path: string): Promise<Trial> {
  await (await open(path, "wx")).close();
  const second = await open(path, "wx").catch(() => undefined);
  await second?.close();
  return second === undefined ? undefined : "a second one is made over the first";
}

async function tryLink(path: string, linked: string): Promise<Trial> {
  await link(path, linked);
  return (await link(path, linked).then(
    () => true,
    () => false,
  ))
    ? "a link replaces a name"
    : undefined;
}

async function isCaseSensitive(at: (name: string) => string): Promise<boolean> {
  await writeFile(at("Case"), "");
  return !(await exists(at("cASE")));
}

async function findUnicode(place: string): Promise<ProbeFacts["unicode"]> {
  const [composed, decomposed] = ["\u00e9", "e\u0301"];
  await writeFile(join(place, composed), "");
  const names = await readdir(place);
  if (!names.includes(composed)) return "changed";
  return (await exists(join(place, decomposed))) ? "same" : "distinct";
}

async function findLongestName(at: (name: string) => string): Promise<number> {
  let [fits, fails] = [0, LONGEST_TRIED + 1];
  while (fails - fits > 1) {
    // The longest is tried first: it is what most have.
    const length = fails > LONGEST_TRIED ? LONGEST_TRIED : Math.floor((fits + fails) / 2);
    if (await canHold(at("n".repeat(length)))) fits = length;
    else fails = length;
  }
  return fits;
}

async function canHold(path: string): Promise<boolean> {
  try {
    await writeFile(path, "", { flag: "wx" });
    await rm(path);
    return true;
  } catch (error) {
    if (systemCode(error) !== "ENAMETOOLONG" && systemCode(error) !== "EINVAL") throw error;
    return false;
  }
}

/** What a probe that was killed has left; younger ones may belong to another that runs now. */
async function clearAbandoned(folder: string, nowMs: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!NAME.test(name)) continue;
    const found = await lstat(join(folder, name)).catch(() => undefined);
    if (found === undefined || nowMs - found.mtimeMs <= ABANDONED_MS) continue;
    // Only what a probe of ours has made, and nobody else could write: whoever chooses what is in it chooses what goes.
    const isOurs = found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o077) === 0;
    if (!isOurs) continue;
    // What cannot be removed is no reason not to probe.
    await rm(join(folder, name), { recursive: true, force: true }).catch(() => {});
  }
}

/** A full disk says nothing about what the file system can do. */
function reasonOf(error: unknown): string {
  const code = systemCode(error);
  if (code === "" || ["ENOSPC", "EDQUOT", "DISK_FULL"].includes(code)) throw error;
  if (error instanceof Fault) return error.message;
  return code;
}
