/** Explains that this user may not use a folder: whose it is, who asked, and what to do. */
import { access, constants, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Fault, systemCode } from "../base/faults.ts";
import { nameIn } from "../base/process.ts";
import { nameOfUser } from "./actor.ts";

/** Whether this user may read and write a folder. A missing one counts as usable. */
export function mayUse(folder: string): Promise<boolean> {
  return isAllowed(folder, constants.R_OK | constants.W_OK | constants.X_OK);
}

/** Whether this user may read a folder. A missing one counts as readable. */
export function mayRead(folder: string): Promise<boolean> {
  return isAllowed(folder, constants.R_OK | constants.X_OK);
}

async function isAllowed(folder: string, mode: number): Promise<boolean> {
  return access(folder, mode).then(
    () => true,
    (error: unknown) => !isRefused(error),
  );
}

/** `PERMISSION_DENIED` if the system refused this user a file or folder, else the same fault. */
export async function explainPermission(fault: Fault): Promise<Fault> {
  const { cause } = fault;
  const isOfDisk = fault.code === "DISK_UNREADABLE" || fault.code === "DISK_REFUSED";
  if (!isOfDisk || process.geteuid?.() === 0 || !isRefused(cause)) return fault;
  const path = cause instanceof Error && "path" in cause ? String(cause.path) : undefined;
  return path === undefined ? fault : permissionFault(path, cause);
}

export async function permissionFault(path: string, cause?: unknown): Promise<Fault> {
  return new Fault("PERMISSION_DENIED", { detail: await describe(path), cause });
}

function isRefused(error: unknown): boolean {
  return ["EACCES", "EPERM"].includes(systemCode(error));
}

/** Names the folder that refuses: a folder above the path may already do so. */
async function describe(path: string): Promise<string> {
  const facts = await stat(path).catch(() => undefined);
  if (facts === undefined && dirname(path) !== path) return describe(dirname(path));
  const mode = facts === undefined ? "" : `, mode ${(facts.mode & 0o7777).toString(8).padStart(4, "0")}`;
  const owner = await nameIn("/etc/passwd", facts?.uid);
  const group = await nameIn("/etc/group", facts?.gid);
  return `${path} belongs to ${owner} and the group ${group}${mode}, and the command runs as ${nameOfUser()}`;
}
