/** Every exit code: its number, what it means, which fault ends with it, and what it says about one command. */
import type { Command } from "commander";
import type { FaultCode } from "../base/fault-codes.ts";

/** By the outcome of a command. */
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

/** What the codes of one command mean, where that is more than the table says. */
type Meanings = Readonly<Partial<Record<Outcome, string>>>;

const MEANINGS = new WeakMap<Command, Meanings>();

/** Adds them to the end of the help, and to the documentation. */
export function addExitCodes(command: Command, meanings: Meanings): Command {
  MEANINGS.set(command, meanings);
  const lines = exitCodesOf(command).map(([code, meaning]) => `  ${code}  ${meaning}`);
  return command.addHelpText("after", ["", "Exit codes:", ...lines].join("\n"));
}

/** The codes of a command with a meaning of their own, in the order of the table. */
export function exitCodesOf(command: Command): [code: number, meaning: string][] {
  const meanings = MEANINGS.get(command) ?? {};
  return OUTCOMES.flatMap((outcome) => {
    const meaning = meanings[outcome];
    return meaning === undefined ? [] : [[EXIT_CODES[outcome].code, meaning]];
  });
}

/** How a command ends after a fault. */
export const OUTCOME_OF_FAULT: Readonly<Record<FaultCode, Outcome>> = {
  SERVICE_UNREACHABLE: "unreachable",
  SERVICE_TIMEOUT: "unreachable",
  CONNECTION_LOST: "unreachable",
  TLS_REFUSED: "unreachable",
  PROXY_REFUSED: "unreachable",
  REDIRECT_REFUSED: "unreachable",
  RATE_LIMITED: "unreachable",
  SERVER_FAULT: "unreachable",
  NOT_SUPPORTED: "failed",
  BAD_ANSWER: "failed",
  ANSWER_TOO_LARGE: "failed",
  POLL_TOO_LONG: "failed",
  LIST_ENDLESS: "failed",
  TOO_MANY_TRANSFERS: "failed",
  BAD_REQUEST: "failed",
  TOKEN_REFUSED: "attention",
  NOT_LICENSED: "failed",
  POLICY_REFUSED: "failed",
  ACCESS_REFUSED: "failed",
  API_VERSION: "failed",
  NO_SUCH_ENDPOINT: "failed",
  NOT_FOUND: "failed",
  PASSWORD_REFUSED: "attention",
  PASSWORD_UNUSABLE: "attention",
  PASSWORDS_HELD: "unreachable",
  GAVE_WAY: "unreachable",
  ONE_AT_A_TIME: "unreachable",
  TRANSFER_LOCKED: "attention",
  TRANSFER_DELETED: "attention",
  MESSAGE_REFUSED: "attention",
  CHECKSUMS_UNREADABLE: "attention",
  CHECKSUM_MISMATCH: "attention",
  SIZE_MISMATCH: "attention",
  ALGORITHM_UNKNOWN: "attention",
  UNVERIFIABLE: "attention",
  CHECKSUMS_INCOMPLETE: "attention",
  CHECK_REFUSED: "attention",
  CHECK_CHANGED: "attention",
  CHECK_FAILED: "attention",
  LIMIT_EXCEEDED: "attention",
  ARCHIVE_WRONG: "attention",
  RANGE_REFUSED: "failed",
  TARGET_EXISTS: "usage",
  NAME_UNUSABLE: "usage",
  DISK_FULL: "failed",
  DISK_UNMOUNTED: "attention",
  DISK_REPLACED: "attention",
  DISK_READ_ONLY: "attention",
  FOLDER_MISSING: "attention",
  DISK_REFUSED: "failed",
  DISK_UNREADABLE: "failed",
  PERMISSION_DENIED: "denied",
  WATCH_REFUSED: "failed",
  CONFIG_INVALID: "usage",
  SECRET_UNREADABLE: "usage",
  RECORD_UNREADABLE: "attention",
  INBOX_HELD: "usage",
  INBOX_MISSING: "attention",
  INBOX_APART: "usage",
  PROC_MISSING: "usage",
  GROUP_UNKNOWN: "attention",
  GROUP_REFUSED: "usage",
  WORK_NOT_OURS: "usage",
  WORK_LOST: "attention",
  WORK_RESTORED: "attention",
  WORK_OLDER: "usage",
  LINKS_MISSING: "usage",
  WORK_NEWER: "usage",
  DAEMON_UNREACHABLE: "unreachable",
  QUEUE_UNREACHABLE: "unreachable",
  QUEUE_REFUSED: "unreachable",
  QUEUE_UNSUITABLE: "usage",
  NO_SUCH_TRANSFER: "usage",
  ORDER_IMPOSSIBLE: "usage",
  COMMAND_FAILED: "attention",
  WEBHOOK_FAILED: "attention",
  MAIL_UNREACHABLE: "unreachable",
  MAIL_TLS_REFUSED: "usage",
  MAIL_LOGIN_REFUSED: "usage",
  MAIL_DEFERRED: "unreachable",
  MAIL_REFUSED: "usage",
  MAIL_RECIPIENTS_REFUSED: "usage",
  NOTIFY_WEBHOOK_FAILED: "unreachable",
  ROUND_LOST: "failed",
  TARGET_TAKEN: "attention",
  TARGET_UNSAFE: "attention",
  UNEXPECTED: "failed",
  STOPPED: "interrupted",
};
