/**
 * Finds out how the file system below a folder behaves, by trying each operation that a delivery rests on. The probe
 * works in a new folder of its own, and removes it afterwards. In the inbox, it only renames an empty folder.
 */

import { execFile } from "node:child_process";
import { link, mkdir, open, readdir, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { systemDisk } from "../base/disk.ts";
import { exists, syncFile } from "../base/durable.ts";
import { Fault, faultOfDisk, systemCode } from "../base/faults.ts";
import { tryLock } from "../base/kernel-lock.ts";
import { MAX_NAME_BYTES } from "../model/names.ts";
import { canReach, clearAbandoned, probeName } from "./reach.ts";

/** `undefined` if the operation works, else why it does not: the system's code, or a few words. */
export type Trial = string | undefined;

export interface ProbeFacts {
  /** Files and folders can be synced. */
  readonly sync: Trial;
  /** A folder can be moved from here into the inbox. */
  readonly reachesInbox: boolean;
  /** A folder moves to a free name, and readers see all of it or nothing. A folder with content is not replaced. */
  readonly rename: Trial;
  /** Of two processes that create a file of the same name, one fails. */
  readonly exclusiveCreate: Trial;
  readonly hardLink: Trial;
  /** The kernel's lock on a file keeps another process out. */
  readonly lock: Trial;
  /** A file can have the longest name that Inlet gives. */
  readonly longName: Trial;
}

const RENAME_TRIALS = 6;
const FILES_PER_TRIAL = 12;
const LOCK_TIMEOUT_MS = 10_000;
/** A program of its own: `.ts` in a checkout, `.js` if installed. */
const LOCK_TRIAL = join(import.meta.dirname, `lock-trial${extname(import.meta.filename)}`);

/**
 * Both folders must exist. No other user may be able to rename entries of `folder`: otherwise the probe could remove a
 * folder that is not its own. Throws `STOPPED`, and `DISK_FULL` or `DISK_REFUSED` if nothing can be written at all.
 */
export async function probeFolder(
  folder: string,
  inbox: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<ProbeFacts> {
  await clearAbandoned(
    folder,
    (name) => join(folder, name),
    nowMs,
    async (path, facts) => {
      // Only a folder that this user made, and no other user could write: its content would be removed with it.
      const isOurs = facts.isDirectory() && facts.uid === process.geteuid?.() && (facts.mode & 0o077) === 0;
      if (isOurs) await rm(path, { recursive: true, force: true });
    },
  );
  const trials = join(folder, probeName());
  try {
    await mkdir(trials, { mode: 0o700 });
    return await probe(trials, inbox, signal);
  } catch (error) {
    throw signal.aborted ? new Fault("STOPPED", { cause: error }) : faultOfDisk(error, folder);
  } finally {
    await rm(trials, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Creates a folder and removes it: permission bits alone do not tell whether that works. Throws the system's error. */
export async function tryMaking(folder: string): Promise<void> {
  const trial = join(folder, probeName());
  await mkdir(trial, { mode: 0o700 });
  await rmdir(trial);
}

async function probe(folder: string, inbox: string, signal: AbortSignal): Promise<ProbeFacts> {
  const attempt = async (work: () => Promise<Trial>): Promise<Trial> => {
    signal.throwIfAborted();
    return work().catch((error: unknown) => {
      signal.throwIfAborted();
      return reasonOf(error);
    });
  };
  const at = (name: string) => join(folder, name);
  return {
    sync: await attempt(() => trySync(at("file"), folder)),
    reachesInbox: await canReach(folder, inbox, Date.now()),
    rename: (await attempt(() => tryRename(at))) ?? (await attempt(() => tryFull(at))),
    exclusiveCreate: await attempt(() => tryExclusive(at("exclusive"))),
    hardLink: await attempt(() => tryLink(at("file"), at("linked"))),
    lock: await attempt(() => tryOtherProcess(at("lock"), signal)),
    longName: await attempt(() => writeFile(at("n".repeat(MAX_NAME_BYTES)), "").then(() => undefined)),
  };
}

async function trySync(path: string, folder: string): Promise<Trial> {
  await writeFile(path, "probe");
  await syncFile(path, 0o600);
  await systemDisk.syncFolder(folder);
  return undefined;
}

/** Some file systems move a folder by copying one file after the other: a reader may see a part of it. */
async function tryRename(at: (name: string) => string): Promise<Trial> {
  for (let trial = 0; trial < RENAME_TRIALS; trial++) {
    const [from, to] = [at(`staged-${trial}`), at(`moved-${trial}`)];
    await mkdir(from);
    for (let file = 0; file < FILES_PER_TRIAL; file++) await writeFile(join(from, String(file)), "probe");
    const looking = new AbortController();
    const [seen] = await Promise.all([
      firstLook(to, looking.signal),
      rename(from, to).finally(() => looking.abort()),
    ]);
    if (seen !== undefined && seen !== FILES_PER_TRIAL)
      return "the folder appears before all of its files do";
    if ((await readdir(to)).length !== FILES_PER_TRIAL || (await exists(from)))
      return "the folder did not move as a whole";
  }
  return undefined;
}

/** How many files a reader sees first; `undefined` if it sees none in time. */
async function firstLook(folder: string, signal: AbortSignal): Promise<number | undefined> {
  while (!signal.aborted) {
    // Not there yet.
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

async function tryExclusive(path: string): Promise<Trial> {
  await (await open(path, "wx")).close();
  // As it should.
  const second = await open(path, "wx").catch(() => undefined);
  await second?.close();
  return second === undefined ? undefined : "two files of the same name could be created, one over the other";
}

/** Needs another process: within one, SQLite itself keeps the second lock out. */
async function tryOtherProcess(path: string, signal: AbortSignal): Promise<Trial> {
  const lock = await tryLock(path, "alone");
  if (lock === undefined) {
    return "no lock can be taken, not even on a new file (a CIFS share needs the mount option nobrl)";
  }
  try {
    const argv = [LOCK_TRIAL, path];
    const options = { timeout: LOCK_TIMEOUT_MS, signal };
    const { stdout } = await promisify(execFile)(process.execPath, argv, options);
    return stdout === "held" ? undefined : "it lets others in";
  } catch (error) {
    // A timeout has no code.
    if (!(error instanceof Error && "killed" in error && error.killed === true)) throw error;
    return `a second process did not get an answer within ${LOCK_TIMEOUT_MS / 1_000} seconds`;
  } finally {
    lock.release();
  }
}

async function tryLink(path: string, linked: string): Promise<Trial> {
  await link(path, linked);
  const code = await link(path, linked).then(() => undefined, systemCode);
  return code === undefined ? "a new link replaces an existing file" : undefined;
}

/** Rethrows a full disk: it says nothing about the file system's abilities. */
function reasonOf(error: unknown): string {
  const code = systemCode(error);
  if (code === "" || ["ENOSPC", "EDQUOT", "DISK_FULL"].includes(code)) throw error;
  if (error instanceof Fault) return error.message;
  return code;
}
