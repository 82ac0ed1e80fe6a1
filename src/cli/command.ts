/** What each command gets: its process, with its streams and signals. And how it ends: with one of the exit codes. */
import type { Command } from "commander";
import { LONGEST_TIMER_MS } from "../base/deadline.ts";
import { type Actor, actorOf } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import { pauseOrAbort } from "../base/timers.ts";
import type { Environment } from "../config/draft.ts";

/** A command's process: its streams, its environment, and the signal to stop. */
export interface Context {
  readonly env: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Aborts at the first SIGINT or SIGTERM, and at SIGHUP unless `onReload` was called. */
  readonly stop: AbortSignal;
  /** From now on SIGHUP calls the listener, and does not stop the program. */
  onReload(listener: () => void): void;
  /** From now on a fault that ends the program is passed to `report`, and not printed on standard error. */
  onFault(report: (fault: Fault) => void): void;
}

/** Makes the action of a command: its work gets the context, and then what commander passes. */
export type Runner = <Args extends unknown[]>(
  work: (context: Context, ...args: Args) => Promise<Outcome>,
) => (...args: Args) => Promise<void>;

/** Keeps the process alive: a pending `AbortSignal` alone does not. */
export async function untilStopped(stop: AbortSignal): Promise<void> {
  while (!stop.aborted) await pauseOrAbort(LONGEST_TIMER_MS, stop);
}

/** The fault of an invalid argument or configuration. */
export function invalid(detail: string, cause?: unknown): Fault {
  return new Fault("CONFIG_INVALID", { detail, cause });
}

/** Every exit code, by the outcome of a command. */
export const EXIT_CODES = {
  fine: { code: 0, meaning: "success" },
  failed: { code: 1, meaning: "failure; the message says why" },
  usage: { code: 2, meaning: "wrong usage, or a configuration or installation that has to change" },
  attention: {
    code: 3,
    meaning:
      "a person has to act: a password, a quarantined transfer, a client id to register, an address to verify, a full disk, refused notifications",
  },
  unreachable: { code: 4, meaning: "the service, the queue or the daemon cannot be reached" },
  denied: { code: 5, meaning: "this user may not read or act here; the message names the file or folder" },
  interrupted: { code: 130, meaning: "interrupted" },
} as const;

export type Outcome = keyof typeof EXIT_CODES;

const OUTCOMES = Object.keys(EXIT_CODES) as Outcome[];

/** The outcome of another process of Inlet. */
export function outcomeOfCode(code: number): Outcome {
  return OUTCOMES.find((outcome) => EXIT_CODES[outcome].code === code) ?? "failed";
}

/** Adds what codes mean, where that is more than the table says, to the end of the help, and so to the documentation. */
export function addExitCodes(command: Command, meanings: Readonly<Partial<Record<Outcome, string>>>): void {
  const lines = Object.entries(meanings).map(
    ([outcome, meaning]) => `  ${EXIT_CODES[outcome as Outcome].code}  ${meaning}`,
  );
  command.addHelpText("after", ["", "Exit codes:", ...lines].join("\n"));
}

/** By who must act after a fault: not the `Actor` of an order. */
const OUTCOME_OF_ACTOR: Readonly<Record<Actor, Outcome>> = {
  none: "unreachable",
  person: "attention",
  setup: "usage",
  rights: "denied",
  unknown: "failed",
};

/** How a command ends after a fault. */
export function outcomeOfFault({ code }: { readonly code: string }): Outcome {
  return code === "STOPPED" ? "interrupted" : OUTCOME_OF_ACTOR[actorOf(code)];
}
