/** Locks on files that end with their holder, on the machine that a test may replace. */
import { exists } from "./durable.ts";
import { Fault } from "./faults.ts";
import { closedDisks, machine } from "./machine.ts";
import { type KernelLock, tryTake } from "./system-lock.ts";

export type { KernelLock } from "./system-lock.ts";

/** `undefined` if another process holds the lock. Creates the file if it is missing. Throws `DISK_FULL` or `DISK_REFUSED`. */
export async function tryLock(path: string, kind: "alone" | "shared"): Promise<KernelLock | undefined> {
  const reason = closedDisks();
  if (reason !== undefined) throw reason;
  return machine().tryLock(path, kind);
}

/**
 * Whether a process holds the lock alone. Creates no file, and blocks other processes only for the moment of this call.
 * Throws `DISK_UNREADABLE`.
 */
export async function isHeldAlone(path: string): Promise<boolean> {
  if (!(await exists(path))) return false;
  try {
    const taken = tryTake(path, "shared", { readOnly: true });
    taken?.close();
    return taken === undefined;
  } catch (error) {
    // Its holder may have removed the file since.
    if (!(await exists(path))) return false;
    throw new Fault("DISK_UNREADABLE", { detail: path, cause: error });
  }
}
