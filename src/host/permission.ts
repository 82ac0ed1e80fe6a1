/** Explains that this user may not use a file, a folder or a socket: whose it is, who asked, and what to do. */

import type { Stats } from "node:fs";
import { access, constants } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, resolve } from "node:path";
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault, systemCode } from "../base/faults.ts";
import { lookAt } from "../base/files.ts";
import { nameIn } from "../base/process.ts";

const { R_OK, W_OK, X_OK } = constants;
/** The rights to use a folder. */
export const USE = R_OK | W_OK | X_OK;

/** Faults whose cause may be that the system refused this user. */
const MAY_BE_REFUSED: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "CONFIG_INVALID",
  "SECRET_UNREADABLE",
  "DISK_UNREADABLE",
  "DISK_REFUSED",
  "DAEMON_UNREACHABLE",
]);

/** Whether this user may read and write a folder. A missing one counts as usable. */
export function mayUse(folder: string): Promise<boolean> {
  return access(folder, USE).then(
    () => true,
    (error: unknown) => !isRefused(error),
  );
}

/** `PERMISSION_DENIED` if the system refused this user a file, a folder or a socket, else the same fault. */
export async function explainPermission(fault: Fault): Promise<Fault> {
  if (!isPermissionFault(fault)) return fault;
  const { code, cause } = fault;
  const { path, address } = cause as NodeJS.ErrnoException & { readonly address?: string };
  const refused = path ?? address;
  if (refused === undefined) return fault;
  return permissionFault(resolve(refused), code === "DISK_REFUSED" ? USE : undefined, cause);
}

/** Root is never refused for its rights. */
export function isPermissionFault({ code, cause }: Fault): boolean {
  return MAY_BE_REFUSED.has(code) && process.geteuid?.() !== 0 && isRefused(cause);
}

/** `wanted`: the rights that a group would need; by default, to read. */
export async function permissionFault(path: string, wanted?: number, cause?: unknown): Promise<Fault> {
  const { refusing, facts, isAbove } = await findNearest(path);
  const [owner, group] = [await nameIn("/etc/passwd", facts?.uid), await nameIn("/etc/group", facts?.gid)];
  const mode = facts === undefined ? "" : `, mode ${(facts.mode & 0o7777).toString(8).padStart(4, "0")}`;
  const detail = `${refusing} belongs to ${owner} and the group ${group}${mode}, and the command runs as ${nameOfUser()}`;
  const needed = isAbove ? X_OK : (wanted ?? readingOf(facts));
  const advice = mayJoin(facts, needed)
    ? `If you operate Inlet, ask an administrator to add this user to the group ${group}, or run the command with sudo. Consumers need no access.`
    : undefined;
  return new Fault("PERMISSION_DENIED", { detail, advice, cause });
}

/** The system may have no name for the user, as in a container. */
export function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}

function isRefused(error: unknown): boolean {
  return ["EACCES", "EPERM"].includes(systemCode(error));
}

/** The path, or without access to it the nearest folder above that can be looked at. */
async function findNearest(path: string) {
  let refusing = path;
  let facts = await lookAt(path);
  while (facts === undefined && dirname(refusing) !== refusing) {
    refusing = dirname(refusing);
    facts = await lookAt(refusing);
  }
  return { refusing, facts, isAbove: refusing !== path };
}

function readingOf(facts: Stats | undefined): number {
  if (facts?.isSocket()) return W_OK;
  return facts?.isDirectory() ? R_OK | X_OK : R_OK;
}

/** Whether the group has the rights, and this user is not in it. */
function mayJoin(facts: Stats | undefined, wanted: number): boolean {
  if (facts === undefined || facts.gid === 0 || process.getgroups?.().includes(facts.gid)) return false;
  return ((facts.mode >> 3) & wanted) === wanted;
}
