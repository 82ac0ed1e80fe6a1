/** `list`: all known transfers with their states. */
import { type Command, Option } from "commander";
import { Fault } from "../base/faults.ts";
import { escapeJson, formatCount } from "../base/phrases.ts";
import { loadSettings } from "../config/load.ts";
import type { MailboxSettings, Settings } from "../config/settings.ts";
import { makeMatcher } from "../ledger/history.ts";
import { type LedgerPeek, peekLedger } from "../ledger/peek.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { STATES, type State, type TransferRecord } from "../model/record.ts";
import { canonicalAddress } from "../model/transfer.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { addConfig, wholeNumber } from "./options.ts";
import { printRows, say, writeOut } from "./printing.ts";
import { transferColumns } from "./transfers.ts";

interface ListOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly state?: State;
  readonly mailbox?: string;
  readonly sender?: string;
  readonly limit?: number;
}

const DEFAULT_LIMIT = 50;
/** Sorting keeps this many transfers in memory. */
const MOST_SORTED = 100_000;
const MOST_DAMAGED_SHOWN = 10;

/** Only open rounds are in these states, and each has a note. */
const NOTED: ReadonlySet<State | undefined> = new Set<State>(["downloading", "waiting"]);

const HELP = `
Lists all known transfers, the newest first. With --json it prints all of them in no particular order,
one JSON object per line; with --json and --limit, only the newest.

It reads the work folder, with or without a running daemon, and changes nothing.

  inlet list --state quarantined
  inlet list --sender '*@supplier.example' --limit 200
  inlet list --json | jq -r 'select(.passwordsSpent > 0) | .trackingId'`;

export function define(command: Command, run: Run): void {
  addConfig(command)
    .addOption(new Option("--state <state>", "only transfers in this state").choices(STATES))
    .option("--mailbox <pattern>", "only for these mailboxes; * matches any text")
    .option("--sender <pattern>", "only from these senders; * matches any text")
    .option(
      "--limit <number>",
      "only this many, the newest first (default: 50; all with --json)",
      wholeNumber(1, MOST_SORTED),
    )
    .option("--json", "print one JSON object per line")
    .addHelpText("after", HELP)
    .action((options: ListOptions) => run((context) => list(context, options)));
}

async function list(context: Context, options: ListOptions): Promise<Outcome> {
  const { json, limit = json ? undefined : DEFAULT_LIMIT } = options;
  const settings = await loadSettings({ env: context.env, path: options.config, ignoreSecrets: true });
  const peek = peekLedger(settings.work);
  const damaged = new Set<string>();
  const records = selectRecords(context, peek, options, (path) => damaged.add(path));
  if (limit === undefined) {
    await printLines(context, records, await makeFormatter(settings, peek));
  } else {
    const { newest, total } = await takeNewest(records, limit);
    if (json) await printLines(context, newest, await makeFormatter(settings, peek));
    else printRows(context, {}, transferColumns(context, timeOf), newest);
    if (total === 0) say(context, "No transfer matches.");
    if (total > limit) {
      say(context, `These are the newest ${limit} of ${total} transfers. Show more with --limit.`);
    }
  }
  sayDamaged(context, damaged);
  return "fine";
}

/** A transfer as JSON: every key is always present. */
export function formatTransfer(record: TransferRecord, passwordsSpent: number | undefined) {
  return {
    mailbox: record.mailbox,
    trackingId: record.trackingId,
    transferId: record.transferId,
    sender: record.sender,
    state: record.state,
    reason: record.reason ?? null,
    message: record.message ?? null,
    until: record.until ?? null,
    expires: record.expires ?? null,
    folder: record.folder ?? null,
    verified: record.verified ?? null,
    released: record.released ?? null,
    passwordsSpent: passwordsSpent ?? null,
    round: record.round,
    at: record.at,
  };
}

/** The settings of a record's mailbox, unless it is no longer configured. */
export function mailboxOf({ mailboxes }: Settings, { mailbox }: TransferRecord): MailboxSettings | undefined {
  return mailboxes.find(({ name }) => canonicalAddress(name) === canonicalAddress(mailbox));
}

/** When the transfer entered its state. */
export function timeOf({ at, state }: TransferRecord): string {
  return at[state] ?? Object.values(at).toSorted().at(-1) ?? "";
}

/** Throws `STOPPED`. */
async function* selectRecords(
  { stop }: Context,
  peek: LedgerPeek,
  { state, ...patterns }: ListOptions,
  onDamaged: (path: string) => void,
): AsyncGenerator<TransferRecord, void, undefined> {
  const [isMailbox, isSender] = [makeMatcher(patterns.mailbox), makeMatcher(patterns.sender)];
  const records = NOTED.has(state) ? peek.open(onDamaged) : peek.all(onDamaged);
  for await (const record of records) {
    if (stop.aborted) throw new Fault("STOPPED");
    const isWanted = state === undefined || record.state === state;
    if (isWanted && isMailbox(record.mailbox) && isSender(record.sender)) yield record;
  }
}

/** Keeps at most some twice the limit in memory, however many records there are. */
async function takeNewest(records: AsyncIterable<TransferRecord>, limit: number) {
  let [newest, total]: [TransferRecord[], number] = [[], 0];
  const cut = () => newest.toSorted((a, b) => compare(timeOf(b), timeOf(a))).slice(0, limit);
  for await (const record of records) {
    total++;
    newest.push(record);
    if (newest.length >= 2 * limit + 100) newest = cut();
  }
  return { newest: cut(), total };
}

async function makeFormatter(
  settings: Settings,
  peek: LedgerPeek,
): Promise<(record: TransferRecord) => string> {
  const countOf = await peek.countAttempts();
  const serviceIds = new Map(
    settings.mailboxes.map(({ name, service }) => [canonicalAddress(name), serviceIdOf(service.baseUrl)]),
  );
  return (record) => {
    const { mailbox, trackingId } = record;
    const serviceId = serviceIds.get(canonicalAddress(mailbox));
    const spent = serviceId === undefined ? undefined : countOf({ serviceId, trackingId });
    return escapeJson(JSON.stringify(formatTransfer(record, spent)));
  };
}

async function printLines(
  context: Context,
  records: AsyncIterable<TransferRecord> | Iterable<TransferRecord>,
  format: (record: TransferRecord) => string,
): Promise<void> {
  for await (const record of records) await writeOut(context, `${format(record)}\n`);
}

function sayDamaged(context: Context, paths: ReadonlySet<string>): void {
  if (paths.size === 0) return;
  say(context, `Skipped ${formatCount(paths.size, "unreadable record", "unreadable records")}:`);
  for (const path of [...paths].slice(0, MOST_DAMAGED_SHOWN)) say(context, `  ${path}`);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
