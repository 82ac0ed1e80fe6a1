/** Watches of folders in a world: what a process is told of changes by others, and when. */
import { Fault } from "../../../src/base/faults.ts";
import type { FolderEvents, FolderWatch, FolderWatchOptions } from "../../../src/base/system-watch.ts";
import { type AnyEntry, type FolderEntry, type FolderListener, failure } from "./disk.ts";
import type { Ground, Process } from "./process.ts";
import type { Random } from "./random.ts";

/**
 * When changes are reported: within milliseconds, seconds to minutes later, each of them twice, or never. Blind: the system
 * cannot watch a folder, which is polled from then on.
 */
const WATCH_MOODS = ["prompt", "late", "twice", "never", "blind"] as const;
export type WatchMood = (typeof WATCH_MOODS)[number];

/** As long as a real poll. */
const POLL_MS = 5_000;
const PROMPT_MS = 50;
const LATE_MS = 180_000;
const BEGIN_MS = 200;

type Told = Parameters<FolderEvents["changed"]>[1];

/**
 * As the real one, it reports what a look at an entry finds, some time after the change: a file that is added and removed
 * before that is not reported, and several changes are one.
 */
export class SimulatedWatch implements FolderWatch {
  readonly process: Process;
  readonly ready: Promise<void>;
  readonly #ground: Ground;
  readonly #folder: string;
  readonly #options: FolderWatchOptions;
  readonly #events: FolderEvents;
  #random: Random | undefined;
  #level: Level | undefined;
  #isPolling = false;
  #isClosed = false;
  readonly #openedMs: number;

  constructor(
    process: Process,
    ground: Ground,
    folder: string,
    options: FolderWatchOptions,
    events: FolderEvents,
  ) {
    this.process = process;
    this.#ground = ground;
    this.#folder = folder;
    this.#options = options;
    this.#events = events;
    this.#openedMs = ground.schedule.nowMs;
    this.ready = this.#open();
  }

  async close(): Promise<void> {
    this.end();
  }

  end(): void {
    this.#isClosed = true;
    this.#level?.end();
    this.#ground.watches.delete(this);
  }

  get mood(): WatchMood {
    return this.#isPolling ? "blind" : (this.#ground.watchMood ?? "never");
  }

  /** Looks at an entry when its change is noticed. */
  plan(look: () => void): void {
    if (this.mood === "blind") this.#goBlind();
    const { schedule } = this.#ground;
    schedule.after(this.#delayMs(), () => this.#isClosed || this.process.run(look), this.process);
  }

  tell(path: string, told: Told): void {
    this.#events.changed(path, told);
    if (this.mood !== "twice") return;
    this.#later(this.#draw().int(1_000), () => this.#events.changed(path, told));
  }

  #open(): Promise<void> {
    if (this.mood === "never") {
      this.#begin();
      return Promise.resolve();
    }
    const ready = Promise.withResolvers<void>();
    this.#later(1 + this.#draw().int(BEGIN_MS), () => {
      if (this.mood === "blind") this.#goBlind();
      this.#begin();
      ready.resolve();
    });
    return ready.promise;
  }

  /** A missing folder is never watched. */
  #begin(): void {
    const entry = this.#ground.disk.tryGet(this.#folder);
    if (entry?.kind !== "folder") return;
    const { ignoreInitial, depth = 0 } = this.#options;
    this.#level = new Level(this, entry, this.#folder, depth);
    this.#level.begin(ignoreInitial && !this.#isPolling);
  }

  /** Reports all entries, as the real one does. */
  #goBlind(): void {
    if (this.#isPolling) return;
    this.#isPolling = true;
    const detail = `${this.#folder} (ENOSPC)`;
    const cause = failure("ENOSPC", this.#folder);
    this.#later(0, () => this.#events.unwatchable(new Fault("WATCH_REFUSED", { detail, cause })));
    this.#level?.forget();
  }

  #delayMs(): number {
    const { schedule } = this.#ground;
    if (this.mood === "blind") return POLL_MS - ((schedule.nowMs - this.#openedMs) % POLL_MS);
    const isLate = this.mood === "late";
    return isLate ? 1_000 + this.#draw().int(LATE_MS) : 1 + this.#draw().int(PROMPT_MS);
  }

  #later(ms: number, work: () => void): void {
    const run = () => this.#isClosed || this.process.run(work);
    this.#ground.schedule.after(ms, run, this.process);
  }

  /** Its own numbers, so that a world without watches stays the same. */
  #draw(): Random {
    this.#random ??= this.process.forkRandom();
    return this.#random;
  }
}

interface Seen {
  readonly entry: AnyEntry;
  readonly changed: number;
}

/** One watched folder: the one that was named, or one below it. */
class Level implements FolderListener {
  readonly #watch: SimulatedWatch;
  readonly #folder: FolderEntry;
  readonly #path: string;
  readonly #depth: number;
  readonly #seen = new Map<string, Seen>();
  readonly #below = new Map<string, Level>();
  /** A look at them is planned. */
  readonly #due = new Set<string>();
  #isEnded = false;

  constructor(watch: SimulatedWatch, folder: FolderEntry, path: string, depth: number) {
    this.#watch = watch;
    this.#folder = folder;
    this.#path = path;
    this.#depth = depth;
  }

  begin(ignoresPresent: boolean): void {
    this.#folder.listeners ??= new Set();
    this.#folder.listeners.add(this);
    for (const [name, entry] of this.#folder.entries) {
      if (!ignoresPresent) {
        this.changed(name);
        continue;
      }
      this.#seen.set(name, { entry, changed: entry.changed });
      this.#descend(name, entry, true);
    }
  }

  changed(name: string): void {
    if (this.#due.has(name) || this.#watch.mood === "never") return;
    this.#due.add(name);
    this.#watch.plan(() => this.#look(name));
  }

  /** All entries are reported again. */
  forget(): void {
    for (const level of this.#below.values()) level.end();
    this.#below.clear();
    this.#seen.clear();
    for (const name of this.#folder.entries.keys()) this.changed(name);
  }

  end(): void {
    this.#isEnded = true;
    const { listeners } = this.#folder;
    listeners?.delete(this);
    if (listeners?.size === 0) this.#folder.listeners = undefined;
    for (const level of this.#below.values()) level.end();
  }

  #look(name: string): void {
    this.#due.delete(name);
    if (this.#isEnded) return;
    const before = this.#seen.get(name);
    const entry = this.#folder.entries.get(name);
    if (entry?.kind !== before?.entry.kind || (entry?.kind === "folder" && entry !== before?.entry)) {
      this.#replace(name, before, entry);
    } else if (entry !== undefined && (entry !== before?.entry || entry.changed !== before.changed)) {
      this.#seen.set(name, { entry, changed: entry.changed });
      if (entry.kind !== "folder") this.#watch.tell(`${this.#path}/${name}`, "change");
    }
  }

  #replace(name: string, before: Seen | undefined, entry: AnyEntry | undefined): void {
    const path = `${this.#path}/${name}`;
    if (before !== undefined) {
      this.#below.get(name)?.leave();
      this.#below.delete(name);
      this.#seen.delete(name);
      this.#watch.tell(path, "other");
    }
    if (entry === undefined) return;
    this.#seen.set(name, { entry, changed: entry.changed });
    this.#watch.tell(path, entry.kind === "folder" ? "other" : "add");
    this.#descend(name, entry, false);
  }

  /** The folder is gone, with all that was in it. */
  leave(): void {
    for (const level of this.#below.values()) level.leave();
    for (const name of this.#seen.keys()) this.#watch.tell(`${this.#path}/${name}`, "other");
    this.end();
  }

  #descend(name: string, entry: AnyEntry, ignoresPresent: boolean): void {
    if (entry.kind !== "folder" || this.#depth === 0) return;
    const level = new Level(this.#watch, entry, `${this.#path}/${name}`, this.#depth - 1);
    this.#below.set(name, level);
    level.begin(ignoresPresent);
  }
}
