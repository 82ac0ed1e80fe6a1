/** `list`: all known transfers with their states. */
import type { Command } from "commander";
import { escapeJson, formatCount } from "../base/phrases.ts";
import { shownFolder } from "../model/record.ts";
import { type HistoryEntry, type TransferView, timeOf } from "../model/views.ts";
import type { Context, Outcome, Runner } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import { addConfig, addFilter, type FilterOptions, filterOf, wholeNumber } from "./options.ts";
import { type Column, columnsOf, printTable, say, timeColumn, writeOut } from "./printing.ts";

const DEFAULT_LIMIT = 50;
/** Sorting keeps this many transfers in memory. */
const MAX_SORTED = 100_000;
const MAX_DAMAGED_SHOWN = 10;

const HELP = `
With --json it prints all transfers in no particular order; with --json and --limit, only the newest. It reads the work
folder, with or without a running daemon; a user who may not read it asks the daemon through its Unix socket.

  inlet list --sender '*@supplier.example' --limit 200
  inlet list --json | jq -r 'select(.passwordsSpent > 0) | .trackingId'`;

export function define(command: Command, run: Runner): void {
  addFilter(addConfig(command).option("--mailbox <pattern>", "only for this mailbox; * stands for any text"))
    .option(
      "--limit <number>",
      "only this many, the newest first (default: 50; all with --json)",
      wholeNumber(1, MAX_SORTED),
    )
    .option("--json", "print one JSON object per line")
    .addHelpText("after", HELP)
    .action(run(list));
}

type ListOptions = FilterOptions & { readonly limit?: number };

async function list(context: Context, options: ListOptions): Promise<Outcome> {
  const { json, limit = json ? undefined : DEFAULT_LIMIT } = options;
  const { settings, access } = await openConfigured(context, options);
  const filter = filterOf(options);
  const damaged = new Set<string>();
  const onDamaged = (path: string) => void damaged.add(path);
  if (limit === undefined) {
    for await (const transfer of access.all(filter, onDamaged)) await printLine(context, transfer);
  } else {
    const { transfers, total, damaged: skipped } = await access.list({ ...filter, page: 1, size: limit });
    for (const path of skipped) onDamaged(path);
    if (json) for (const transfer of transfers) await printLine(context, transfer);
    else printTable(context, transferColumns<TransferView>(context, settings.timezone, timeOf), transfers);
    if (total === 0) say(context, "No transfer matches.");
    if (total > limit) {
      say(context, `These are the newest ${limit} of ${total} transfers. Show more with --limit.`);
    }
  }
  sayDamaged(context, damaged);
  return "fine";
}

function printLine(context: Context, transfer: TransferView): Promise<void> {
  return writeOut(context, `${escapeJson(JSON.stringify(transfer))}\n`);
}

function sayDamaged(context: Context, paths: ReadonlySet<string>): void {
  if (paths.size === 0) return;
  say(context, `Skipped ${formatCount(paths.size, "unreadable record", "unreadable records")}:`);
  for (const path of [...paths].slice(0, MAX_DAMAGED_SHOWN)) say(context, `  ${path}`);
}

/** Columns of a table of transfers. `timeOf`: the time in the first column, shown in `zone`. */
export function transferColumns<Row extends TransferView | HistoryEntry>(
  context: Context,
  zone: string | undefined,
  timeOf: (row: Row) => string,
): Column<Row>[] {
  return [
    timeColumn(context, "WHEN", zone, timeOf),
    ...columnsOf<Row>("state", "mailbox", "sender", "trackingId", "reason"),
    { title: "FOLDER", value: ({ folder, inbox }) => (folder ? shownFolder({ folder, inbox }) : "") },
  ];
}
