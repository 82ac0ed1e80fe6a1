/**
 * Reads past transfers and operators' acts from the journal, newest first.
 *
 * Months are read from the last one back, and each file from its end, so that recent entries cost a few blocks however
 * long the journal is. The files of several writers are merged by the times of their lines. If a clock was set back,
 * some entries may be out of order. Of each transfer, the newest entry that matches the query is shown: the journal may
 * hold a line twice. An act is shown once, however often it was recorded.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import { systemCode, unreadable } from "../base/faults.ts";
import { readdir } from "../base/files.ts";
import { compareTexts } from "../base/phrases.ts";
import { JOURNAL_FILE } from "../ledger/journal.ts";
import { type EntryOf, JournalFile, type Kind } from "../ledger/lines.ts";
import { LedgerPaths, nameOf } from "../ledger/paths.ts";
import { makeFilter } from "../model/queries.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import type { ActEntry, ActQuery, HistoryEntry, HistoryQuery, Tally } from "../model/views.ts";

/** Ends that a tally remembers, to find repeated ones: always those of the last half of this number. */
const MAX_COUNTED_ENDS = 50_000;

/** Gets the number of damaged lines in a file, as far as it was read. Damaged lines are skipped. */
export type OnDamagedLines = (path: string, lines: number) => void;

/** Throws `DISK_UNREADABLE` and `STOPPED`. No journal means no history. */
export function readHistory(
  work: string,
  query: HistoryQuery,
  onDamaged: OnDamagedLines,
  signal?: AbortSignal,
): AsyncGenerator<HistoryEntry, void, undefined> {
  const matches = makeFilter(query);
  const reading: Reading<"change"> = {
    kind: "change",
    mark: query.state,
    matches: (entry) => matches(entry, entry.at),
    keyOf: (entry) => keyOf(entry, query),
  };
  return read(work, query, reading, onDamaged, signal);
}

/** Operators' acts. Throws `DISK_UNREADABLE` and `STOPPED`. */
export function readActs(
  work: string,
  query: ActQuery,
  onDamaged: OnDamagedLines,
  signal?: AbortSignal,
): AsyncGenerator<ActEntry, void, undefined> {
  const matches = makeFilter(query);
  const { transfer } = query;
  const name = transfer && nameOf(transfer);
  const isOf = ({ mailbox = "", trackingId = "" }: ActEntry) =>
    name === undefined || name === nameOf({ mailbox, trackingId });
  const reading: Reading<"act"> = {
    kind: "act",
    mark: transfer?.trackingId,
    matches: (entry) => matches(entry, entry.at) && isOf(entry),
    keyOf: ({ id }) => id,
  };
  return read(work, query, reading, onDamaged, signal);
}

interface Reading<K extends Kind> {
  readonly kind: K;
  /** A text that each wanted line contains. */
  readonly mark: string | undefined;
  matches(entry: EntryOf<K>): boolean;
  /** Of entries with the same key, only the newest is shown. */
  keyOf(entry: EntryOf<K>): string;
}

async function* read<K extends Kind>(
  work: string,
  query: ActQuery,
  reading: Reading<K>,
  onDamaged: OnDamagedLines,
  signal: AbortSignal | undefined,
): AsyncGenerator<EntryOf<K>, void, undefined> {
  const { journal } = new LedgerPaths(work);
  const wanted = { sinceMs: query.sinceMs, mark: reading.mark };
  const shown = new Set<string>();
  for (const paths of await listMonths(journal, query)) {
    const newest = new Newest<EntryOf<K>>(query.limit - shown.size);
    const files = paths.map((path) => new JournalFile(path, reading.kind, wanted, signal));
    await readMonth(files, newest, reading, shown);
    for (const { path, damaged } of files) if (damaged > 0) onDamaged(path, damaged);
    for (const [key, entry] of newest.list()) {
      shown.add(key);
      yield entry;
    }
    if (shown.size >= query.limit) return;
  }
}

/** One tally per slot, from `sinceMs` until `untilMs`. Each end counts once. Throws `DISK_UNREADABLE` and `STOPPED`. */
export async function tallyHistory(
  work: string,
  { sinceMs, untilMs, slotMs }: Readonly<Record<"sinceMs" | "untilMs" | "slotMs", number>>,
  signal?: AbortSignal,
): Promise<Tally[]> {
  const none = { delivered: 0, quarantined: 0, gone: 0, bytes: 0 };
  const tallies = Array.from({ length: Math.ceil((untilMs - sinceMs) / slotMs) }, () => ({ ...none }));
  const { journal } = new LedgerPaths(work);
  const counted = new CountedEnds();
  for (const paths of await listMonths(journal, { sinceMs, limit: 0 })) {
    const files = paths.map((path) => new JournalFile(path, "change", { sinceMs }, signal));
    for (let file = newestUnread(files); file !== undefined; file = newestUnread(files)) {
      for (const entry of await file.readBlock()) {
        const { state, bytes = 0 } = entry;
        const tally = tallies[Math.floor((Date.parse(entry.at) - sinceMs) / slotMs)];
        const isEnd = state === "delivered" || state === "quarantined" || state === "gone";
        if (tally === undefined || !isEnd || !counted.tryAdd(entry)) continue;
        tally[state]++;
        if (state === "delivered") tally.bytes += bytes;
      }
    }
  }
  return tallies;
}

/** The ends counted last. Older ones are forgotten: a start writes an end again soon after a crash. */
class CountedEnds {
  #newer = new Set<string>();
  #older: ReadonlySet<string> = new Set();

  /** False if the end is known. */
  tryAdd(entry: HistoryEntry): boolean {
    const key = hash("sha256", keyOf(entry, { changes: true }), "base64url");
    if (this.#newer.has(key) || this.#older.has(key)) return false;
    this.#newer.add(key);
    if (this.#newer.size >= MAX_COUNTED_ENDS / 2) {
      this.#older = this.#newer;
      this.#newer = new Set();
    }
    return true;
  }
}

/**
 * Reads blocks, each from the file with the newest unread line, until no unread line can be among the newest entries.
 */
async function readMonth<K extends Kind>(
  files: readonly JournalFile<K>[],
  newest: Newest<EntryOf<K>>,
  { matches, keyOf }: Reading<K>,
  shown: ReadonlySet<string>,
): Promise<void> {
  for (;;) {
    const file = newestUnread(files);
    if (file === undefined || !newest.needs(file.readDownTo)) return;
    for (const entry of await file.readBlock()) {
      const key = keyOf(entry);
      if (matches(entry) && !shown.has(key)) newest.add(key, entry);
    }
  }
}

/** The file with the newest unread line; `undefined` if all are read. */
function newestUnread<K extends Kind>(files: readonly JournalFile<K>[]): JournalFile<K> | undefined {
  const unread = files.filter(({ isOver }) => !isOver);
  return unread.toSorted((a, b) => compareTexts(b.readDownTo, a.readDownTo))[0];
}

/** The files of each month that the query covers, the last month first. A file holds one month of UTC. */
async function listMonths(folder: string, { sinceMs, untilMs }: ActQuery): Promise<string[][]> {
  const months = new Map<string, string[]>();
  for (const name of await namesIn(folder)) {
    const month = JOURNAL_FILE.exec(name)?.[1];
    if (month === undefined) continue;
    const isTooOld = sinceMs !== undefined && month < monthOf(sinceMs);
    const isTooNew = untilMs !== undefined && month > monthOf(untilMs);
    if (!isTooOld && !isTooNew) months.set(month, [...(months.get(month) ?? []), join(folder, name)]);
  }
  return [...months].toSorted(([a], [b]) => compareTexts(b, a)).map(([, paths]) => paths.toSorted());
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return [];
    throw unreadable(folder, error);
  });
}

/** A round ends once, but after a crash the journal may hold its end twice, with different times. */
function keyOf(
  { mailbox, trackingId, state, round, at }: HistoryEntry,
  { changes }: Pick<HistoryQuery, "changes">,
): string {
  const isEnd = round !== undefined && hasEnded({ state } as TransferRecord);
  return [mailbox, trackingId, ...(changes ? [state, isEnd ? round : at] : [])].join("\0");
}

/**
 * Keeps the newest entry of each key, and at most `limit` keys. Entries are added in the order in which files are read.
 */
class Newest<Entry extends { readonly at: string }> {
  readonly #limit: number;
  #entries = new Map<string, Entry>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(key: string, entry: Entry): void {
    const known = this.#entries.get(key);
    // Of two entries with the same time, the first one read was written last.
    if (known !== undefined && known.at >= entry.at) return;
    this.#entries.set(key, entry);
    // Spare entries cost less than sorting at each entry.
    if (this.#entries.size >= 2 * this.#limit + 100) this.#entries = new Map(this.list());
  }

  /** Whether entries of this time or older may be among the newest. */
  needs(at: string): boolean {
    if (this.#entries.size < this.#limit) return true;
    const last = this.list().at(-1);
    return last !== undefined && last[1].at < at;
  }

  /** Newest first. Entries of the same time stay in the order in which they were read. */
  list(): [string, Entry][] {
    return [...this.#entries].toSorted(([, a], [, b]) => compareTexts(b.at, a.at)).slice(0, this.#limit);
  }
}

function monthOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7);
}
