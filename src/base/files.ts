/** The files of the machine, with the names and results of Node's own functions. */
import { constants } from "node:fs";
import { machine } from "./machine.ts";
import type { Files, OpenFile } from "./system-files.ts";

export type { OpenFile } from "./system-files.ts";

function ofMachine<Name extends keyof Files>(name: Name): Files[Name] {
  const call = (...args: unknown[]) => (machine().files[name] as (...args: unknown[]) => unknown)(...args);
  return call as Files[Name];
}

export const lstat = ofMachine("lstat");
export const stat = ofMachine("stat");
export const statfs = ofMachine("statfs");
export const readFile = ofMachine("readFile");
export const readdir = ofMachine("readdir");
export const opendir = ofMachine("opendir");
export const rm = ofMachine("rm");
export const rmdir = ofMachine("rmdir");
export const mkdir = ofMachine("mkdir");
export const rename = ofMachine("rename");
export const link = ofMachine("link");
export const unlink = ofMachine("unlink");
export const writeFile = ofMachine("writeFile");
export const copyFile = ofMachine("copyFile");
export const chmod = ofMachine("chmod");
export const lchown = ofMachine("lchown");
export const realpath = ofMachine("realpath");
export const makeFolder = ofMachine("makeFolder");

/** For files that others may replace: follows no link, and does not wait for the writer of a pipe. */
export const READ_PLAIN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** `mode`: for a file that this creates. */
export function openFile(path: string, flags: string | number, mode = 0o600): Promise<OpenFile> {
  return machine().files.openFile(path, flags, mode);
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
