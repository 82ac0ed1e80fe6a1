/**
 * Locks on outbox entries between processes that share an inbox, kept by the kernel: they end with their holder.
 *
 * A lock file stays until its entry is finished. A lock on a removed file excludes no other process, but by
 * then the entry is finished, and every holder sees that.
 */
import { join } from "node:path";
import { KeyedMutex } from "../base/concurrency.ts";
import { systemDisk, tryUnlink } from "../base/disk.ts";
import { type KernelLock, tryLock } from "../base/kernel-lock.ts";

interface Held {
  readonly lock: KernelLock;
  users: number;
}

export class EntryLocks {
  readonly #folder: string | undefined;
  /** `tryLock` on a file that this process has locked would release the lock, so users share it. */
  readonly #held = new Map<string, Held>();
  readonly #mutex = new KeyedMutex();

  /** Without a folder this process works alone, and no lock is taken. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** Runs `work` while this process holds the lock. `undefined`, without running it, if another process holds it. */
  async hold<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined> {
    const folder = this.#folder;
    if (folder === undefined) return work();
    const held = await this.#mutex.run(key, () => this.#tryTake(key, folder));
    if (held === undefined) return undefined;
    try {
      return await work();
    } finally {
      held.users--;
      if (held.users === 0) {
        this.#held.delete(key);
        held.lock.release();
      }
    }
  }

  /** Removes the lock file of an entry that is finished. Called while the lock is held. */
  async forget(key: string): Promise<void> {
    if (this.#folder !== undefined) await tryUnlink(systemDisk, join(this.#folder, key));
  }

  async #tryTake(key: string, folder: string): Promise<Held | undefined> {
    const known = this.#held.get(key);
    if (known !== undefined) {
      known.users++;
      return known;
    }
    const lock = await tryLock(join(folder, key), "alone");
    if (lock === undefined) return undefined;
    const held = { lock, users: 1 };
    this.#held.set(key, held);
    return held;
  }
}
