/** `status`: mailboxes and transfers now, from the running daemon, else from the work folder. */
import { styleText } from "node:util";
import { type Command, Option } from "commander";
import { asFault, type Fault } from "../base/faults.ts";
import {
  formatBytes,
  formatCount,
  formatDue,
  formatSeconds,
  formatWhen,
  localizeTimes,
} from "../base/phrases.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { findLastSockets, type LoadOptions, loadSettings, loadWhereabouts } from "../config/load.ts";
import { DEFAULT_PATH } from "../config/source.ts";
import { explainPermission } from "../host/permission.ts";
import { shownFolder } from "../model/record.ts";
import {
  describeState,
  headlineOf,
  type MailboxStatus,
  type Status,
  type TransferStatus,
} from "../model/status.ts";
import { askHealth, askStatus, type Reading, readStatus } from "../operate/status.ts";
import { addExitCodes, type Context, type Outcome, outcomeOfFault, type Runner } from "./command.ts";
import { addConfig, type CommonOptions } from "./options.ts";
import { formatBar, printable, printJson, say } from "./printing.ts";

interface StatusOptions extends CommonOptions {
  readonly watch?: boolean;
  readonly health?: "ready" | "alive";
}

const HELP = `
Without a daemon, it shows the state in the work folder, and live is false in JSON. While the configuration is not valid,
it shows the status of the running daemon, and the problem.`;

export function define(command: Command, run: Runner): void {
  addConfig(command)
    .option("--json", "print the status as JSON")
    .option("--watch", "show it on the whole screen, and redraw every second, until q or Ctrl-C")
    .addOption(
      new Option(
        "--health [what]",
        "only check the daemon, and exit with 0 or 1; ready (the default): it can do its work; alive: it is not stuck",
      )
        .choices(["ready", "alive"])
        .preset("ready"),
    )
    .addHelpText("after", HELP)
    .action(run(show));
  addExitCodes(command, {
    fine: "a daemon answers, and nothing needs attention",
    attention: "a transfer, a mailbox, the disk or the configuration needs a person",
    unreachable: "no daemon answers, whatever waits; or the service or the queue cannot be reached",
    denied: "this user may not read the configuration, the work folder or the socket",
  });
}

async function show(context: Context, options: StatusOptions): Promise<Outcome> {
  const { config: path } = options;
  const load = { env: context.env, path, ignoreSecrets: true };
  if (options.health !== undefined) return showHealth(context, load, options.health);
  const read = await openReader(load, context.stop);
  if (options.watch && context.stdout.isTTY) return watchStatus(context, read);
  const { status, instead } = await read();
  if (options.json) printJson(context, status);
  else context.stdout.write(`${formatStatus(status, instead, context.stdout)}\n`);
  return outcomeOf(status);
}

/** Throws `CONFIG_INVALID` if the configuration is not valid, and no daemon that was started with it answers. */
async function openReader(load: LoadOptions, signal: AbortSignal): Promise<() => Promise<Reading>> {
  try {
    const settings = await loadSettings(load);
    return () => readStatus(settings, signal);
  } catch (error) {
    const fault = await explainPermission(asFault(error));
    if (fault.code !== "CONFIG_INVALID") throw fault;
    const { file, sockets } = await findLastSockets(load);
    for (const socket of sockets) {
      const read = () => readOldStatus(socket, file, fault, signal);
      if ((await read()) === undefined) continue;
      return async () => (await read()) ?? Promise.reject(fault);
    }
    throw fault;
  }
}

/** The status of a daemon that keeps the settings it had before the file became invalid; `undefined` without one. */
async function readOldStatus(
  socket: string,
  file: string,
  fault: Fault,
  signal: AbortSignal,
): Promise<Reading | undefined> {
  const status = await askStatus(socket, signal);
  if (status === undefined || (status.daemon.config ?? DEFAULT_PATH) !== file) return undefined;
  const isReported = status.troubles.some(({ what }) => what === "configuration");
  const { code, message } = fault;
  const advice = `The daemon keeps its old settings, and does not start again with this file. Correct it, and check it with inlet config check.`;
  const trouble = { what: "configuration", since: status.at, code, message, advice };
  const troubles = isReported ? status.troubles : [trouble, ...status.troubles];
  return { status: { ...status, troubles }, instead: undefined };
}

/** For health checks of containers, which show the printed line. The exit code is always 0 or 1. */
async function showHealth(context: Context, load: LoadOptions, what: "ready" | "alive"): Promise<Outcome> {
  try {
    const { isGood, text } = await askHealth(await loadWhereabouts(load), what, context.stop);
    say(context, text);
    return isGood ? "fine" : "failed";
  } catch (error) {
    say(context, (await explainPermission(asFault(error))).message);
    return "failed";
  }
}

export function outcomeOf({ live, troubles, totals }: Pick<Status, "live" | "troubles" | "totals">): Outcome {
  if (!live || troubles.some((trouble) => outcomeOfFault(trouble) === "unreachable")) return "unreachable";
  return totals.attention > 0 || troubles.length > 0 ? "attention" : "fine";
}

const REDRAW_MS = 1_000;
const [CTRL_C, CTRL_D] = ["\u0003", "\u0004"];

/** Switch to the alternate screen without a cursor and without wrapped lines, and back. */
const BEGIN = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const END = "\u001b[?7h\u001b[?25h\u001b[?1049l";

/** The status on the whole screen, until q or Ctrl-C. */
export async function watchStatus(context: Context, read: () => Promise<Reading>): Promise<Outcome> {
  const { stdin, stdout, stop } = context;
  const keys = new AbortController();
  const ended = AbortSignal.any([stop, keys.signal]);
  let outcome: Outcome = "interrupted";
  const onKey = (key: Buffer) => {
    const typed = key.toString();
    const isQuit = /[qQ]/.test(typed) || typed.includes(CTRL_D);
    if (isQuit && !typed.includes(CTRL_C)) outcome = "fine";
    if (isQuit || typed.includes(CTRL_C)) keys.abort();
  };
  const restore = () => void stdout.write(END);
  let last: Reading | undefined;
  const draw = () => {
    if (last === undefined || ended.aborted) return;
    const { status, instead } = last;
    const lines = fitStatus(status, instead, stdout);
    stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  };
  process.once("exit", restore);
  stdout.write(BEGIN);
  stdout.on("resize", draw);
  // Without a terminal to type on, a signal ends it.
  if (stdin.isTTY) stdin.setRawMode(true).on("data", onKey).resume();
  try {
    while (!ended.aborted) {
      last = await read();
      draw();
      await pauseOrAbort(REDRAW_MS, ended);
    }
    return outcome;
  } finally {
    process.removeListener("exit", restore);
    stdout.off("resize", draw);
    if (stdin.isTTY) stdin.off("data", onKey).setRawMode(false).pause();
    restore();
  }
}

type Stream = NodeJS.WriteStream;

const MAX_LISTED = 20;

/** `instead`: why the status is not the daemon's. `max`: items of a section. Every text in the status may be hostile. */
export function formatStatus(
  status: Status,
  instead: string | undefined,
  stream: Stream,
  max = MAX_LISTED,
): string {
  return [formatHead(status, instead, stream), ...formatSections(status, stream, max)].join("\n\n");
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

/** The most important first. */
function formatSections(status: Status, stream: Stream, max: number): string[] {
  const nowMs = Date.parse(status.at);
  const { totals } = status;
  // A single mailbox is not named.
  const whose = ({ mailbox }: TransferStatus) =>
    status.mailboxes.length > 1 ? ` for ${printable(mailbox)}` : "";
  const mailboxes = status.live ? status.mailboxes : [];
  /** Its title, and the lines of up to `max` items; nothing without items. `items` are the first of `total`. */
  const section = <Item>(
    title: string,
    items: readonly Item[],
    format: (item: Item) => readonly string[],
    total = items.length,
  ): string[] => {
    const listed = items.slice(0, max);
    const more = total > listed.length ? [`… and ${total - listed.length} more`] : [];
    const lines = [...listed.flatMap(format), ...more].map((line) => `  ${line}`);
    return items.length === 0 ? [] : [[`${title}:`, ...lines].join("\n")];
  };
  return [
    ...section("Problems", status.troubles, (trouble) => {
      const { what, message, advice, since, mailboxes: all = [] } = trouble;
      const [first = "", ...others] = localizeTimes(message, status.daemon.timezone).split("\n");
      const affected = all.length > 1 ? ` (${all.length} mailboxes)` : "";
      const head = `${red(stream, "✗")} ${printable(what)}${affected}`;
      return [
        `${head}, since ${formatWhen(since, nowMs)}: ${printable(first)}`,
        ...[...others, advice].map((line) => `  ${printable(line)}`),
      ];
    }),
    ...section(
      "Needs attention",
      status.attention,
      (transfer) => formatAttention(transfer, whose(transfer), nowMs, stream),
      totals.attention,
    ),
    ...section(
      "Downloading",
      status.downloading,
      (transfer) => [`${formatDownloading(transfer)}${whose(transfer)}`],
      totals.downloading,
    ),
    ...section(
      "Queued",
      status.queued,
      (transfer) => formatQueued(transfer, whose(transfer), nowMs),
      totals.queued,
    ),
    // Failing ones first, where some are left out.
    ...section(
      "Mailboxes",
      mailboxes.toSorted((a, b) => Number(a.trouble === undefined) - Number(b.trouble === undefined)),
      (mailbox) => [formatMailbox(mailbox, nowMs, stream)],
    ),
    ...section("Recently delivered", status.recent.slice(0, 5), (delivery) => [
      `${formatWhen(delivery.at, nowMs)}: ${printable(shownFolder(delivery))}`,
    ]),
  ];
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
