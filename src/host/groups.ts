/** Groups of this system, by name or number. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { Fault, systemCode } from "../base/faults.ts";

/** A directory service that does not answer must not hold up the start for long. */
const LOOKUP_TIMEOUT_MS = 10_000;

/**
 * The number of a group. `getent` also knows groups of directory services such as LDAP; where it cannot be started,
 * `/etc/group` is read. Throws `GROUP_UNKNOWN` and `STOPPED`.
 */
export async function findGroup(
  group: string,
  signal: AbortSignal,
  lookUp: readonly [program: string, database: string] = ["getent", "group"],
): Promise<number> {
  if (/^\d+$/.test(group)) return Number(group);
  const gid = parseGroup(await readEntry(group, signal, lookUp));
  if (gid === undefined) throw new Fault("GROUP_UNKNOWN", { detail: group });
  return gid;
}

/** The number in a line such as `sales:x:1234:anna`. A directory service may spell the name in another case. */
export function parseGroup(line: string | undefined): number | undefined {
  const [, , gid = ""] = line?.split(":") ?? [];
  return /^\d+$/.test(gid) ? Number(gid) : undefined;
}

async function readEntry(
  group: string,
  signal: AbortSignal,
  [program, database]: readonly [string, string],
): Promise<string | undefined> {
  try {
    const options = { timeout: LOOKUP_TIMEOUT_MS, signal };
    return (await promisify(execFile)(program, [database, group], options)).stdout.split("\n")[0];
  } catch (error) {
    if (signal.aborted) throw new Fault("STOPPED", { cause: error });
    // A program that cannot be started has a code such as ENOENT, or EACCES for a folder of PATH. This one knows no such group.
    if (!systemCode(error).startsWith("E")) return undefined;
    // Without the file there is no such group.
    const lines = (await readFile("/etc/group", "utf8").catch(() => "")).split("\n");
    return lines.find((line) => line.startsWith(`${group}:`));
  }
}
