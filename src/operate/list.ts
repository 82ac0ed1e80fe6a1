/** Lists transfers: all that the ledger knows, or the open ones of a running daemon. Changes nothing. */
import { Fault } from "../base/faults.ts";
import { compareTexts } from "../base/phrases.ts";
import type { MailboxSettings } from "../config/settings.ts";
import type { LedgerPeek } from "../ledger/peek.ts";
import type { OnDamaged } from "../ledger/port.ts";
import {
  type KeyedFilter,
  type ListQuery,
  makeFilter,
  type SORTS,
  type TransferFilter,
} from "../model/queries.ts";
import type { State, TransferRecord } from "../model/record.ts";
import type { OpenList, TransferStatus } from "../model/status.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import { TransferShape, type TransferView, timeOf } from "../model/views.ts";

/** A mailbox's name, and the settings that its password attempts depend on. */
export type MailboxFacts = Pick<MailboxSettings, "name" | "passwordAttempts">;

/** In these states, a transfer's round is open and has a note in the ledger, so only the notes have to be read. */
const NOTED: ReadonlySet<State | undefined> = new Set<State>(["downloading", "waiting", "checking"]);

/** A page of open transfers. `open`: all of them, the most urgent first. A page beyond the end is the last one. */
export function listOpen(
  open: readonly TransferStatus[],
  { page: wanted, size, sort = "urgency", ...query }: Omit<ListQuery, "act">,
): OpenList {
  const found = filterOpen(open, query);
  const pages = countPages(found.length, size);
  const page = Math.min(wanted, pages);
  const sorted = sort === "urgency" ? found : found.toSorted(COMPARATORS[sort]);
  return { total: found.length, page, pages, size, transfers: sorted.slice((page - 1) * size, page * size) };
}

/** The open transfers that match, in the same order. */
export function filterOpen(
  open: readonly TransferStatus[],
  { group = "open", ...filter }: TransferFilter & Pick<ListQuery, "group">,
): TransferStatus[] {
  const matches = makeFilter(filter);
  return open.filter((each) => (group === "open" || group === each.group) && matches(each, each.since));
}

export function countPages(total: number, size: number): number {
  return Math.max(1, Math.ceil(total / size));
}

/** The records that match, in no particular order. Skips damaged ones. Throws `DISK_UNREADABLE` and `STOPPED`. */
export async function* selectTransfers(
  peek: LedgerPeek,
  filter: KeyedFilter,
  onDamaged: OnDamaged,
  signal?: AbortSignal,
): AsyncGenerator<TransferRecord, void, undefined> {
  const matches = makeFilter(filter);
  const records = NOTED.has(filter.state) ? peek.open(onDamaged) : peek.all(onDamaged);
  for await (const record of records) {
    if (signal?.aborted) throw new Fault("STOPPED");
    if (matches(record, timeOf(record))) yield record;
  }
}

type Sort = (typeof SORTS)[number];

/** The first records in this order. However many there are, at most about twice the limit is kept in memory. */
export async function takeFirst(
  records: AsyncIterable<TransferRecord>,
  limit: number,
  sort: Sort = "newest",
): Promise<{ readonly first: TransferRecord[]; readonly total: number }> {
  let first: TransferRecord[] = [];
  let total = 0;
  const cut = () => first.toSorted(COMPARATORS[sort]).slice(0, limit);
  for await (const record of records) {
    total++;
    first.push(record);
    if (first.length >= 2 * limit + 100) first = cut();
  }
  return { first: cut(), total };
}

/** A text that sorts after every time. */
const NEVER = "~";

type Listed = TransferRecord | TransferStatus;

const byTime = (one: Listed, other: Listed) => compareTexts(changedAt(one), changedAt(other));

const COMPARATORS: Readonly<Record<Sort, (one: Listed, other: Listed) => number>> = {
  urgency: (one, other) => compareTexts(one.expires ?? NEVER, other.expires ?? NEVER) || byTime(one, other),
  newest: (one, other) => byTime(other, one),
  oldest: byTime,
  sender: (one, other) => compareTexts(one.sender, other.sender),
  size: (one, other) => (other.bytes ?? -1) - (one.bytes ?? -1),
};

function changedAt(listed: Listed): string {
  return "at" in listed ? timeOf(listed) : (listed.since ?? "");
}

/** Returns a function that formats records. The folder of password attempts is listed only once. */
export async function makeFormatter(
  peek: LedgerPeek,
  mailboxes: readonly MailboxFacts[],
): Promise<(record: TransferRecord) => Promise<TransferView>> {
  const countOf = await peek.countAttempts();
  const budgets = new Map(mailboxes.map((it) => [mailboxIdOf(it.name), it.passwordAttempts]));
  return async (record) => {
    const budget = budgets.get(mailboxIdOf(record.mailbox));
    return formatTransfer(record, budget === undefined ? undefined : await countOf(record, budget));
  };
}

const KEYS = Object.keys(TransferShape.entries) as (keyof TransferView)[];

/** A transfer as JSON: every key is always present. */
export function formatTransfer(record: TransferRecord, passwordsSpent: number | undefined): TransferView {
  const facts: { readonly [Key in keyof TransferView]?: unknown } = { ...record, passwordsSpent };
  return Object.fromEntries(KEYS.map((key) => [key, facts[key] ?? null])) as TransferView;
}
