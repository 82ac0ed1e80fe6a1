/** `show`: everything known about one transfer. */
import { join } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { loadSettings } from "../config/load.ts";
import type { MailboxSettings, Settings } from "../config/settings.ts";
import { peekLedger, type RoundDescription, type TransferDescription } from "../ledger/peek.ts";
import { objectionTo } from "../mailbox/orders.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { ACTIONS, commandFor } from "../model/order.ts";
import { isDelivered, STATES, type TransferRecord } from "../model/record.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { formatTransfer, mailboxOf, timeOf } from "./list.ts";
import { addConfig } from "./options.ts";
import { formatTime, printable, printJson } from "./printing.ts";
import { findTransfer } from "./transfers.ts";

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
      "\nIt reads the work folder, with or without a running daemon, and changes nothing.",
    )
    .action((trackingId: string, options: ShowOptions) =>
      run((context) => show(context, trackingId, options)),
    );
}

async function show(context: Context, trackingId: string, options: ShowOptions): Promise<Outcome> {
  const settings = await loadSettings({ env: context.env, path: options.config, ignoreSecrets: true });
  const found = await findTransfer(settings, trackingId, options.mailbox);
  const mailbox = mailboxOf(settings, found);
  const service = mailbox && {
    serviceId: serviceIdOf(mailbox.service.baseUrl),
    passwordAttempts: mailbox.passwordAttempts,
  };
  const description = await peekLedger(settings.work).describe(found, service);
  // Retention may have removed its records meanwhile.
  if (description === undefined) throw new Fault("NO_SUCH_TRANSFER", { detail: JSON.stringify(trackingId) });
  const commands = listCommands(description, options);
  if (options.json) printJson(context, formatDocument(description, mailbox, commands));
  else context.stdout.write(`${formatText(context, settings, description, mailbox, commands)}\n`);
  return "fine";
}

/** The commands that apply to the transfer in its state, with the caller's `--config` and `--mailbox`. */
function listCommands({ record, rounds }: TransferDescription, { config, mailbox }: ShowOptions): string[] {
  const isHandedOver = rounds.at(-1)?.ended?.handoff?.progress !== "open";
  const needsPassword = record.state === "waiting" && record.reason === "password";
  const options = { config, mailbox };
  const onceMore = record.password?.isExhausted === true;
  const supply = commandFor("password", record.trackingId, { ...options, onceMore });
  const actions = ACTIONS.filter((action) => objectionTo(action, record, isHandedOver) === undefined);
  const commands = actions.map((action) => commandFor(action, record.trackingId, options));
  return needsPassword ? [supply, ...commands] : commands;
}

function formatDocument(
  { record, rounds, staged, kept, passwordsSpent }: TransferDescription,
  mailbox: MailboxSettings | undefined,
  commands: readonly string[],
) {
  return {
    ...formatTransfer(record, passwordsSpent),
    passwordAttempts: mailbox?.passwordAttempts ?? null,
    attempts: record.attempts,
    acknowledged: record.acknowledged ?? false,
    rounds,
    staged,
    kept: kept ?? null,
    commands,
  };
}

function formatText(
  context: Context,
  settings: Settings,
  description: TransferDescription,
  mailbox: MailboxSettings | undefined,
  commands: readonly string[],
): string {
  const { stdout } = context;
  const { record, rounds } = description;
  const time = (at: string) => formatTime(context, at);
  const title = styleText("bold", printable(record.trackingId), { stream: stdout });
  const times = STATES.flatMap((state) => {
    const at = record.at[state];
    return at === undefined ? [] : [[state, time(at)] as const];
  });
  const sections = [
    [title, ...formatFacts(factsOf(settings, description, mailbox, time))],
    ["Times:", ...formatFacts(times)],
    ["Rounds:", ...rounds.flatMap((round) => formatRound(round, time)).map((line) => `  ${printable(line)}`)],
    commands.length === 0
      ? ["No command applies in this state."]
      : ["Commands that apply now:", ...commands.map((command) => `  ${printable(command)}`)],
  ];
  return sections.map((lines) => lines.join("\n")).join("\n\n");
}

type Facts = readonly (readonly [label: string, value: string | undefined])[];

function factsOf(
  { inbox }: Settings,
  { record, staged, kept, passwordsSpent }: TransferDescription,
  mailbox: MailboxSettings | undefined,
  time: (at: string) => string,
): Facts {
  const { released, until, expires, folder, state } = record;
  const isInInbox = isDelivered(record) || state === "delivering";
  return [
    ["Mailbox", record.mailbox],
    ["Sender", record.sender],
    ["Transfer ID", record.transferId],
    ["State", `${state}, since ${time(timeOf(record)) || "an unknown time"}`],
    ["Reason", record.reason],
    ["Message", record.message],
    ["Waits until", until && time(until)],
    ["Expires", expires && time(expires)],
    ["Folder", isInInbox ? folder && join(inbox, folder) : undefined],
    ["Verified", record.verified],
    ["Released", released && `by ${released.by}, ${time(released.at)}, despite ${released.reason}`],
    ["Passwords", passwordsOf(passwordsSpent, mailbox)],
    ["Downloads", `${record.attempts} started in this round`],
    ["Kept in", kept],
    ...staged.map((path) => ["Staged in", path] as const),
    ["Acknowledged", acknowledgedOf(record)],
  ];
}

function passwordsOf(spent: number | undefined, mailbox: MailboxSettings | undefined): string | undefined {
  if (spent === undefined || mailbox === undefined) return undefined;
  return `${spent} of ${mailbox.passwordAttempts} attempts used`;
}

function acknowledgedOf({ acknowledged }: TransferRecord): string | undefined {
  return acknowledged ? "yes, by an operator" : undefined;
}

/** Unknown facts have no line. */
function formatFacts(facts: Facts): string[] {
  const known = facts.filter(([, value]) => value !== undefined);
  const width = Math.max(0, ...known.map(([label]) => label.length));
  return known.map(([label, value]) => `  ${label.padEnd(width)}  ${printable(value ?? "")}`);
}

function formatRound({ round, begun, ended }: RoundDescription, time: (at: string) => string): string[] {
  const order = begun === undefined ? "" : `, ${begun.why} by ${begun.by}, ${time(begun.at)}`;
  const lines = [`${round}${order}`];
  if (ended === undefined) return [...lines, "   open"];
  const { outcome, at, reason, message, folder, verified, released, isPlaced, handoff } = ended;
  const why = reason === undefined ? "" : ` (${reason})`;
  lines.push(`   ${outcome}${why}${at === undefined ? "" : `, ${time(at)}`}`);
  if (message !== undefined) lines.push(`   ${message}`);
  if (folder !== undefined && outcome === "delivered") lines.push(`   folder ${folder}`);
  if (verified !== undefined) lines.push(`   verified: ${verified}`);
  if (released !== undefined) lines.push(`   released by ${released.by}`);
  if (!isPlaced) lines.push("   its content has not been moved yet");
  if (handoff?.progress === "open") lines.push("   a command or webhook is pending or has failed");
  if (handoff?.progress === "waiting") lines.push("   not picked up yet");
  if (handoff?.pickedUpAt !== undefined) lines.push(`   picked up, ${time(handoff.pickedUpAt)}`);
  return lines;
}
