/** `history`: past transfers, and what operators did, from the journal. */
import { type Command, Option } from "commander";
import { formatCount } from "../base/phrases.ts";
import type { ActEntry, HistoryEntry } from "../model/views.ts";
import { type Context, invalid, type Outcome, type Runner } from "./command.ts";
import { transferColumns } from "./list.ts";
import { openConfigured } from "./open-access.ts";
import { addConfig, addFilter, type FilterOptions, filterOf, parseUntil, wholeNumber } from "./options.ts";
import { type Column, columnsOf, printJson, printTable, say, timeColumn } from "./printing.ts";

interface HistoryOptions extends FilterOptions {
  readonly until?: number;
  readonly changes?: boolean;
  readonly actions?: boolean;
  readonly limit?: number;
}

const DEFAULT_LIMIT = 50;

/** Entries are kept in memory until they are printed. */
const MAX_ENTRIES = 100_000;

const HELP = `
Without --changes, each transfer has one line: its last matching change of state. With --actions, it lists what
operators did, with who, when and from where, and which keys of the configuration changed. Passwords and values are
never recorded. With --json, --changes and --actions together give a whole audit.

  inlet history --since 7d --state quarantined
  inlet history --text 20260301-080300 --changes      one transfer from start to end
  inlet history --json --changes --actions --since 2026-03-01 >audit.json`;

export function define(command: Command, run: Runner): void {
  addFilter(addConfig(command).option("--mailbox <pattern>", "only for this mailbox; * stands for any text"))
    .option("--until <when>", "only until then; a date includes the whole day", parseUntil)
    .option("--changes", "list every change of state, not only the last of each transfer")
    .addOption(
      new Option("--actions", "list what operators did, and changes of the configuration").conflicts("state"),
    )
    .option(
      "--limit <number>",
      `at most this many, the newest first (default: ${DEFAULT_LIMIT}, with --json all)`,
      wholeNumber(1, MAX_ENTRIES),
    )
    .option("--json", "print the entries as JSON")
    .addHelpText("after", HELP)
    .action(run(showHistory));
}

async function showHistory(context: Context, options: HistoryOptions): Promise<Outcome> {
  const { actions, changes, json, limit = json ? MAX_ENTRIES : DEFAULT_LIMIT } = options;
  if (actions && changes && !json) throw invalid("--actions goes with --changes only if --json is given");
  const { access: journal, settings } = await openConfigured(context, options);
  const { timezone } = settings;
  // One more than asked for shows whether there are more.
  const query = { ...filterOf(options), untilMs: options.until, limit: limit + 1 };
  const acts = actions ? await journal.history("acts", query) : { entries: [], damaged: [] };
  const kind = changes ? "changes" : "transfers";
  // Both come from the same journal, with the same damaged lines.
  const past = changes || !actions ? await journal.history(kind, query) : { ...acts, entries: [] };
  const found = [...acts.entries, ...past.entries].toSorted((a, b) =>
    b.at < a.at ? -1 : Number(b.at > a.at),
  );
  const columns = transferColumns(context, timezone, ({ at }: HistoryEntry) => at);
  if (json) printJson(context, found.slice(0, limit));
  else if (actions) printTable(context, actColumns(context, timezone), acts.entries.slice(0, limit));
  else printTable(context, columns, past.entries.slice(0, limit));
  if (found.length === 0) say(context, actions ? "No action matches." : "No transfer matches.");
  if (found.length > limit) {
    const how = limit === MAX_ENTRIES ? "Choose others with --since and --until." : "Show more with --limit.";
    say(context, `These are the newest ${limit}. ${how}`);
  }
  for (const { path, lines } of past.damaged) {
    say(context, `Skipped as damaged: ${formatCount(lines, "line", "lines")} of ${path}.`);
  }
  return "fine";
}

function actColumns(context: Context, zone: string | undefined): Column<ActEntry>[] {
  return [
    timeColumn(context, "WHEN", zone, ({ given, at }) => given ?? at),
    { title: "ACTION", value: ({ act }) => act },
    ...columnsOf<ActEntry>("who", "from", "mailbox", "sender", "trackingId"),
    { title: "DETAIL", value: detailOf },
  ];
}

function detailOf({ keys = [], reason, listed, discovered }: ActEntry): string {
  return reason ?? (listed === undefined ? keys.join(", ") : `${listed} listed, ${discovered} new`);
}
