/** Options that several commands share, and parsers of option values. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseMoment } from "../base/phrases.ts";
import { describeUnknownMailbox, findMailbox } from "../config/mailboxes.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { parseLongDuration } from "../config/units.ts";
import type { TransferFilter } from "../model/queries.ts";
import { STATES, type State } from "../model/record.ts";
import { invalid } from "./command.ts";

/** Options of most commands. */
export interface CommonOptions {
  readonly config?: string;
  readonly json?: boolean;
}

export function addConfig(command: Command): Command {
  return command.option(
    "--config <file>",
    "the configuration file (default: INLET_CONFIG, else ~/.config/inlet/inlet.yaml, else /etc/inlet/inlet.yaml)",
  );
}

export interface FilterOptions extends CommonOptions {
  readonly mailbox?: string;
  readonly sender?: string;
  readonly state?: State;
  readonly reason?: string;
  readonly text?: string;
  readonly since?: number;
}

/** The filter that all commands about transfers share. Commands add `--mailbox` themselves. */
export function addFilter(command: Command): Command {
  return command
    .option("--sender <pattern>", "only from this sender; * stands for any text")
    .addOption(new Option("--state <state>", "only in this state").choices(STATES))
    .option("--reason <reason>", "only with this reason, such as password or CHECKSUM_MISMATCH")
    .option(
      "--text <text>",
      "only with this text in tracking-id, sender, mailbox, subject, message or folder",
    )
    .option(
      "--since <when>",
      "only changed since then: an age (12h, 7d, 4w) or a date (2026-03-01)",
      parseSince,
    );
}

export function filterOf({ mailbox, sender, state, reason, text, since }: FilterOptions): TransferFilter {
  return { mailbox, sender, state, reason, text, sinceMs: since };
}

/** Parser of an option that may be repeated. */
export function gather(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** A parser of decimal digits within a range; it refuses everything else that JavaScript reads as a number. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= from && number <= to) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
  };
}

/** `90s`, `5m`, `1h`, or seconds; in milliseconds. */
export function duration(text: string): number {
  const ms = parseLongDuration(/^\d+$/.test(text) ? `${text}s` : text) ?? 0;
  if (ms > 0 && ms <= 7 * 24 * 3_600_000) return ms;
  throw new InvalidArgumentError("It must be a time such as 30s, 5m or 1h, up to a week.");
}

/** One byte. */
const MIN_MEGABYTES = 0.000_001;
const MAX_MEGABYTES = 1_000_000;

export function megabytes(text: string): number {
  const number = /^\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : Number.NaN;
  if (number >= MIN_MEGABYTES && number <= MAX_MEGABYTES) return number;
  throw new InvalidArgumentError(
    `It must be a number of megabytes above 0 and up to ${MAX_MEGABYTES}, such as 5 or 0.5.`,
  );
}

/** The mailbox with this name or address. Throws `CONFIG_INVALID`. */
export function demandMailbox(mailboxes: readonly MailboxSettings[], wanted: string): MailboxSettings {
  const mailbox = mailboxes[findMailbox(mailboxes, wanted)];
  if (mailbox === undefined) throw invalid(describeUnknownMailbox(mailboxes, wanted));
  return mailbox;
}

/** `7d` (seven days ago), `2026-03-01` (the start of that day, local time), `2026-03-01T14:30`. */
export function parseSince(text: string): number {
  return demandMoment(text, 0);
}

/** Like `parseSince`, but a date means the end of that day. */
export function parseUntil(text: string): number {
  return demandMoment(text, 1);
}

function demandMoment(text: string, daysAfter: number): number {
  const ms = parseMoment(text, Date.now(), daysAfter);
  if (ms === undefined) {
    throw new InvalidArgumentError("It must be an age (30m, 12h, 7d, 4w) or a date (2026-03-01).");
  }
  return ms;
}
