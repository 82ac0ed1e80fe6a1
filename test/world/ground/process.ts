/** A process in the world: the machine that its code runs on. It can be killed, frozen, and met by failing disks. */
import { createHash } from "node:crypto";
import type { Stats } from "node:fs";
import { type Machine, onMachine, type Timer } from "../../../src/base/machine.ts";
import type { Files, OpenFile } from "../../../src/base/system-files.ts";
import type { KernelLock } from "../../../src/base/system-lock.ts";
import type { ProgramEnd, ProgramStart } from "../../../src/base/system-program.ts";
import type { FolderEvents, FolderWatchOptions } from "../../../src/base/system-watch.ts";
import { type AnyEntry, type OpenEntry, pathOf, type SimulatedDisk } from "./disk.ts";
import type { Random } from "./random.ts";
import type { Owner, Planned, Schedule } from "./schedule.ts";
import { SimulatedWatch, type WatchMood } from "./watches.ts";

/** What processes share. */
export interface Ground {
  readonly schedule: Schedule;
  readonly disk: SimulatedDisk;
  readonly random: Random;
  /** Locks are granted to everybody, as on some network file systems. */
  areLocksBroken: boolean;
  readonly locks: Map<string, Map<Process, "alone" | "shared">>;
  readonly watches: Set<SimulatedWatch>;
  /** Missing: "never". */
  watchMood?: WatchMood;
  /** How far the clocks of the machine go ahead of the true time. Missing: they are right. */
  wallOffsetMs?: number;
  /** True time at which the machine was started last. Missing: the beginning. */
  bootedMs?: number;
  /** How long a step of the disk takes at most, if that is longer than usual. */
  slowStepMs?: number;
  /** Only steps in this folder of ours are slow. */
  slowFolder?: string | undefined;
  /** How long a program runs at most, if that is longer than usual. */
  longestProgramMs?: number;
  /** Throws the system's error if this step fails. Returns for how long it alone waits before it is done. */
  disturb(process: Process, step: Step): number;
  runProgram(process: Process, program: ProgramStart): Promise<Partial<ProgramEnd>>;
  post(
    process: Process,
    url: URL,
    body: string,
  ): Promise<{ readonly status: number; readonly retryAfter: string | undefined }>;
}

export interface Step {
  readonly type: "read" | "change" | "sync";
  readonly path: string;
  readonly entry?: AnyEntry | undefined;
}

class SimulatedTimer implements Timer {
  readonly #schedule: Schedule;
  readonly #run: () => void;
  readonly #ms: number;
  readonly #owner: Owner;
  #planned: Planned | undefined;

  constructor(schedule: Schedule, run: () => void, ms: number, owner: Owner) {
    this.#schedule = schedule;
    this.#run = run;
    this.#ms = ms;
    this.#owner = owner;
  }

  refresh(): this {
    this.stop();
    this.#planned = this.#schedule.after(this.#ms, this.#run, this.#owner);
    return this;
  }

  unref(): this {
    return this;
  }

  stop(): void {
    this.#schedule.cancel(this.#planned);
  }
}

const OWN_USER = process.geteuid?.() ?? 0;
const OWN_GROUP = process.getegid?.() ?? 0;

/** How long a step of the disk takes. Most of them take no time, so that worlds are quick. */
const STEP_MS = 3;
/** How long a program runs at most. */
export const PROGRAM_MS = 2_000;

export class Process implements Owner, Machine {
  isDead = false;
  frozenUntilMs = 0;
  /** It is killed after this many more steps of the disk, counted where `killsIn` says. */
  stepsToLive = Number.POSITIVE_INFINITY;
  /** Counts only steps in this folder of ours. */
  killsIn: string | undefined;
  /** Counts also steps that change nothing. */
  killsAtReads = true;
  onKilled: () => void = () => {};
  /** It is frozen for `freezeMs` after this many more steps, counted where `freezesIn` says. */
  stepsToFreeze = Number.POSITIVE_INFINITY;
  freezeMs = 0;
  /** Counts only changes in this folder of ours. */
  freezesIn: string | undefined;
  /** The pause ends sooner if another process adds a name here. In `freezesIn`, it is the name that this process changes next. */
  thawsAt: string | undefined;
  /** A slow disk is quick for it. */
  isPrompt = false;
  /** It reads in no time, and is disturbed by nothing. */
  isJudge = false;
  /** Of a second host, whose clock goes differently. Missing: as that of the ground. */
  wallOffsetMs: number | undefined;
  steps = 0;
  readonly name: string;
  readonly files: Files;
  readonly #ground: Ground;
  readonly #random: Random;

  constructor(name: string, ground: Ground, random = ground.random.fork()) {
    this.name = name;
    this.#ground = ground;
    this.#random = random;
    this.files = this.#makeFiles();
  }

  /** Runs work as this process. */
  run<Result>(work: () => Result): Result {
    return onMachine(this, work);
  }

  /** Nothing that it waits for happens any longer. */
  kill(): void {
    if (this.isDead) return;
    this.isDead = true;
    for (const holders of this.#ground.locks.values()) holders.delete(this);
    for (const watch of this.#ground.watches) if (watch.process === this) watch.end();
    this.onKilled();
  }

  now = () => Math.floor(this.#ground.schedule.nowMs + (this.wallOffsetMs ?? this.#ground.wallOffsetMs ?? 0));
  monotonicMs = () => this.#ground.schedule.nowMs;
  uptimeMs = () => this.#ground.schedule.nowMs - (this.#ground.bootedMs ?? START_MS);
  random = () => this.#random.next();

  forkRandom(): Random {
    return this.#random.fork();
  }

  randomBytes(size: number): Buffer {
    const bytes = Buffer.allocUnsafe(size);
    for (let at = 0; at < size; at++) bytes[at] = this.#random.int(256);
    return bytes;
  }

  async deriveKey(text: string, salt: string, size: number): Promise<Buffer> {
    return createHash("sha256").update(`${salt}\0${text}`).digest().subarray(0, size);
  }

  setTimeout(work: () => void, ms: number): Timer {
    return this.#timer(work, ms, false);
  }

  setInterval(work: () => void, ms: number): Timer {
    return this.#timer(work, ms, true);
  }

  clearTimer(timer: Timer | undefined): void {
    if (timer instanceof SimulatedTimer) timer.stop();
  }

  nextTurn(): Promise<void> {
    return this.isJudge ? Promise.resolve() : this.#wait(0);
  }

  async tryLock(path: string, kind: "alone" | "shared"): Promise<KernelLock | undefined> {
    await this.#step("change", path);
    const { disk, locks, areLocksBroken } = this.#ground;
    disk.open(path, "a", 0o600, OWN_USER).close();
    const holders = locks.get(path) ?? new Map<Process, "alone" | "shared">();
    locks.set(path, holders);
    const isHeld = [...holders].some(
      ([holder, held]) => holder !== this && (held === "alone" || kind === "alone"),
    );
    if (isHeld && !areLocksBroken) return undefined;
    holders.set(this, kind);
    return { release: () => void holders.delete(this) };
  }

  async watchFolder(folder: string, options: FolderWatchOptions, events: FolderEvents) {
    const watch = new SimulatedWatch(this, this.#ground, folder, options, events);
    this.#ground.watches.add(watch);
    return watch;
  }

  async runProgram(program: ProgramStart, _killMs: number, signal: AbortSignal): Promise<ProgramEnd> {
    const nothing = { output: "", stdout: Buffer.alloc(0), firstLine: { stdout: "", stderr: "" } };
    const begun = this.#ground.runProgram(this, program);
    await this.#waitUnless(signal, this.#random.int(this.#ground.longestProgramMs ?? PROGRAM_MS));
    if (signal.aborted) return { exitCode: undefined, why: "it was stopped", ...nothing };
    return { exitCode: 0, why: undefined, ...nothing, ...(await begun) };
  }

  async post({ url, body }: { url: URL; body: string }, signal: AbortSignal) {
    await this.#wait(this.#random.int(200));
    signal.throwIfAborted();
    const answer = await this.#ground.post(this, url, body);
    await this.#wait(this.#random.int(200));
    return answer;
  }

  /** Resolves after this time, unless the process is dead by then. */
  wait(ms: number): Promise<void> {
    return this.#wait(ms);
  }

  async #waitUnless(signal: AbortSignal, ms: number): Promise<void> {
    if (signal.aborted) return;
    const { schedule } = this.#ground;
    const waiting = Promise.withResolvers<void>();
    const planned = schedule.after(ms, waiting.resolve, this);
    const end = () => {
      schedule.cancel(planned);
      this.nextTurn().then(waiting.resolve);
    };
    signal.addEventListener("abort", end, { once: true });
    await waiting.promise;
    signal.removeEventListener("abort", end);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#ground.schedule.after(ms, resolve, this));
  }

  #timer(work: () => void, ms: number, repeats: boolean): SimulatedTimer {
    const run = () => {
      if (repeats) timer.refresh();
      onMachine(this, work);
    };
    const timer = new SimulatedTimer(this.#ground.schedule, run, Math.max(1, ms), this);
    return timer.refresh();
  }

  #step(type: Step["type"], path: string, entry?: AnyEntry): Promise<void> | undefined {
    return this.isJudge ? undefined : this.#begin(type, path, entry);
  }

  /** One step of the disk: it takes time, and may fail, or be the last one. `undefined`: it is done at once. */
  #begin(type: Step["type"], path: string, entry?: AnyEntry): Promise<void> | undefined {
    const { schedule } = this.#ground;
    this.steps++;
    if (this.isDead) return never();
    const step: Step = { type, path: this.#ground.disk.nameOf(path), entry };
    const isRead = type === "read";
    const { killsIn } = this;
    const isCounted =
      killsIn === undefined || ((this.killsAtReads || !isRead) && step.path.includes(`/${killsIn}/`));
    if (isCounted) this.stepsToLive--;
    if (this.stepsToLive < 0) {
      schedule.after(0, () => this.kill());
      return never();
    }
    const { freezesIn } = this;
    const mayFreeze = !isRead && freezesIn !== undefined && step.path.includes(`/${freezesIn}/`);
    if ((freezesIn === undefined || mayFreeze) && --this.stepsToFreeze === 0) {
      this.frozenUntilMs = schedule.nowMs + this.freezeMs;
      if (mayFreeze) this.thawsAt ??= step.path;
    }
    const slowStepMs = this.#slowMs(step);
    const isLater = this.frozenUntilMs > schedule.nowMs || slowStepMs > 0;
    if (isLater || this.#random.chance(0.25)) return this.#stepLater(step, Math.max(STEP_MS, slowStepMs));
    let stallMs: number;
    try {
      stallMs = this.#ground.disturb(this, step);
    } catch (error) {
      return Promise.reject(error);
    }
    // What happened before this step may have stopped the process.
    return stallMs > 0 || this.frozenUntilMs > schedule.nowMs ? this.#wait(stallMs) : undefined;
  }

  #slowMs({ path }: Step): number {
    const { slowStepMs = 0, slowFolder } = this.#ground;
    if (this.isPrompt) return 0;
    return slowFolder === undefined || path.includes(`/${slowFolder}`) ? slowStepMs : 0;
  }

  async #stepLater(step: Step, upToMs: number): Promise<void> {
    await this.#wait(this.#random.next() * upToMs);
    const stallMs = this.#ground.disturb(this, step);
    if (stallMs > 0 || this.frozenUntilMs > this.#ground.schedule.nowMs) await this.#wait(stallMs);
  }

  /** The files of the world, with the results of Node's functions as far as the program uses them. */
  #makeFiles(): Files {
    const { disk } = this.#ground;
    const looks = {
      lstat: (path: string, options?: { bigint?: boolean }) => statsOf(disk.get(path), options?.bigint),
      stat: (path: string, options?: { bigint?: boolean }) => statsOf(disk.get(path, true), options?.bigint),
      statfs: () => ({ type: 0, bsize: 4096, bavail: disk.isFull ? 0 : 2 ** 30, files: 0, ffree: 0 }),
      readFile: (path: string) => {
        const entry = disk.get(path, true);
        return entry.kind === "pipe" ? never() : disk.contentOf(entry, path).toString();
      },
      readdir: (path: string, options?: { withFileTypes?: boolean }) => {
        const { entries } = disk.folder(path);
        if (!options?.withFileTypes) return [...entries.keys()];
        return Array.from(entries, ([name, entry]) => new Dirent(name, entry));
      },
      opendir: (path: string) => {
        const entries = Array.from(disk.folder(path).entries, ([name, entry]) => new Dirent(name, entry));
        return (async function* () {
          yield* entries;
        })();
      },
      realpath: (path: string) => {
        const { folder, name } = disk.find(path, true);
        return `${pathOf(folder)}/${name}`;
      },
    };
    const create = (path: string, content: string | Uint8Array, flag: string, mode: number) => {
      const open = disk.open(path, flag, mode, OWN_USER, OWN_GROUP);
      if (open.isBlocked) return never();
      open.write(content);
      return open.close();
    };
    const change = (path: string, make: (entry: AnyEntry) => void, isFollowed = false) => {
      const { folder, name, entry } = disk.find(path, isFollowed);
      make(entry ?? disk.get(path));
      folder.tell(name);
    };
    const changes = {
      rm: (path: string, options?: { recursive?: boolean; force?: boolean }) => {
        if (disk.tryGet(path) === undefined && options?.force) return;
        if (options?.recursive) disk.removeTree(path);
        else disk.unlink(path);
      },
      rmdir: (path: string) => disk.removeFolder(path),
      mkdir: (path: string, options?: { mode?: number; recursive?: boolean }) => {
        if (options?.recursive && disk.tryGet(path) !== undefined) return;
        disk.makeFolder(path, options?.mode ?? 0o777, OWN_USER, OWN_GROUP);
      },
      makeFolder: (path: string, mode: number) => void disk.makeFolder(path, mode, OWN_USER, OWN_GROUP),
      unlink: (path: string) => disk.unlink(path),
      writeFile: (path: string, text: string, options?: { flag?: string; mode?: number }) =>
        create(path, text, options?.flag ?? "w", options?.mode ?? 0o666),
      chmod: (path: string, mode: number) => change(path, (entry) => disk.setMode(entry, mode), true),
      lchown: (path: string, uid: number, gid: number) =>
        change(path, (entry) => disk.setOwner(entry, uid, gid)),
    };
    const pairs = {
      rename: (from: string, to: string) => disk.rename(from, to),
      link: (from: string, to: string) => disk.link(from, to),
      copyFile: (from: string, to: string) => {
        const entry = disk.get(from, true);
        return create(to, disk.contentOf(entry, from), "wx", entry.mode);
      },
    };
    type Work = (path: string, ...rest: never[]) => unknown;
    /** Each call is one step at the path that it reads or changes. */
    const inSteps = (type: Step["type"], works: Readonly<Record<string, Work>>, at: 0 | 1 = 0) =>
      Object.entries(works).map(([name, work]) => {
        // None of them has more arguments.
        const call = async (one: string, two: never, three: never) => {
          await this.#step(type, at === 0 ? one : two);
          return work(one, two, three);
        };
        return [name, call] as const;
      });
    const files = {
      ...Object.fromEntries([
        ...inSteps("read", looks),
        ...inSteps("change", changes),
        ...inSteps("change", pairs, 1),
      ]),
      openFile: async (path: string, flags: string | number, mode: number) => {
        const isRead = flags === "r" || typeof flags === "number";
        await this.#step(isRead ? "read" : "change", path);
        const open = disk.open(path, flags, mode, OWN_USER, OWN_GROUP);
        return open.isBlocked ? never() : this.#openFile(open);
      },
    };
    return files as unknown as Files;
  }

  #openFile(open: OpenEntry): OpenFile {
    const { disk } = this.#ground;
    const { path, entry } = open;
    const step = async <Result>(type: Step["type"], work: () => Result): Promise<Result> => {
      await this.#step(type, path, entry);
      return work();
    };
    const sync = () => step("sync", () => disk.sync(entry));
    return {
      at: (name) => `/proc/self/fd/${open.fd}/${name}`,
      write: (content) => step("change", () => open.write(content)),
      read: (buffer, position) => step("read", () => open.read(buffer, position)),
      readText: () => step("read", () => open.readText()),
      stat: () => step("read", () => statsOf(entry)),
      statExactly: () => step("read", () => statsOf(entry, true) as never),
      chmod: (mode) => step("change", () => open.setMode(mode)),
      truncate: () => step("change", () => open.truncate()),
      sync,
      datasync: sync,
      close: async () => open.close(),
      closeNow: () => open.close(),
    };
  }
}

/** When the world's machine was started. */
export const START_MS = Date.UTC(2026, 0, 5, 8);

/** What waits for it ends with its process. */
const never = () => new Promise<never>(() => {});

/** As Node's `Dirent` and `Stats`, as far as the program uses them. */
class Kinds {
  readonly #kind: AnyEntry["kind"];

  constructor({ kind }: AnyEntry) {
    this.#kind = kind;
  }

  isFile(): boolean {
    return this.#kind === "file";
  }

  isDirectory(): boolean {
    return this.#kind === "folder";
  }

  isSymbolicLink(): boolean {
    return this.#kind === "link";
  }

  isFIFO(): boolean {
    return this.#kind === "pipe";
  }
}

class Dirent extends Kinds {
  readonly name: string;

  constructor(name: string, entry: AnyEntry) {
    super(entry);
    this.name = name;
  }
}

class SimulatedStats extends Kinds {
  readonly ino: number;
  readonly dev: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly mtimeMs: number;

  constructor(entry: AnyEntry) {
    super(entry);
    this.ino = entry.ino;
    this.dev = entry.dev;
    this.mode = entry.mode;
    this.uid = entry.uid;
    this.gid = entry.gid;
    this.size = entry.kind === "file" ? entry.size : 0;
    this.mtimeMs = Math.floor(entry.modifiedMs);
  }
}

class ExactStats extends Kinds {
  readonly ino: bigint;
  readonly dev: bigint;
  readonly mode: bigint;
  readonly uid: bigint;
  readonly gid: bigint;
  readonly size: bigint;
  readonly mtimeMs: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly birthtimeNs: bigint;

  constructor(entry: AnyEntry) {
    super(entry);
    this.ino = BigInt(entry.ino);
    this.dev = BigInt(entry.dev);
    this.mode = BigInt(entry.mode);
    this.uid = BigInt(entry.uid);
    this.gid = BigInt(entry.gid);
    this.size = BigInt(entry.kind === "file" ? entry.size : 0);
    this.mtimeMs = BigInt(Math.floor(entry.modifiedMs));
    // They only have to differ where real ones would.
    this.mtimeNs = BigInt(entry.modified);
    this.ctimeNs = BigInt(entry.changed);
    this.birthtimeNs = this.ino;
  }
}

function statsOf(entry: AnyEntry, isExact = false): Stats {
  return (isExact ? new ExactStats(entry) : new SimulatedStats(entry)) as unknown as Stats;
}
