/** Runs the command after a delivery: without a shell, in its own process group, with an explicit environment. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Fault } from "../base/faults.ts";
import { describeStartFailure, signalGroup, variableText } from "../base/process.ts";
import type { HandoffCommand } from "../model/mailbox.ts";
import type { Delivery } from "./delivery.ts";

/** How much of the end of its output is kept. */
const OUTPUT_BYTES = 2_048;
/** For the last output to arrive, where a child that outlives the command holds the pipe open. */
const DRAIN_MS = 500;
/** A timer that does not keep the process alive. */
const UNHELD = { ref: false };

export interface CommandEnd {
  /** Missing on success. */
  readonly fault: Fault | undefined;
  readonly output: string;
}

/** On the signal or after its timeout, the process group gets SIGTERM, and SIGKILL `killMs` later. */
export async function runCommand(
  { argv: [program, ...args], env, timeoutMs }: HandoffCommand,
  delivery: Delivery,
  inbox: string,
  killMs: number,
  signal: AbortSignal,
): Promise<CommandEnd> {
  let child: ChildProcess;
  try {
    const environment = { ...env, ...environmentOf(delivery, inbox) };
    const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
    child = spawn(program, args, { cwd: inbox, env: environment, detached: true, stdio });
  } catch {
    // An argument that cannot be passed on, such as one with a NUL.
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

/** Why the command was ended; `undefined` where it ended by itself. */
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
  // Also where the command has ended: its children may live on.
  signalGroup(child.pid, "SIGKILL");
  await ended;
  return signal.aborted ? "it was stopped" : `it took longer than ${timeoutMs / 1000} s`;
}

/** Senders choose some of these values, so control characters are replaced. */
export function environmentOf(delivery: Delivery, inbox: string): Record<string, string> {
  const { id, folder, mailbox, sender, trackingId, transferId, verified, deliveredAt } = delivery;
  return {
    INLET_EVENT: "delivered",
    INLET_ID: id,
    INLET_FOLDER: join(inbox, folder),
    INLET_MAILBOX: variableText(mailbox),
    INLET_SENDER: variableText(sender),
    INLET_TRACKING_ID: variableText(trackingId),
    INLET_TRANSFER_ID: variableText(transferId),
    INLET_VERIFIED: verified,
    INLET_DELIVERED_AT: deliveredAt,
  };
}

function failed(detail: string): Fault {
  return new Fault("COMMAND_FAILED", { detail });
}

/** Keeps the end of an output of any length. */
class Tail {
  #kept = Buffer.alloc(0);

  add(chunk: Buffer): void {
    this.#kept = Buffer.concat([this.#kept, chunk.subarray(-OUTPUT_BYTES)]).subarray(-OUTPUT_BYTES);
  }

  /** Keeps line breaks and tabs; other control characters are replaced. */
  text(): string {
    return this.#kept
      .toString()
      .replace(/[^\P{Cc}\n\t]|[\p{Cf}\u2028\u2029]/gu, "\ufffd")
      .trim();
  }
}
