/** `history`: past transfers, and what operators did, from the journal. */
import { type Command, Option } from "commander";
import { formatCount } from "../base/phrases.ts";
import { loadFolders, loadHttp } from "../config/load.ts";
import { type OnDamagedLines, readActs, readHistory } from "../ledger/history.ts";
import { LedgerPaths } from "../ledger/paths.ts";
import { STATES } from "../model/record.ts";
import type { ActEntry, ActQuery, HistoryEntry, HistoryQuery } from "../model/views.ts";
import type { Context, Run } from "./context.ts";
import type { Outcome } from "./exit-codes.ts";
import { addConfig, invalid, parseSince, parseUntil, wholeNumber } from "./options.ts";
import { mayRead, permissionFault } from "./permission.ts";
import { type Column, printRows, say, timeColumn } from "./printing.ts";
import { transferColumns } from "./transfers.ts";

interface HistoryOptions extends HistoryQuery {
  readonly config?: string;
  readonly json?: boolean;
  readonly since?: number;
  readonly until?: number;
  readonly actions?: boolean;
}

/** Entries are kept in memory until they are printed. */
const MAX_ENTRIES = 100_000;

const HELP = `
Without --changes, each transfer has one line: its last matching change of state. So --state delivered
lists every delivery, even if a consumer has picked up the folder since.

With --actions, it lists what operators did: each retry, release, discard, redeliver, supplied password and granted
attempt, with who, when and from where, and each change of the configuration with its keys. Passwords and values are
never recorded.

It reads the journal in the work folder, with or without a running daemon, and changes nothing. If this user may not
read the folder, it asks the daemon through its Unix socket.

  inlet history --since 7d --state quarantined
  inlet history --sender '*@supplier.example' --since 2026-03-01 --until 2026-03-31
  inlet history --search 20260301-080300 --changes      one transfer from start to end
  inlet history --actions --since 7d`;

export function define(command: Command, run: Run): void {
  addConfig(command)
    .option("--since <when>", "only since then: an age (12h, 7d, 4w) or a date (2026-03-01)", parseSince)
    .option("--until <when>", "only until then; a date includes the whole day", parseUntil)
    .option("--sender <pattern>", "only from these senders; * matches any text")
    .option("--mailbox <pattern>", "only for these mailboxes; * matches any text")
    .addOption(new Option("--state <state>", "only transfers that entered this state").choices(STATES))
    .option(
      "--search <text>",
      "only if the tracking-id, sender or folder contains this text; with --actions, also the operator",
    )
    .option("--changes", "list every change of state, not only the last of each transfer")
    .option("--actions", "list what operators did, and changes of the configuration")
    .option("--limit <number>", "at most this many, the newest first", wholeNumber(1, MAX_ENTRIES), 50)
    .option("--json", "print the entries as JSON")
    .addHelpText("after", HELP)
    .action((options: HistoryOptions) => run((context) => showHistory(context, options)));
}

async function showHistory(context: Context, options: HistoryOptions): Promise<Outcome> {
  const { config: path, since: sinceMs, until: untilMs, actions } = options;
  if (actions && (options.state !== undefined || options.changes)) {
    throw invalid("--actions goes with neither --state nor --changes");
  }
  const { work, timezone } = await loadFolders({ env: context.env, path });
  const journal = await openJournal(context, path, work);
  const damaged: string[] = [];
  const onDamaged: OnDamagedLines = (file, lines) =>
    damaged.push(`${formatCount(lines, "line", "lines")} of ${file}`);
  // One more than asked for shows whether there are more.
  const query = { ...options, sinceMs, untilMs, limit: options.limit + 1 };
  if (actions) {
    const found = await journal.acts(query, onDamaged);
    print(context, options, actColumns(context, timezone), found);
  } else {
    const found = await journal.changes(query, onDamaged);
    print(
      context,
      options,
      transferColumns(context, timezone, ({ at }: HistoryEntry) => at),
      found,
    );
  }
  for (const lines of damaged) say(context, `Skipped as damaged: ${lines}.`);
  return "fine";
}

/** Newest first. */
interface JournalSource {
  changes(query: HistoryQuery, onDamaged: OnDamagedLines): Promise<readonly HistoryEntry[]>;
  acts(query: ActQuery, onDamaged: OnDamagedLines): Promise<readonly ActEntry[]>;
}

/** Throws `PERMISSION_DENIED` if this user may use neither the journal nor a socket of the daemon. */
async function openJournal(context: Context, path: string | undefined, work: string): Promise<JournalSource> {
  const { env, stop } = context;
  const { journal } = new LedgerPaths(work);
  if (await mayRead(journal)) {
    return {
      changes: (query, onDamaged) => Array.fromAsync(readHistory(work, query, onDamaged, stop)),
      acts: (query, onDamaged) => Array.fromAsync(readActs(work, query, onDamaged, stop)),
    };
  }
  const { openSocket } = await import("./daemon-socket.ts");
  const socket = await openSocket(context, await loadHttp({ env, path }));
  if (socket === undefined) throw await permissionFault(journal);
  const { RemoteJournal } = await import("./remote-journal.ts");
  return new RemoteJournal(socket);
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
    { title: "DETAIL", value: ({ keys = [], reason }) => reason ?? keys.join(", ") },
  ];
}
