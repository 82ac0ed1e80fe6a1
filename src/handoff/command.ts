/** The command after a delivery: without a shell, in a process group of its own, with an environment that is spelled out. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "../base/faults.ts";
import { describeStartFailure, signalGroup } from "../base/process-group.ts";
import type { HandoffCommand } from "../model/mailbox.ts";
import type { Entry } from "./entry.ts";

/** What is kept of what it prints: the end. */
const OUTPUT_BYTES = 2_048;
/** For what it printed last to arrive, where something that it left behind holds its output open. */
const DRAIN_MS = 500;
const LONGEST_VALUE = 4_096;
/** A wait that is over before its time must not keep the process. */
const UNHELD = { ref: false };

export interface CommandEnd {
  /** Missing where it ended well. */
  readonly fault: Fault | undefined;
  readonly output: string;
}

/** On the signal, or when its time is over, it is told to end, and made to `killMs` later, with all that it started. */
export async function runCommand(
  { argv: [program, ...args], env, timeoutMs }: HandoffCommand,
  entry: Entry,
  inbox: string,
  killMs: number,
  signal: AbortSignal,
): Promise<CommandEnd> {
  let child: ChildProcess;
  try {
    const environment = { ...env, ...environmentOf(entry, inbox) };
    const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
    child = spawn(program, args, { cwd: inbox, env: environment, detached: true, stdio });
  } catch {
    // An argument that no program can be given, such as one with a NUL.
    return { fault: failed("it could not be started"), output: "" };
  }
  const tail = new Tail();
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => tail.add(chunk));
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ended = new Promise<string | undefined>((resolve) => {
    child.once("error", (error) => resolve(`it ${describeStartFailure(error)}`));
    child.once("exit", (code, killedBy) => {
      if (code === 0) resolve(undefined);
      else resolve(killedBy === null ? `it ended with exit code ${code}` : `it was ended by ${killedBy}`);
    });
  });
  const cut = await endInTime(child, ended, timeoutMs, killMs, signal);
  const why = cut ?? (await ended);
  await Promise.race([closed, pause(DRAIN_MS, undefined, UNHELD)]);
  for (const stream of [child.stdout, child.stderr]) stream?.destroy();
  return { fault: why === undefined ? undefined : failed(why), output: tail.text() };
}

/** Why it was made to end; `undefined` where it did by itself. */
async function endInTime(
  child: ChildProcess,
  ended: Promise<unknown>,
  timeoutMs: number,
  killMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const isInTime = await Promise.race([
    ended.then(() => true),
    pause(timeoutMs, false, { signal: stop }).catch(() => false),
  ]);
  over.abort();
  if (isInTime) return undefined;
  signalGroup(child.pid, "SIGTERM");
  await Promise.race([ended, pause(killMs, undefined, UNHELD)]);
  // Also where it has ended: what it started may go on.
  signalGroup(child.pid, "SIGKILL");
  await ended;
  return signal.aborted ? "it was stopped" : `it took longer than ${timeoutMs / 1000} s`;
}

/** What a command is told. Senders choose some of it: nothing that could end a line or a text early gets through. */
export function environmentOf(entry: Entry, inbox: string): Record<string, string> {
  const { id, folder, mailbox, sender, trackingId, transferId, verified = "none", deliveredAt } = entry;
  return {
    INLET_EVENT: "delivered",
    INLET_ID: id,
    INLET_FOLDER: join(inbox, folder),
    INLET_MAILBOX: plain(mailbox),
    INLET_SENDER: plain(sender),
    INLET_TRACKING_ID: plain(trackingId),
    INLET_TRANSFER_ID: plain(transferId),
    INLET_VERIFIED: verified,
    INLET_DELIVERED_AT: deliveredAt,
  };
}

function plain(text: string): string {
  return text
    .slice(0, LONGEST_VALUE)
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029]/gu, "\ufffd");
}

function failed(detail: string): Fault {
  return new Fault("COMMAND_FAILED", { detail });
}

/** The end of what was printed, however much that is. */
class Tail {
  #kept = Buffer.alloc(0);

  add(chunk: Buffer): void {
    this.#kept = Buffer.concat([this.#kept, chunk.subarray(-OUTPUT_BYTES)]).subarray(-OUTPUT_BYTES);
  }

  /** Lines stay lines; whatever else could move a cursor does not stay. */
  text(): string {
    return this.#kept
      .toString()
      .replace(/[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/gu, "\ufffd")
      .trim();
  }
}
