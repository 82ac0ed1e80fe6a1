/** Formats the status for a terminal or a pipe. */
import { styleText } from "node:util";
import { formatBytes, formatCount, formatSeconds, formatWhen } from "../base/phrases.ts";
import {
  describeState,
  headlineOf,
  type MailboxStatus,
  type Status,
  type TransferStatus,
} from "../model/status.ts";
import { formatBar, printable } from "./printing.ts";

type Stream = NodeJS.WriteStream;

const MOST_LISTED = 20;

/** `instead`: why the status is not the daemon's. Every text in the status may be hostile. */
export function formatStatus(status: Status, instead: string | undefined, stream: Stream): string {
  const nowMs = Date.parse(status.at);
  const { totals } = status;
  // A single mailbox is not named.
  const whose = ({ mailbox }: TransferStatus) =>
    status.mailboxes.length > 1 ? ` for ${printable(mailbox)}` : "";
  const recent = status.recent.slice(0, 5);
  const parts = [
    formatHead(status, instead, stream),
    section("Problems", status.troubles, status.troubles.length, ({ what, message, advice, since }) => [
      `${red(stream, "✗")} ${printable(what)}, since ${formatWhen(since, nowMs)}: ${printable(message)}`,
      `  ${printable(advice)}`,
    ]),
    section("Needs attention", status.attention, totals.attention, (transfer) =>
      formatAttention(transfer, whose(transfer), nowMs, stream),
    ),
    section("Downloading", status.downloading, totals.downloading, (transfer) => [
      `${formatDownloading(transfer)}${whose(transfer)}`,
    ]),
    section("Queued", status.queued, totals.queued, (transfer) =>
      formatQueued(transfer, whose(transfer), nowMs),
    ),
    status.live
      ? section("Mailboxes", status.mailboxes, status.mailboxes.length, (mailbox) => [
          formatMailbox(mailbox, nowMs, stream),
        ])
      : "",
    section("Recently delivered", recent, recent.length, ({ at, folder }) => [
      `${formatWhen(at, nowMs)}: ${printable(folder)}`,
    ]),
  ];
  return parts.filter(Boolean).join("\n\n");
}

function formatHead(status: Status, instead: string | undefined, stream: Stream): string {
  const { live, daemon, needsRestart } = status;
  const place = `${printable(daemon.inbox)} on ${printable(daemon.host)}`;
  const restart =
    needsRestart.length === 0
      ? ""
      : `\nChanged, but not in force before a restart: ${printable(needsRestart.join(", "))}`;
  const who = live
    ? `Inlet ${printable(daemon.program)}, process ${daemon.pid}, ${place}${restart}`
    : `${printable(instead ?? "No daemon answers.")} This is the state in the work folder of ${place}.`;
  const { tone, words } = headlineOf(status);
  if (!live && (tone === "good" || tone === "plain")) return who;
  return `${styleText(COLOURS[tone], words, { stream })}\n${who}`;
}

const COLOURS = { bad: "red", warn: "yellow", good: "green", plain: "reset" } as const;

/** `items` are the first of `total`. */
function section<Item>(
  title: string,
  items: readonly Item[],
  total: number,
  format: (item: Item) => readonly string[],
): string {
  if (items.length === 0) return "";
  const listed = items.slice(0, MOST_LISTED);
  const lines = listed.flatMap(format);
  const more = total > listed.length ? [`… and ${total - listed.length} more`] : [];
  return [`${title}:`, ...[...lines, ...more].map((line) => `  ${line}`)].join("\n");
}

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
  const far = `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}  ${formatBytes(bytesPerSecond)}/s${left}`;
  return `${formatBar(totalBytes === 0 ? 0 : doneBytes / totalBytes)}  ${far}  ${printable(trackingId)}`;
}

function formatQueued(transfer: TransferStatus, whose: string, nowMs: number): string[] {
  const { trackingId, sender, until, message } = transfer;
  const again = until === undefined ? "" : `, next try ${formatWhen(until, nowMs)}`;
  return [
    `${printable(trackingId)} from ${printable(sender)}${whose}: ${printable(describeState(transfer))}${again}`,
    ...(message === undefined ? [] : [`  ${printable(message)}`]),
  ];
}

function formatMailbox(mailbox: MailboxStatus, nowMs: number, stream: Stream): string {
  const { name, paused, trouble, lastSuccess, nextPoll, listed, quietUntil } = mailbox;
  const shown = printable(name);
  if (paused) return `– ${shown}: paused`;
  const next = nextPoll === undefined ? "" : `, next ${formatWhen(nextPoll, nowMs)}`;
  if (trouble !== undefined) {
    return `${red(stream, "✗")} ${shown}: failing since ${formatWhen(trouble.since, nowMs)}${next}`;
  }
  if (lastSuccess === undefined) return `… ${shown}: not polled yet`;
  const what = formatCount(listed ?? 0, "active transfer", "active transfers");
  const quiet = quietUntil === undefined ? "" : `, quiet hours end ${formatWhen(quietUntil, nowMs)}`;
  return `${styleText("green", "✓", { stream })} ${shown}: polled ${formatWhen(lastSuccess, nowMs)}${next}, ${what}${quiet}`;
}

function red(stream: Stream, text: string): string {
  return styleText("red", text, { stream });
}
