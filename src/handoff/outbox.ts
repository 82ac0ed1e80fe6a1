/**
 * The outbox: one file per delivery, `NAME~R.KIND`, from before its round ends until everything that follows is done.
 *
 * Any worker of a round may create its entry. After that, an entry changes only while its lock is held, and by one
 * caller at a time within this process. A finished entry moves to the ledger. A late worker may create a file after that,
 * which is dropped.
 */

import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { KeyedMutex } from "../base/concurrency.ts";
import { type Disk, FolderSyncs, meansNoLinks, systemDisk, tryRead, tryUnlink } from "../base/disk.ts";
import { clearTemporaries, makeFolderDurably, writeUnnamed } from "../base/durable.ts";
import { asFault, tolerate } from "../base/faults.ts";
import { opendir, rm } from "../base/files.ts";
import { type KernelLock, tryLock } from "../base/kernel-lock.ts";
import { Outage } from "../base/outage.ts";
import type { Emit } from "../model/events.ts";
import {
  EMPTY_ENTRY,
  type Entry,
  entryPath,
  formatEntry,
  KINDS,
  type Kind,
  outboxIn,
  parseEntry,
  parseEntryFile,
  parseRoundKey,
  type Stored,
} from "../model/outbox.ts";

/** How many damaged files are reported. */
const MAX_DAMAGED = 10_000;

/** The outage's key for all failures of scans. Each result that cannot be stored has its own key. */
export const SCAN = "scan";

/** File names read at once. */
const BATCH = 512;

export interface OutboxOptions {
  readonly work: string;
  readonly isAlone: boolean;
  finishedPath(name: string, round: number): string;
  onDamaged(path: string): void;
  readonly disk?: Disk;
}

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #disk: Disk;
  readonly #syncs: FolderSyncs;
  readonly #folder: string;
  /** For temporary files. */
  readonly #newFolder: string;
  readonly #lockFolder: string;
  readonly #locks: EntryLocks;
  readonly #mutex = new KeyedMutex();

  constructor(options: OutboxOptions) {
    const { work, isAlone, disk = systemDisk } = options;
    this.#options = options;
    this.#disk = disk;
    this.#syncs = new FolderSyncs(disk);
    this.#folder = outboxIn(work);
    this.#newFolder = join(this.#folder, "new");
    this.#lockFolder = join(this.#folder, "locks");
    this.#locks = new EntryLocks(isAlone ? undefined : this.#lockFolder);
  }

  /** Creates its folders, and clears files that a crash left in them. */
  async open(nowMs: number): Promise<void> {
    const { isAlone } = this.#options;
    for (const folder of [this.#newFolder, this.#lockFolder]) {
      if (isAlone) await rm(folder, { recursive: true, force: true });
      await makeFolderDurably(folder, 0o700);
    }
    await clearTemporaries(this.#newFolder, nowMs);
    for (const key of await this.#disk.list(this.#lockFolder)) {
      if (await this.isFinished(key)) await this.#locks.forget(key);
    }
  }

  /**
   * Creates an entry; an existing one stays as it is. `isDurable`: when it returns, a power cut cannot take the entry
   * away, also if another worker created it.
   */
  async create(key: string, entry: Entry, isDurable: boolean): Promise<void> {
    // Callers create entries with steps durably, so this one is empty.
    if (!isDurable) return this.#createEmpty(key, false);
    const known = await Promise.all(KINDS.map((kind) => this.#disk.kindOf(this.#pathOf(key, kind))));
    if (known.every((kind) => kind === undefined)) {
      await (entry === EMPTY_ENTRY ? this.#createEmpty(key, true) : this.#createFull(key, entry));
    }
    await this.#syncs.sync(this.#folder);
  }

  /** Runs `work` while no other process changes this entry. `undefined`, without running it, if one does. */
  hold<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined> {
    return this.#locks.hold(key, work);
  }

  /** The same, and no other caller in this process changes the entry either. */
  change<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined> {
    return this.hold(key, () => this.#mutex.run(key, work));
  }

  /** One file as it is now. `undefined` if it is missing, or damaged, which is reported. */
  async peek({ key, kind }: FoundEntry): Promise<Stored | undefined> {
    const path = this.#pathOf(key, kind);
    const text = await tryRead(this.#disk, path);
    const entry = text === undefined ? undefined : parseEntry(text, kind);
    if (text !== undefined && entry === undefined) this.#options.onDamaged(path);
    return entry && { entry, kind };
  }

  /** The entry under whichever name it has. */
  async find(key: string): Promise<Stored | undefined> {
    return (await this.#readAll(key))[0];
  }

  /**
   * The entry, for a caller within `change`. Drops files of late workers; `undefined` if the entry is finished.
   */
  async take(key: string): Promise<Stored | undefined> {
    const found = await this.#readAll(key);
    const stored = (await this.isFinished(key)) ? undefined : found.shift();
    // The rest are files of late workers; all of them, if the entry is finished.
    for (const { kind } of found) await tryUnlink(this.#disk, this.#pathOf(key, kind));
    if (stored === undefined) await this.#locks.forget(key);
    return stored;
  }

  async isFinished(key: string): Promise<boolean> {
    return (await this.#disk.kindOf(this.#finishedPath(key))) !== undefined;
  }

  /** Stores a changed entry durably, under the name of its kind. A power cut may undo the change of name. */
  async save(key: string, from: Stored, entry: Entry, kind: Kind): Promise<Stored> {
    const path = this.#pathOf(key, from.kind);
    if (entry !== from.entry) {
      await this.#write(entry, (unnamed) => this.#disk.rename(unnamed, path));
      await this.#syncs.sync(this.#folder);
    }
    if (kind !== from.kind) await this.#disk.rename(path, this.#pathOf(key, kind));
    return { entry, kind };
  }

  /** Moves the entry to the ledger. Its name is not synced: an entry that is back after a power cut is finished again. */
  async finish(key: string, from: Stored, entry: Entry): Promise<void> {
    const path = this.#finishedPath(key);
    await this.#write(entry, (unnamed) => this.#disk.rename(unnamed, path));
    await this.remove(key, from.kind);
  }

  async remove(key: string, kind: Kind): Promise<void> {
    await tryUnlink(this.#disk, this.#pathOf(key, kind));
    await this.#locks.forget(key);
  }

  /** Files with content first: an empty file beside them is from a late worker. */
  async #readAll(key: string): Promise<Stored[]> {
    const files = await Promise.all(KINDS.map((kind) => this.peek({ key, kind })));
    const found = files.filter((stored) => stored !== undefined);
    return found.toSorted(
      (one, other) => Number(one.entry === EMPTY_ENTRY) - Number(other.entry === EMPTY_ENTRY),
    );
  }

  async #createEmpty(key: string, isSynced: boolean): Promise<void> {
    const file = await this.#disk.create(this.#pathOf(key, "wait"), 0o600).catch(tolerate("EEXIST"));
    if (isSynced) await file?.sync().finally(() => file.close());
    else await file?.close();
  }

  async #createFull(key: string, entry: Entry): Promise<void> {
    const path = this.#pathOf(key, "json");
    await this.#write(entry, async (unnamed) => {
      try {
        await this.#disk.link(unnamed, path).catch(tolerate("EEXIST"));
        await this.#disk.unlink(unnamed);
      } catch (error) {
        if (!meansNoLinks(error)) throw error;
        await this.#disk.rename(unnamed, path);
      }
    });
  }

  #write(entry: Entry, place: (unnamed: string) => Promise<void>): Promise<void> {
    return writeUnnamed(this.#disk, { folder: this.#newFolder, content: formatEntry(entry) }, place);
  }

  #pathOf(key: string, kind: Kind): string {
    return entryPath(this.#options.work, key, kind);
  }

  #finishedPath(key: string): string {
    const { name, round } = parseRoundKey(key);
    return this.#options.finishedPath(name, round);
  }
}

export type FoundEntry = NonNullable<ReturnType<typeof parseEntryFile>>;

/** Every entry by its name; none is read. */
export async function* listEntries(work: string): AsyncGenerator<FoundEntry, void, undefined> {
  for await (const { name } of await opendir(outboxIn(work), { bufferSize: BATCH })) {
    const found = parseEntryFile(name);
    if (found !== undefined) yield found;
  }
}

/**
 * Locks on entries between processes that share an inbox, kept by the kernel: they end with their holder. A lock on a
 * removed file excludes no other process, but by then the entry is finished, and every holder sees that.
 */
export class EntryLocks {
  readonly #folder: string | undefined;
  /** `tryLock` on a file that this process has locked would release the lock, so users share it. */
  readonly #held = new Map<string, { readonly taking: ReturnType<typeof tryLock>; users: number }>();

  /** Without a folder this process works alone, and no lock is taken. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** Runs `work` while this process holds the lock. `undefined`, without running it, if another process holds it. */
  async hold<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined> {
    if (this.#folder === undefined) return work();
    const held = this.#held.get(key) ?? { taking: tryLock(join(this.#folder, key), "alone"), users: 0 };
    this.#held.set(key, held);
    held.users++;
    let lock: KernelLock | undefined;
    try {
      lock = await held.taking;
      return lock && (await work());
    } finally {
      held.users--;
      if (held.users === 0) {
        this.#held.delete(key);
        lock?.release();
      }
    }
  }

  /** Removes the lock file of an entry that is finished. Called while the lock is held, or at the start. */
  async forget(key: string): Promise<void> {
    if (this.#folder !== undefined) await tryUnlink(systemDisk, join(this.#folder, key));
  }
}

/** Reports what cannot be read or written: a damaged record once, and a failing disk until it works again. */
export class Failures {
  readonly outage: Outage;
  readonly #folder: string;
  readonly #emit: Emit;
  readonly #damaged = new Set<string>();

  constructor({ work, clock, emit }: { readonly work: string; readonly clock: Clock; readonly emit: Emit }) {
    this.#folder = outboxIn(work);
    this.#emit = emit;
    this.outage = new Outage(clock, {
      began: (fault) => emit({ type: "handoffs-stuck", fault }),
      ended: (lastedMs) => emit({ type: "handoffs-resumed", stuckForMs: lastedMs }),
    });
  }

  /** The next scan tries again. Returns whether the disk is the cause: a damaged record concerns one delivery only. */
  failed(key: string, error: unknown): boolean {
    const fault = asFault(error);
    const isDamaged = fault.code === "RECORD_UNREADABLE";
    if (isDamaged) this.damaged(join(this.#folder, key), fault.message);
    else this.outage.add(SCAN, fault);
    return !isDamaged;
  }

  /** Reported once for each file. */
  damaged(path: string, reason = "not an outbox entry, or one of a newer version"): void {
    if (this.#damaged.has(path) || this.#damaged.size >= MAX_DAMAGED) return;
    this.#damaged.add(path);
    this.#emit({ type: "record-damaged", path, reason });
  }
}
