/** Formats the status for a terminal or a pipe. */
import { styleText } from "node:util";
import {
  formatBytes,
  formatCount,
  formatDue,
  formatSeconds,
  formatWhen,
  localizeTimes,
} from "../base/phrases.ts";
import { shownFolder } from "../model/record.ts";
import {
  describeState,
  headlineOf,
  type MailboxStatus,
  type Status,
  type TransferStatus,
} from "../model/status.ts";
import { formatBar, printable } from "./printing.ts";

type Stream = NodeJS.WriteStream;

const MAX_LISTED = 20;

/** `instead`: why the status is not the daemon's. `max`: items of a section. Every text in the status may be hostile. */
export function formatStatus(
  status: Status,
  instead: string | undefined,
  stream: Stream,
  max = MAX_LISTED,
): string {
  const sections = sectionsOf(status, stream).map((it) => formatSection(it, max));
  return [formatHead(status, instead, stream), ...sections].join("\n\n");
}

/** The lines for the screen: of each section as many items as fit, the most important first. */
export function fitStatus(status: Status, instead: string | undefined, stream: Stream): string[] {
  const rows = (stream.rows || 24) - 1;
  let lines: string[] = [];
  for (let max = MAX_LISTED; max > 0; max--) {
    lines = formatStatus(status, instead, stream, max).split("\n");
    if (lines.length <= rows) break;
  }
  return [...lines.slice(0, rows), styleText("dim", "q quits", { stream })];
}

interface Section {
  readonly title: string;
  /** The lines of each item. */
  readonly items: readonly (readonly string[])[];
  /** How many items there are; `items` are the first of them. */
  readonly total: number;
}

/** The most important first. */
function sectionsOf(status: Status, stream: Stream): Section[] {
  const nowMs = Date.parse(status.at);
  const { totals } = status;
  // A single mailbox is not named.
  const whose = ({ mailbox }: TransferStatus) =>
    status.mailboxes.length > 1 ? ` for ${printable(mailbox)}` : "";
  const recent = status.recent.slice(0, 5);
  const mailboxes = status.live ? status.mailboxes : [];
  return [
    section("Problems", status.troubles, status.troubles.length, (trouble) => {
      const { what, message, advice, since, mailboxes: all = [] } = trouble;
      const [first = "", ...others] = localizeTimes(message, status.daemon.timezone).split("\n");
      const affected = all.length > 1 ? ` (${all.length} mailboxes)` : "";
      const head = `${red(stream, "✗")} ${printable(what)}${affected}`;
      return [
        `${head}, since ${formatWhen(since, nowMs)}: ${printable(first)}`,
        ...[...others, advice].map((line) => `  ${printable(line)}`),
      ];
    }),
    section("Needs attention", status.attention, totals.attention, (transfer) =>
      formatAttention(transfer, whose(transfer), nowMs, stream),
    ),
    section("Downloading", status.downloading, totals.downloading, (transfer) => [
      `${formatDownloading(transfer)}${whose(transfer)}`,
    ]),
    section("Queued", status.queued, totals.queued, (transfer) =>
      formatQueued(transfer, whose(transfer), nowMs),
    ),
    // Failing ones first, where some are left out.
    section(
      "Mailboxes",
      mailboxes.toSorted((a, b) => Number(a.trouble === undefined) - Number(b.trouble === undefined)),
      mailboxes.length,
      (mailbox) => [formatMailbox(mailbox, nowMs, stream)],
    ),
    section("Recently delivered", recent, recent.length, (delivery) => [
      `${formatWhen(delivery.at, nowMs)}: ${printable(shownFolder(delivery))}`,
    ]),
  ].filter(({ items }) => items.length > 0);
}

/** `items` are the first of `total`. */
function section<Item>(
  title: string,
  items: readonly Item[],
  total: number,
  format: (item: Item) => readonly string[],
): Section {
  return { title, items: items.map(format), total };
}

function formatSection({ title, items, total }: Section, max: number): string {
  const listed = items.slice(0, max);
  const more = total > listed.length ? [`… and ${total - listed.length} more`] : [];
  return [`${title}:`, ...[...listed.flat(), ...more].map((line) => `  ${line}`)].join("\n");
}

function formatHead(status: Status, instead: string | undefined, stream: Stream): string {
  const { live, daemon, needsRestart } = status;
  const place = `${printable(daemon.inbox)} on ${printable(daemon.host)}`;
  const restart =
    needsRestart.length === 0
      ? ""
      : `\nChanged, but not in force before a restart: ${printable(needsRestart.join(", "))}`;
  const { tone, words } = headlineOf(status);
  const headline = styleText(COLOURS[tone], words, { stream });
  if (live) {
    return `${headline}\nInlet ${printable(daemon.program)}, process ${daemon.pid}, ${place}${restart}`;
  }
  return [
    red(stream, printable(instead ?? "No daemon answers.")),
    // Without a daemon, nothing is well.
    ...(tone === "good" || tone === "plain" ? [] : [headline]),
    `This is the state in the work folder of ${place}.`,
  ].join("\n");
}

const COLOURS = { bad: "red", warn: "yellow", good: "green", plain: "reset" } as const;

function formatAttention(transfer: TransferStatus, whose: string, nowMs: number, stream: Stream): string[] {
  const { trackingId, sender, message, expires, keptIn, commands = [] } = transfer;
  const until = expires === undefined ? "" : `, expires ${formatWhen(expires, nowMs)}`;
  const name = styleText("bold", printable(trackingId), { stream });
  return [
    `${name} from ${printable(sender)}${whose}: ${describeState(transfer)}${until}`,
    ...(message === undefined ? [] : [`  ${printable(message)}`]),
    ...(keptIn === undefined ? [] : [`  Its content is kept in ${printable(keptIn)}`]),
    // Commands that the message contains are not repeated.
    ...commands.filter((command) => !message?.includes(command)).map((command) => `  ${printable(command)}`),
  ];
}

function formatDownloading({ trackingId, progress }: TransferStatus): string {
  const { doneBytes = 0, totalBytes = 0, bytesPerSecond = 0, secondsLeft } = progress ?? {};
  const left = secondsLeft === undefined ? "" : `  ${formatSeconds(secondsLeft)} left`;
  const amount = `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}  ${formatBytes(bytesPerSecond)}/s${left}`;
  return `${formatBar(totalBytes === 0 ? 0 : doneBytes / totalBytes)}  ${amount}  ${printable(trackingId)}`;
}

function formatQueued(transfer: TransferStatus, whose: string, nowMs: number): string[] {
  const { trackingId, sender, until, message } = transfer;
  const again = until === undefined ? "" : `, next try ${formatDue(until, nowMs)}`;
  return [
    `${printable(trackingId)} from ${printable(sender)}${whose}: ${printable(describeState(transfer))}${again}`,
    ...(message === undefined ? [] : [`  ${printable(message)}`]),
  ];
}

function formatMailbox(mailbox: MailboxStatus, nowMs: number, stream: Stream): string {
  const { name, paused, pausedBy, pausedSince, trouble, lastSuccess, nextPoll, listed, quietUntil } = mailbox;
  const shown = printable(name);
  if (pausedBy !== undefined && pausedSince !== undefined)
    return `– ${shown}: paused by ${printable(pausedBy)} since ${formatWhen(pausedSince, nowMs)}`;
  if (paused) return `– ${shown}: paused`;
  const next = nextPoll === undefined ? "" : `, next ${formatDue(nextPoll, nowMs)}`;
  if (trouble !== undefined) {
    return `${red(stream, "✗")} ${shown}: failing since ${formatWhen(trouble.since, nowMs)}${next}`;
  }
  if (lastSuccess === undefined) return `… ${shown}: not polled yet`;
  const what = formatCount(listed ?? 0, "active transfer", "active transfers");
  const quiet = quietUntil === undefined ? "" : `, quiet hours end ${formatDue(quietUntil, nowMs)}`;
  return `${styleText("green", "✓", { stream })} ${shown}: polled ${formatWhen(lastSuccess, nowMs)}${next}, ${what}${quiet}`;
}

function red(stream: Stream, text: string): string {
  return styleText("red", text, { stream });
}
