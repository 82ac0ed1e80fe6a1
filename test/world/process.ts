/** A process in the world: the machine that its code runs on. It can be killed, frozen, and met by failing disks. */
import { createHash } from "node:crypto";
import type { Stats } from "node:fs";
import { type Machine, onMachine, type Timer } from "../../src/base/machine.ts";
import type { Files, OpenFile } from "../../src/base/system-files.ts";
import type { KernelLock } from "../../src/base/system-lock.ts";
import type { ProgramEnd, ProgramStart } from "../../src/base/system-program.ts";
import type { FolderEvents } from "../../src/base/system-watch.ts";
import { type AnyEntry, failure, type OpenEntry, pathOf, type SimulatedDisk } from "./disk.ts";
import type { Random } from "./random.ts";
import type { Owner, Planned, Schedule } from "./schedule.ts";

/** What processes share. */
export interface Ground {
  readonly schedule: Schedule;
  readonly disk: SimulatedDisk;
  readonly random: Random;
  /** Locks are granted to everybody, as on some network file systems. */
  areLocksBroken: boolean;
  readonly locks: Map<string, Map<Process, "alone" | "shared">>;
  readonly watches: Set<Watch>;
  /** Throws the system's error if this step fails. */
  disturb(process: Process, step: Step): void;
  runProgram(process: Process, program: ProgramStart): Promise<Partial<ProgramEnd>>;
  post(url: URL, body: string): Promise<{ readonly status: number; readonly retryAfter: string | undefined }>;
}

interface Watch {
  readonly process: Process;
  readonly folder: string;
  readonly events: FolderEvents;
}

export interface Step {
  readonly type: "read" | "change" | "sync";
  readonly path: string;
  readonly entry?: AnyEntry | undefined;
}

interface StoppableTimer extends Timer {
  stop(): void;
}

const OWN_USER = process.geteuid?.() ?? 0;

/** How long a step of the disk takes. Most of them take no time, so that worlds are quick. */
const STEP_MS = 3;

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
  steps = 0;
  readonly name: string;
  readonly files: Files;
  readonly #ground: Ground;
  readonly #random: Random;

  constructor(name: string, ground: Ground) {
    this.name = name;
    this.#ground = ground;
    this.#random = ground.random.fork();
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
    for (const watch of this.#ground.watches) if (watch.process === this) this.#ground.watches.delete(watch);
    this.onKilled();
  }

  now = () => Math.floor(this.#ground.schedule.nowMs);
  monotonicMs = () => this.#ground.schedule.nowMs;
  uptimeMs = () => this.#ground.schedule.nowMs - START_MS;
  random = () => this.#random.next();

  randomBytes(size: number): Buffer {
    return Buffer.from(Array.from({ length: size }, () => this.#random.int(256)));
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
    if (timer !== undefined) (timer as StoppableTimer).stop();
  }

  nextTurn(): Promise<void> {
    return this.#wait(0);
  }

  async tryLock(path: string, kind: "alone" | "shared"): Promise<KernelLock | undefined> {
    await this.#step({ type: "change", path });
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

  async watchFolder(folder: string, _options: unknown, events: FolderEvents) {
    const watch = { process: this, folder, events };
    const { watches } = this.#ground;
    watches.add(watch);
    return { ready: Promise.resolve(), close: async () => void watches.delete(watch) };
  }

  async runProgram(program: ProgramStart, _killMs: number, signal: AbortSignal): Promise<ProgramEnd> {
    const nothing = { output: "", stdout: Buffer.alloc(0), firstLine: { stdout: "", stderr: "" } };
    const begun = this.#ground.runProgram(this, program);
    await this.#wait(this.#random.int(2_000));
    if (signal.aborted) return { exitCode: undefined, why: "it was stopped", ...nothing };
    return { exitCode: 0, why: undefined, ...nothing, ...(await begun) };
  }

  async post({ url, body }: { url: URL; body: string }, signal: AbortSignal) {
    await this.#wait(this.#random.int(200));
    signal.throwIfAborted();
    const answer = await this.#ground.post(url, body);
    await this.#wait(this.#random.int(200));
    return answer;
  }

  /** Resolves after this time, unless the process is dead by then. */
  wait(ms: number): Promise<void> {
    return this.#wait(ms);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#ground.schedule.after(ms, resolve, this));
  }

  #timer(work: () => void, ms: number, repeats: boolean): StoppableTimer {
    const { schedule } = this.#ground;
    let planned: Planned | undefined;
    const fire = () => {
      if (repeats) timer.refresh();
      onMachine(this, work);
    };
    const timer: StoppableTimer = {
      refresh: () => {
        timer.stop();
        planned = schedule.after(Math.max(1, ms), fire, this);
        return timer;
      },
      unref: () => timer,
      stop: () => schedule.cancel(planned),
    };
    timer.refresh();
    return timer;
  }

  /** One step of the disk: it takes time, and may fail, or be the last one. */
  async #step({ path, ...rest }: Step): Promise<void> {
    const step = { ...rest, path: this.#ground.disk.nameOf(path) };
    this.steps++;
    if (this.isDead) return new Promise(() => {});
    const isCounted = this.killsAtReads || step.type !== "read";
    if (this.killsIn === undefined || (isCounted && step.path.includes(`/${this.killsIn}/`)))
      this.stepsToLive--;
    if (this.stepsToLive < 0) {
      this.#ground.schedule.after(0, () => this.kill());
      return new Promise(() => {});
    }
    const mayFreeze = step.type !== "read" && step.path.includes(`/${this.freezesIn}/`);
    if ((this.freezesIn === undefined || mayFreeze) && --this.stepsToFreeze === 0) {
      this.frozenUntilMs = this.#ground.schedule.nowMs + this.freezeMs;
      if (mayFreeze) this.thawsAt ??= step.path;
    }
    if (this.frozenUntilMs > this.#ground.schedule.nowMs || this.#random.chance(0.25)) {
      await this.#wait(this.#random.next() * STEP_MS);
    }
    this.#ground.disturb(this, step);
  }

  /** The files of the world, with the results of Node's functions as far as the program uses them. */
  #makeFiles(): Files {
    const { disk } = this.#ground;
    const looks = {
      lstat: (path: string, options?: { bigint?: boolean }) => statsOf(disk.get(path), options?.bigint),
      stat: (path: string, options?: { bigint?: boolean }) => statsOf(disk.get(path, true), options?.bigint),
      statfs: () => ({ type: 0, bsize: 4096, bavail: disk.isFull ? 0 : 2 ** 30, files: 0, ffree: 0 }),
      readFile: (path: string) => contentOf(path).toString(),
      readdir: (path: string, options?: { withFileTypes?: boolean }) => {
        const { entries } = disk.folder(path);
        if (!options?.withFileTypes) return [...entries.keys()];
        return [...entries].map(([name, entry]) => ({ name, ...kindsOf(entry) }));
      },
      opendir: (path: string) => {
        const names = [...disk.folder(path).entries.keys()];
        return (async function* () {
          for (const name of names) yield { name };
        })();
      },
      realpath: (path: string) => {
        const { folder, name } = disk.find(path, true);
        return `${pathOf(folder)}/${name}`;
      },
    };
    const contentOf = (path: string) => {
      const entry = disk.get(path, true);
      if (entry.kind !== "file") throw failure("EISDIR", path);
      return entry.bytes;
    };
    const create = (path: string, content: string | Uint8Array, flag: string, mode: number) => {
      const open = disk.open(path, flag, mode, OWN_USER);
      open.write(content);
      open.close();
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
        disk.makeFolder(path, options?.mode ?? 0o777, OWN_USER);
      },
      makeFolder: (path: string, mode: number) => void disk.makeFolder(path, mode, OWN_USER),
      unlink: (path: string) => disk.unlink(path),
      writeFile: (path: string, text: string, options?: { flag?: string; mode?: number }) =>
        create(path, text, options?.flag ?? "w", options?.mode ?? 0o666),
      chmod: (path: string, mode: number) => disk.setMode(disk.get(path, true), mode),
      lchown: (path: string, _uid: number, gid: number) => void Object.assign(disk.get(path), { gid }),
    };
    const pairs = {
      rename: (from: string, to: string) => disk.rename(from, to),
      link: (from: string, to: string) => disk.link(from, to),
      copyFile: (from: string, to: string) => create(to, contentOf(from), "wx", disk.get(from, true).mode),
    };
    type Work = (path: string, ...rest: never[]) => unknown;
    /** Each call is one step at the path that it reads or changes. */
    const inSteps = (type: Step["type"], works: Readonly<Record<string, Work>>, at: 0 | 1 = 0) =>
      Object.entries(works).map(([name, work]) => {
        const call = async (...args: [string, ...never[]]) => {
          await this.#step({ type, path: args[at] ?? "" });
          return work(...args);
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
        await this.#step({ type: isRead ? "read" : "change", path });
        return this.#openFile(disk.open(path, flags, mode, OWN_USER));
      },
    };
    return files as unknown as Files;
  }

  #openFile(open: OpenEntry): OpenFile {
    const { disk } = this.#ground;
    const { path, entry } = open;
    const step = async <Result>(type: Step["type"], work: () => Result): Promise<Result> => {
      await this.#step({ type, path, entry });
      return work();
    };
    const sync = () => step("sync", () => disk.sync(entry));
    return {
      at: (name) => `/proc/self/fd/${open.fd}/${name}`,
      write: (content) => step("change", () => open.write(content)),
      read: (buffer, position) => step("read", () => open.read(buffer, position)),
      readText: () => step("read", () => open.file.bytes.toString()),
      stat: () => step("read", () => statsOf(entry)),
      statExactly: () => step("read", () => statsOf(entry, true) as never),
      chmod: (mode) => step("change", () => disk.setMode(entry, mode)),
      truncate: () => step("change", () => disk.truncate(open.file, path)),
      sync,
      datasync: sync,
      close: async () => open.close(),
      closeNow: () => open.close(),
    };
  }
}

/** When the world's machine was started. */
export const START_MS = Date.UTC(2026, 0, 5, 8);

function kindsOf({ kind }: AnyEntry) {
  return {
    isFile: () => kind === "file",
    isDirectory: () => kind === "folder",
    isSymbolicLink: () => kind === "link",
  };
}

/** As Node's `Stats`, as far as the program uses it. */
function statsOf(entry: AnyEntry, isExact = false): Stats {
  const exactly = isExact ? BigInt : Number;
  const stats = {
    ino: exactly(entry.ino),
    mode: exactly(entry.mode),
    uid: exactly(entry.uid),
    gid: exactly(entry.gid),
    size: exactly(entry.kind === "file" ? entry.bytes.length : 0),
    dev: exactly(1),
    mtimeMs: exactly(Math.floor(entry.modifiedMs)),
    mtimeNs: BigInt(entry.modified),
    ctimeNs: BigInt(entry.changed),
    birthtimeNs: BigInt(entry.ino),
    ...kindsOf(entry),
  };
  return stats as unknown as Stats;
}
