/** What an error of Redis, or of the connection to it, means. All of them are classified here. */
import { Fault } from "../base/faults.ts";

interface Refusal {
  readonly pattern: RegExp;
  /** Follows the address and a colon. "It" is Redis. */
  readonly cause: string;
  readonly advice: string;
}

export const ANSWER_TOO_LARGE = "the answer is larger than any that Inlet needs";
const ODD_VALUE = "a key holds a value that is not Inlet's";
/** The error of a script does not name the command. */
const UNNAMED_COMMAND = "its user may not do all that Inlet needs";
const ODD_ADVICE =
  "Stop all processes, remove all keys of redis.prefix, and start again: no transfer is lost. Keep other programs away from these keys.";

/** The first match counts: errors of a script also hold the error of its command. */
const REFUSALS: readonly Refusal[] = [
  {
    pattern: /\bOOM\b/,
    cause: "it is full",
    advice: "Raise maxmemory of Redis, or remove other data from it; the daemon then continues by itself.",
  },
  {
    pattern: /\bMISCONF\b/,
    cause: "it cannot save its data, and accepts no writes",
    advice: "Check the disk and the log of Redis; the daemon then continues by itself.",
  },
  {
    pattern: /\bREADONLY\b/,
    cause: "it is read-only, as a replica is",
    advice: "Check that queue names the master; the daemon continues when it can write.",
  },
  {
    pattern: /\bNOPERM\b|user executing the script can't/,
    cause: UNNAMED_COMMAND,
    advice: "Give the user the missing permission (ACL SETUSER); the daemon then continues by itself.",
  },
  {
    pattern: new RegExp(
      `\\bWRONGTYPE\\b|user_script|is not (an integer|a valid float)|would overflow|${ANSWER_TOO_LARGE}`,
    ),
    cause: ODD_VALUE,
    advice: ODD_ADVICE,
  },
];

/** `undefined` for errors that are not Redis's: those about a single job, and consequences of a closed connection. */
export function faultOfRedis(error: unknown, address: string): Fault | undefined {
  if (!(error instanceof Error) || error instanceof Fault) return undefined;
  const root = rootOf(error);
  // The data of a job cannot be parsed.
  if (root instanceof SyntaxError) return refused(address, ODD_VALUE, ODD_ADVICE, error);
  const refusal = REFUSALS.find(({ pattern }) => pattern.test(root.message));
  if (refusal !== undefined) return refused(address, causeOf(refusal, root.message), refusal.advice, error);
  if (isOfConnection(root)) return unreachable(address, describe(root), error);
  if (root.name !== "ReplyError") return undefined;
  return refused(address, `it answers "${describe(root)}"`, undefined, error);
}

export function unreachable(address: string, why: string, cause?: Error): Fault {
  return new Fault("QUEUE_UNREACHABLE", { detail: `${address} (${why})`, cause });
}

/** Whether the fault is a missing permission, and does not name the command. */
export function isUnnamedCommand({ message }: Fault): boolean {
  return message.includes(UNNAMED_COMMAND);
}

export function isReadOnly(error: Error): boolean {
  return rootOf(error).message.startsWith("READONLY");
}

function refused(address: string, cause: string, advice: string | undefined, error?: Error): Fault {
  return new Fault("QUEUE_REFUSED", { detail: `${address}: ${cause}`, advice, cause: error });
}

/** A transaction fails as a whole: its commands have the cause. */
function rootOf(error: Error): Error {
  const errors: unknown = "previousErrors" in error ? error.previousErrors : undefined;
  const [first]: unknown[] = Array.isArray(errors) ? errors : [];
  return first instanceof Error ? first : error;
}

function causeOf({ cause }: Refusal, message: string): string {
  const command = /NOPERM.*'([\w|]+)' command/.exec(message)?.[1];
  if (command !== undefined) return `its user may not use the command ${command.toUpperCase()}`;
  return /NOPERM.*\bkeys?\b/.test(message) ? "its user may not use all keys of redis.prefix" : cause;
}

/** System errors have a code in words. Errors of BullMQ about a job have a number. */
function isOfConnection(error: Error): boolean {
  return (
    ("code" in error && typeof error.code === "string") ||
    error.name === "ClusterAllFailedError" ||
    /^(NOAUTH|WRONGPASS|All sentinels|ERR AUTH|ERR invalid password)/.test(error.message)
  );
}

/** Only a code: messages of ioredis may repeat commands, including a password. A plain `Error` is "All sentinels …". */
function describe(error: Error): string {
  if ("code" in error) return String(error.code);
  return /^[A-Z]{2,}/.exec(error.message)?.[0] ?? (error.name === "Error" ? "no server answers" : error.name);
}
