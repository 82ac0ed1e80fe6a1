/**
 * The machine that the program runs on: its files, clocks, timers, random numbers, locks, watches and programs. Everything
 * that the daemon does to the outside goes through it or through a port. A test can give each daemon a simulated machine
 * (docs/decisions/021-the-machine-is-given.md).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes, scrypt } from "node:crypto";
import { uptime } from "node:os";
import { promisify } from "node:util";
import { systemFiles } from "./system-files.ts";
import { lockBySqlite } from "./system-lock.ts";
import { postByHttp } from "./system-post.ts";
import { runChild } from "./system-program.ts";
import { watchByChokidar } from "./system-watch.ts";

export interface Timer {
  refresh(): Timer;
  unref(): Timer;
}

export const systemMachine = {
  files: systemFiles,
  /** Milliseconds since the epoch. */
  now: () => Date.now(),
  /** Milliseconds since an arbitrary moment. Never goes back. */
  monotonicMs: () => performance.now(),
  /** Milliseconds since the machine was started. */
  uptimeMs: () => uptime() * 1_000,
  setTimeout: (work: () => void, ms: number): Timer => setTimeout(work, ms),
  setInterval: (work: () => void, ms: number): Timer => setInterval(work, ms),
  /** Ends a timer of either kind. */
  clearTimer: (timer: Timer | undefined) => clearTimeout(timer as NodeJS.Timeout | undefined),
  /** Lets other work of this process run. */
  nextTurn: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  randomBytes: (size: number): Buffer => randomBytes(size),
  /** Between 0 and 1. */
  random: () => Math.random(),
  /** Slow on purpose: the result must not help to guess the text. */
  deriveKey: promisify(scrypt) as (text: string, salt: string, size: number) => Promise<Buffer>,
  tryLock: lockBySqlite,
  watchFolder: watchByChokidar,
  post: postByHttp,
  runProgram: runChild,
};

export type Machine = typeof systemMachine;

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

/** From now on, every change of a file of this machine fails with this error; `undefined` allows changes again. */
export function closeDisks(reason: Error | undefined): void {
  if (reason === undefined) closed.delete(machine());
  else closed.set(machine(), reason);
}

/** The error of `closeDisks`. */
export function closedDisks(): Error | undefined {
  return closed.get(machine());
}
