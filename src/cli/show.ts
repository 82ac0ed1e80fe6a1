/** `show`: everything known about one transfer. */
import { join } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { formatBytes, formatSize, outputLines, zoneName } from "../base/phrases.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { commandOf } from "../model/actions.ts";
import { isDelivered, STATES, shownFolder } from "../model/record.ts";
import {
  type ActEntry,
  describeChecksum,
  describeVerdict,
  type FileView,
  type HandoffView,
  type RoundView,
  type Story,
  timeOf,
} from "../model/views.ts";
import { describeDaemon } from "../operate/facts.ts";
import { findOne } from "./acting.ts";
import type { Context, Run } from "./context.ts";
import type { Outcome } from "./exit-codes.ts";
import { openAccess } from "./open-access.ts";
import { addConfig } from "./options.ts";
import { formatTime, printable, printJson } from "./printing.ts";

interface ShowOptions {
  readonly config?: string;
  readonly mailbox?: string;
  readonly json?: boolean;
}

export function define(command: Command, run: Run): void {
  addConfig(command)
    .argument("<tracking-id>", "the transfer's tracking-id")
    .option("--mailbox <name>", "the mailbox, if several received it")
    .option("--json", "print the transfer as JSON")
    .addHelpText(
      "after",
      "\nIt reads the work folder, with or without a running daemon, and changes nothing. If this user may not read the\nfolder, it asks the daemon through its Unix socket.",
    )
    .action((trackingId: string, options: ShowOptions) =>
      run((context) => show(context, trackingId, options)),
    );
}

async function show(context: Context, trackingId: string, options: ShowOptions): Promise<Outcome> {
  const settings = await loadSettings({ env: context.env, path: options.config, ignoreSecrets: true });
  const access = await openAccess(context, settings);
  const { mailbox } = options;
  const [found] = await findOne(access, trackingId, mailbox);
  const known = found && (await access.story(found));
  // Retention may have removed its records meanwhile.
  if (known === undefined) throw new Fault("NO_SUCH_TRANSFER", { detail: JSON.stringify(trackingId) });
  // The commands have to work in another shell, which may have another folder and environment.
  const { config } = describeDaemon(settings);
  const story = {
    ...known,
    commands: known.actions.map((act) => commandOf(act, trackingId, { config, mailbox })),
  };
  if (options.json) printJson(context, story);
  else context.stdout.write(`${formatText(context, settings, story)}\n`);
  return "fine";
}

function formatText(context: Context, { inbox, timezone }: Settings, story: Story): string {
  const { stdout } = context;
  const { rounds, acts, commands } = story;
  const time = (at: string) => formatTime(context, at, timezone);
  const title = styleText("bold", printable(story.trackingId), { stream: stdout });
  const times = STATES.flatMap((state) => {
    const at = story.at[state];
    return at === undefined ? [] : [[state, at] as const];
  })
    .toSorted(([, a], [, b]) => Date.parse(a) - Date.parse(b))
    .map(([state, at]) => [state, time(at)] as const);
  const sections = [
    [title, ...formatFacts(factsOf(inbox, story, time))],
    ...(story.output === null ? [] : [["Last output of the check:", ...formatOutput(story.output, "  ")]]),
    ...(story.contents === null ? [] : [["Files:", ...formatFiles(story, story.contents)]]),
    [stdout.isTTY ? `Times (${zoneName(timezone)}):` : "Times:", ...formatFacts(times)],
    ["Rounds:", ...rounds.flatMap((round) => formatRound(round, time)).map((line) => `  ${printable(line)}`)],
    ...(acts.length === 0
      ? []
      : [["Operators:", ...acts.map((act) => `  ${printable(formatAct(act, time))}`)]]),
    commands.length === 0
      ? ["No command applies in this state."]
      : ["Commands that apply now:", ...commands.map((command) => `  ${printable(command)}`)],
  ];
  return sections.map((lines) => lines.join("\n")).join("\n\n");
}

type Facts = readonly (readonly [label: string, value: string | undefined | null])[];

function factsOf(inbox: string, story: Story, time: (at: string) => string): Facts {
  const { released, until, expires, folder, state, passwordsSpent, passwordAttempts } = story;
  const isInInbox = isDelivered(story) || state === "delivering";
  const hasPasswords = passwordsSpent !== null && passwordAttempts !== null;
  return [
    ["Mailbox", story.mailbox],
    ["Sender", story.sender],
    ["Subject", story.subject],
    ["Content", formatSize(story) || undefined],
    ["Transfer ID", story.transferId],
    ["State", `${state}, since ${time(timeOf(story)) || "an unknown time"}`],
    ["Reason", story.reason],
    ["Message", story.message],
    ["Waits until", until && time(until)],
    ["Expires", expires && time(expires)],
    ["Route", story.route && `${story.route}, because ${story.routedBecause}`],
    ["Allowed", story.allowedBy && `by ${story.allowedBy}, whatever the routes say`],
    ["Folder", isInInbox ? folder && join(story.inbox ?? inbox, folder) : undefined],
    ["Verified", story.verified],
    ["Released", released && `by ${released.by}, ${time(released.at)}, despite ${released.reason}`],
    ["Passwords", hasPasswords ? `${passwordsSpent} of ${passwordAttempts} attempts spent` : undefined],
    ["Attempts", `${story.attempts} started in this round`],
    ["Quarantine", story.kept],
    ...story.staged.map((path) => ["Staged in", path] as const),
    ["Acknowledged", story.acknowledged ? "yes, by an operator" : undefined],
  ];
}

function formatOutput(output: string, indent: string): string[] {
  return outputLines(output).map((line) => `${indent}| ${printable(line)}`);
}

function formatFiles({ moreContents }: Story, files: readonly FileView[]): string[] {
  const lines = files.map((file) => {
    const sent = file.originalName === file.name ? "" : ` (sent as ${file.originalName})`;
    const facts = [formatBytes(file.size), describeVerdict(file), describeChecksum(file)];
    return `  ${printable([`${file.name}${sent}`, ...facts].join(", "))}`;
  });
  return moreContents === 0 ? lines : [...lines, `  … and ${moreContents} more`];
}

/** Unknown facts have no line. */
function formatFacts(facts: Facts): string[] {
  const known = facts.filter(([, value]) => value !== undefined && value !== null);
  const width = Math.max(0, ...known.map(([label]) => label.length));
  return known.map(([label, value]) => `  ${label.padEnd(width)}  ${printable(value ?? "")}`);
}

function formatAct({ act, who, from, given, at }: ActEntry, time: (at: string) => string): string {
  return `${time(given ?? at)}  ${act}, by ${who} from ${from}`;
}

function formatRound({ round, begun, ended }: RoundView, time: (at: string) => string): string[] {
  const order = begun === undefined ? "" : `, ${begun.why} by ${begun.by}, ${time(begun.at)}`;
  const lines = [`${round}${order}`];
  if (ended === undefined) return [...lines, "   open"];
  const { outcome, at, reason, message, folder, inbox, verified, released, isPlaced, handoff } = ended;
  const why = reason === undefined ? "" : ` (${reason})`;
  lines.push(`   ${outcome}${why}${at === undefined ? "" : `, ${time(at)}`}`);
  if (message !== undefined) lines.push(`   ${message}`);
  if (folder !== undefined && outcome === "delivered") {
    lines.push(`   folder ${shownFolder({ folder, inbox })}`);
  }
  if (verified !== undefined) lines.push(`   verified: ${verified}`);
  if (released !== undefined) lines.push(`   released by ${released.by}`);
  if (!isPlaced) lines.push("   its content has not been moved yet");
  if (handoff?.progress === "open") lines.push(...formatFailed(handoff, time));
  if (handoff?.progress === "waiting") lines.push("   not picked up yet");
  if (handoff?.pickedUpAt !== undefined) lines.push(`   picked up, ${time(handoff.pickedUpAt)}`);
  return lines;
}

function formatFailed({ failed = [] }: HandoffView, time: (at: string) => string): string[] {
  if (failed.length === 0) return ["   a command or webhook is pending"];
  return failed.flatMap(({ step, message, output, nextAt }) => {
    const next = nextAt === undefined ? "given up" : `next try ${time(nextAt)}`;
    return [`   ${step}, ${next}: ${message}`, ...(output === undefined ? [] : formatOutput(output, "   "))];
  });
}
