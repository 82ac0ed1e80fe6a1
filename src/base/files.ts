/** The files of the machine, with the names and results of Node's own functions. */
import { constants, type Stats } from "node:fs";
import { tolerate } from "./faults.ts";
import { closedDisks, type Machine, machine } from "./machine.ts";
import { type Files, type OpenFile, systemFiles } from "./system-files.ts";

export type { OpenFile } from "./system-files.ts";
export type { FolderWatch } from "./system-watch.ts";

const READS = ["lstat", "stat", "statfs", "readFile", "readdir", "opendir", "realpath"];

/** Each call goes to the current machine. Changes are refused while its disks are closed. */
const calls = Object.fromEntries(
  Object.keys(systemFiles).map((name) => {
    const call = (...args: unknown[]) => {
      const reason = READS.includes(name) ? undefined : closedDisks();
      const onDisk = machine().files[name as keyof Files] as (...args: unknown[]) => unknown;
      return reason === undefined ? onDisk(...args) : Promise.reject(reason);
    };
    return [name, call];
  }),
) as unknown as Files;

export const { lstat, stat, statfs, readFile, readdir, opendir, realpath } = calls;
export const { rm, rmdir, mkdir, rename, link, unlink, writeFile, copyFile, chmod, lchown, makeFolder } =
  calls;

/** For files that others may replace: follows no link, and does not wait for the writer of a pipe. */
export const READ_PLAIN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const WRITES = constants.O_WRONLY | constants.O_RDWR | constants.O_CREAT;

/** `mode` is the mode of a file that the call creates. */
export function openFile(path: string, flags: string | number, mode = 0o600): Promise<OpenFile> {
  const isRead = flags === "r" || (typeof flags === "number" && (flags & WRITES) === 0);
  const reason = isRead ? undefined : closedDisks();
  if (reason !== undefined) return Promise.reject(reason);
  return machine().files.openFile(path, flags, mode);
}

const unlessMissing = tolerate("ENOENT", "ENOTDIR");

/** Follows no link. `undefined` if the file is missing. Throws if the disk does not answer. */
export function tryLstat(path: string): Promise<Stats | undefined> {
  return lstat(path).catch(unlessMissing);
}

/** `undefined` if the file is missing. Throws if the disk does not answer. */
export function tryReadFile(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(unlessMissing);
}

/** For descriptions: `undefined` also without access to the file, or if the disk does not answer. */
export function lookAt(path: string): Promise<Stats | undefined> {
  // The caller then describes it as missing, or leaves it alone.
  return stat(path).catch(() => undefined);
}

/** As `lookAt`, but follows no link. */
export function lookAtLink(path: string): Promise<Stats | undefined> {
  // As above.
  return lstat(path).catch(() => undefined);
}

/** Closes the file after `work`, even after a failure. */
export async function withFile<Value>(
  path: string,
  flags: string | number,
  work: (file: OpenFile) => Promise<Value>,
  mode?: number,
): Promise<Value> {
  const file = await openFile(path, flags, mode);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

export const watchFolder: Machine["watchFolder"] = (...args) => machine().watchFolder(...args);
