/**
 * Who works on this inbox, and who provably does not any more. Each member holds a lock on a file of its own as long as
 * it lives; where somebody else can take that lock, its holder is gone and will never write again.
 */
import { randomBytes } from "node:crypto";
import { readdir, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { exists, makeFolderDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { isHeldAlone, type KernelLock, tryLock } from "../base/kernel-lock.ts";

/** Below the work folder. */
export const MEMBERS = "members";

export const NAME = /^[0-9a-f]{16}$/;

export interface Members {
  readonly self: string;
  /** False for ourselves, and for one that is merely stopped. */
  isGone(member: string): Promise<boolean>;
  leave(): Promise<void>;
}

/** `state`: where this member keeps its state, for commands on the same machine. */
export async function joinMembers(work: string, state: string): Promise<Members> {
  const folder = join(work, MEMBERS);
  await makeFolderDurably(folder, 0o700);
  // Those that are gone are cleared before we have anything to lose.
  for (const member of await readdir(folder)) if (NAME.test(member)) await clearGone(join(folder, member));
  const { self, lock } = await takeName(folder);
  const facts = { host: hostname(), state };
  // Without them commands go by the configuration alone.
  await writeFile(factsOf(join(folder, self)), `${JSON.stringify(facts)}\n`, { mode: 0o600 }).catch(() => {});
  return {
    self,
    isGone: async (member) => member !== self && (await clearGone(join(folder, member))),
    async leave() {
      try {
        await removeMember(join(folder, self));
      } finally {
        lock.release();
      }
    },
  };
}

/**
 * How many work on this inbox now, for whoever only looks: nothing is made or taken away, and the inbox's own lock is not
 * touched. A member that starts at this very moment takes another name. Throws `DISK_UNREADABLE`.
 */
export async function countMembers(work: string): Promise<number> {
  const folder = join(work, MEMBERS);
  if (!(await exists(folder))) return 0;
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new Fault("DISK_UNREADABLE", { detail: folder, cause });
  });
  let count = 0;
  for (const name of names) if (NAME.test(name) && (await isHeldAlone(join(folder, name)))) count++;
  return count;
}

/** What a member says of itself stands beside its lock. */
export function factsOf(path: string): string {
  return `${path}.json`;
}

async function removeMember(path: string): Promise<void> {
  await rm(factsOf(path), { force: true });
  await rm(path, { force: true });
}

/** Somebody who looks for gone ones may be faster with a file that is not locked yet: then another name is taken. */
async function takeName(folder: string): Promise<{ self: string; lock: KernelLock }> {
  for (;;) {
    const self = randomBytes(8).toString("hex");
    const lock = await tryLock(join(folder, self), "alone");
    if (lock === undefined) continue;
    const isOurs = await exists(join(folder, self)).catch((error: unknown) => {
      lock.release();
      throw error;
    });
    if (isOurs) return { self, lock };
    lock.release();
  }
}

async function clearGone(path: string): Promise<boolean> {
  if (!(await exists(path))) return true;
  const lock = await tryLock(path, "alone");
  if (lock === undefined) return false;
  try {
    await removeMember(path);
    return true;
  } finally {
    lock.release();
  }
}
