/** `history`: past transfers, and what operators did, from the journal. */
import type { Command } from "commander";
import { formatCount } from "../base/phrases.ts";
import type { ActEntry, HistoryEntry } from "../model/views.ts";
import type { OnDamagedLines } from "../operate/history.ts";
import type { Context, Run } from "./context.ts";
import type { Outcome } from "./exit-codes.ts";
import { openJournal } from "./open-access.ts";
import {
  addConfig,
  addFilter,
  type FilterOptions,
  filterOf,
  invalid,
  parseUntil,
  wholeNumber,
} from "./options.ts";
import { type Column, printRows, say, timeColumn } from "./printing.ts";
import { transferColumns } from "./transfers.ts";

interface HistoryOptions extends FilterOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly until?: number;
  readonly changes?: boolean;
  readonly actions?: boolean;
  readonly limit: number;
}

/** Entries are kept in memory until they are printed. */
const MAX_ENTRIES = 100_000;

const HELP = `
Without --changes, each transfer has one line: its last matching change of state. So --state delivered
lists every delivery, even if a consumer has picked up the folder since.

With --actions, it lists what operators did: each retry, release, discard, redeliver, supplied password and granted
attempt, each poll, pause and resume of a mailbox, with who, when and from where, and each change of the configuration
with its keys. Passwords and values are never recorded.

It reads the journal in the work folder, with or without a running daemon, and changes nothing. If this user may not
read the folder, it asks the daemon through its Unix socket.

  inlet history --since 7d --state quarantined
  inlet history --sender '*@supplier.example' --since 2026-03-01 --until 2026-03-31
  inlet history --text 20260301-080300 --changes      one transfer from start to end
  inlet history --actions --since 7d`;

export function define(command: Command, run: Run): void {
  addFilter(addConfig(command).option("--mailbox <pattern>", "only for this mailbox; * stands for any text"))
    .option("--until <when>", "only until then; a date includes the whole day", parseUntil)
    .option("--changes", "list every change of state, not only the last of each transfer")
    .option("--actions", "list what operators did, and changes of the configuration")
    .option("--limit <number>", "at most this many, the newest first", wholeNumber(1, MAX_ENTRIES), 50)
    .option("--json", "print the entries as JSON")
    .addHelpText("after", HELP)
    .action((options: HistoryOptions) => run((context) => showHistory(context, options)));
}

async function showHistory(context: Context, options: HistoryOptions): Promise<Outcome> {
  const { actions } = options;
  if (actions && (options.state !== undefined || options.changes)) {
    throw invalid("--actions goes with neither --state nor --changes");
  }
  const { operate: journal, timezone } = await openJournal(context, options.config);
  const damaged: string[] = [];
  const onDamaged: OnDamagedLines = (file, lines) =>
    damaged.push(`${formatCount(lines, "line", "lines")} of ${file}`);
  // One more than asked for shows whether there are more.
  const query = { ...filterOf(options), untilMs: options.until, limit: options.limit + 1 };
  if (actions) {
    print(context, options, actColumns(context, timezone), await journal.history("acts", query, onDamaged));
  } else {
    const columns = transferColumns(context, timezone, ({ at }: HistoryEntry) => at);
    const kind = options.changes ? "changes" : "transfers";
    print(context, options, columns, await journal.history(kind, query, onDamaged));
  }
  for (const lines of damaged) say(context, `Skipped as damaged: ${lines}.`);
  return "fine";
}

function print<Entry>(
  context: Context,
  { json, limit, actions }: HistoryOptions,
  columns: readonly Column<Entry>[],
  found: readonly Entry[],
): void {
  const entries = found.slice(0, limit);
  printRows(context, json === undefined ? {} : { json }, columns, entries);
  if (entries.length === 0) say(context, actions ? "No action matches." : "No transfer matches.");
  if (found.length > limit) say(context, `These are the newest ${limit}. Show more with --limit.`);
}

function actColumns(context: Context, zone: string | undefined): Column<ActEntry>[] {
  return [
    timeColumn(context, "WHEN", zone, ({ given, at }) => given ?? at),
    { title: "ACTION", value: ({ act }) => act },
    { title: "WHO", value: ({ who }) => who },
    { title: "FROM", value: ({ from }) => from },
    { title: "MAILBOX", value: ({ mailbox = "" }) => mailbox },
    { title: "SENDER", value: ({ sender = "" }) => sender },
    { title: "TRACKING ID", value: ({ trackingId = "" }) => trackingId },
    { title: "DETAIL", value: detailOf },
  ];
}

function detailOf({ keys = [], reason, listed, discovered }: ActEntry): string {
  return reason ?? (listed === undefined ? keys.join(", ") : `${listed} listed, ${discovered} new`);
}
