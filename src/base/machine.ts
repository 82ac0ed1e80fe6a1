/**
 * The machine that the program runs on: its files, clocks, timers, random numbers, locks, watches and programs. Everything
 * that the daemon does to the outside goes through it or through a port. A test can give each daemon a simulated machine
 * (docs/decisions/021-the-machine-is-given.md).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes, scrypt } from "node:crypto";
import { uptime } from "node:os";
import { promisify } from "node:util";
import { type Files, systemFiles } from "./system-files.ts";
import { type KernelLock, lockBySqlite } from "./system-lock.ts";
import { type Post, type PostAnswer, postByHttp } from "./system-post.ts";
import { type ProgramEnd, type ProgramStart, runChild } from "./system-program.ts";
import {
  type FolderEvents,
  type FolderWatch,
  type FolderWatchOptions,
  watchByChokidar,
} from "./system-watch.ts";

export interface Timer {
  refresh(): Timer;
  unref(): Timer;
}

export interface Machine {
  readonly files: Files;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some moment. Never goes back. */
  monotonicMs(): number;
  /** Milliseconds since the machine was started. */
  uptimeMs(): number;
  setTimeout(work: () => void, ms: number): Timer;
  setInterval(work: () => void, ms: number): Timer;
  /** Ends a timer of either kind. */
  clearTimer(timer: Timer | undefined): void;
  /** Lets other work of this process run. */
  nextTurn(): Promise<void>;
  randomBytes(size: number): Buffer;
  /** Between 0 and 1. */
  random(): number;
  /** Slow on purpose: the result must not help to guess the text. */
  deriveKey(text: string, salt: string, size: number): Promise<Buffer>;
  /** `undefined` if another process holds the lock. */
  tryLock(path: string, kind: "alone" | "shared"): Promise<KernelLock | undefined>;
  watchFolder(folder: string, options: FolderWatchOptions, events: FolderEvents): Promise<FolderWatch>;
  post(call: Post, signal: AbortSignal): Promise<PostAnswer>;
  runProgram(program: ProgramStart, killMs: number, signal: AbortSignal): Promise<ProgramEnd>;
}

const derive = promisify(scrypt) as (text: string, salt: string, size: number) => Promise<Buffer>;

export const systemMachine: Machine = {
  files: systemFiles,
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  uptimeMs: () => uptime() * 1_000,
  setTimeout: (work, ms) => setTimeout(work, ms),
  setInterval: (work, ms) => setInterval(work, ms),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  nextTurn: () => new Promise((resolve) => void setImmediate(resolve)),
  randomBytes,
  random: Math.random,
  deriveKey: derive,
  tryLock: lockBySqlite,
  watchFolder: watchByChokidar,
  post: postByHttp,
  runProgram: runChild,
};

let given: AsyncLocalStorage<Machine> | undefined;

/** Why nothing may be changed on the disks of a machine. */
const closed = new WeakMap<Machine, Error>();

export function machine(): Machine {
  return given?.getStore() ?? systemMachine;
}

/** Runs `work`, and everything that it starts, on another machine. */
export function onMachine<Result>(other: Machine, work: () => Result): Result {
  given ??= new AsyncLocalStorage();
  return given.run(other, work);
}

/** From now on, everything that would change a file of this machine fails with this error; `undefined`: no longer. */
export function closeDisks(reason: Error | undefined): void {
  if (reason === undefined) closed.delete(machine());
  else closed.set(machine(), reason);
}

/** The error of `closeDisks`. */
export function closedDisks(): Error | undefined {
  return closed.get(machine());
}
