/** Options that several commands share, and parsers of option values. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseMoment } from "../base/phrases.ts";
import { describeUnknownMailbox, findMailbox } from "../config/mailboxes.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { parseDuration } from "../config/units.ts";
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

/** A parser of option values. `allowed`: what a value must be. */
export function parser<Value>(
  parse: (text: string) => Value | undefined,
  allowed: string,
): (text: string) => Value {
  return (text) => {
    const value = parse(text);
    if (value === undefined) throw new InvalidArgumentError(`It must be ${allowed}.`);
    return value;
  };
}

/** Decimal digits within a range, and nothing else that JavaScript reads as a number. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  const isAllowed = (text: string) => /^\d{1,15}$/.test(text) && Number(text) >= from && Number(text) <= to;
  return parser(
    (text) => (isAllowed(text) ? Number(text) : undefined),
    `a whole number from ${from} to ${to}`,
  );
}

const WEEK_MS = 7 * 24 * 3_600_000;

/** `90s`, `5m`, `1h`, or seconds; in milliseconds. */
export const duration = parser((text) => {
  const ms = parseDuration(/^\d+$/.test(text) ? `${text}s` : text) ?? 0;
  return ms > 0 && ms <= WEEK_MS ? ms : undefined;
}, "a time such as 30s, 5m or 1h, up to a week");

const MOMENTS = "an age (30m, 12h, 7d, 4w) or a date (2026-03-01)";

/** `7d` (seven days ago), `2026-03-01` (the start of that day, local time), `2026-03-01T14:30`. */
export const parseSince = parser((text) => parseMoment(text, Date.now(), 0), MOMENTS);

/** Like `parseSince`, but a date means the end of that day. */
export const parseUntil = parser((text) => parseMoment(text, Date.now(), 1), MOMENTS);

/** The mailbox with this name or address. Throws `CONFIG_INVALID`. */
export function demandMailbox(mailboxes: readonly MailboxSettings[], wanted: string): MailboxSettings {
  const mailbox = mailboxes[findMailbox(mailboxes, wanted)];
  if (mailbox === undefined) throw invalid(describeUnknownMailbox(mailboxes, wanted));
  return mailbox;
}
