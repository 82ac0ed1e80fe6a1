/**
 * Reads past transfers from the journal, newest first.
 *
 * Months are read from the last one back, and each file from its end, so that recent entries cost a few blocks however
 * long the journal is. The files of several writers are merged by the times of their lines. Where a clock was set back,
 * some entries may be out of order. Of each transfer, the newest entry that matches the query is shown: the journal may
 * hold a line twice.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../base/faults.ts";
import { matchesGlob } from "../base/glob.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { JOURNAL_FILE } from "./journal.ts";
import { type HistoryEntry, JournalFile, unreadable } from "./lines.ts";
import { LedgerPaths } from "./paths.ts";

export type { HistoryEntry } from "./lines.ts";

export interface HistoryQuery {
  /** From then on, in milliseconds. */
  readonly sinceMs?: number | undefined;
  /** Before then. */
  readonly untilMs?: number | undefined;
  /** Patterns with `*` and `?`. Case is ignored. */
  readonly sender?: string | undefined;
  readonly mailbox?: string | undefined;
  /** Entries of this state, even where another state followed. */
  readonly state?: string | undefined;
  /** Part of the tracking-id, the sender or the folder. Case is ignored. */
  readonly search?: string | undefined;
  /** Every change of state, not only the last of each transfer. */
  readonly changes?: boolean | undefined;
  readonly limit: number;
}

/** Gets the number of damaged lines in a file, as far as it was read. Damaged lines are skipped. */
export type OnDamagedLines = (path: string, lines: number) => void;

/** Throws `DISK_UNREADABLE` and `STOPPED`. No journal means no history. */
export async function* readHistory(
  work: string,
  query: HistoryQuery,
  onDamaged: OnDamagedLines,
  signal?: AbortSignal,
): AsyncGenerator<HistoryEntry, void, undefined> {
  const { journal } = new LedgerPaths(work);
  const shown = new Set<string>();
  for (const paths of await listMonths(journal, query)) {
    const newest = new Newest(query.limit - shown.size);
    const files = paths.map((path) => new JournalFile(path, query, signal));
    await readMonth(files, newest, query, shown);
    for (const { path, damaged } of files) if (damaged > 0) onDamaged(path, damaged);
    for (const [key, entry] of newest.list()) {
      shown.add(key);
      yield entry;
    }
    if (shown.size >= query.limit) return;
  }
}

/**
 * Reads blocks, each from the file with the newest unread line, until no unread line can be among the newest entries.
 */
async function readMonth(
  files: readonly JournalFile[],
  newest: Newest,
  query: HistoryQuery,
  shown: ReadonlySet<string>,
): Promise<void> {
  const matches = makeFilter(query);
  for (;;) {
    const unread = files.filter(({ isOver }) => !isOver);
    const file = unread.toSorted((a, b) => compare(b.readDownTo, a.readDownTo))[0];
    if (file === undefined || !newest.needs(file.readDownTo)) return;
    for (const entry of await file.readBlock()) {
      const key = keyOf(entry, query);
      if (matches(entry) && !shown.has(key)) newest.add(key, entry);
    }
  }
}

/** The files of each month that the query covers, the last month first. A file holds one month of UTC. */
async function listMonths(folder: string, { sinceMs, untilMs }: HistoryQuery): Promise<string[][]> {
  const months = new Map<string, string[]>();
  for (const name of await namesIn(folder)) {
    const month = JOURNAL_FILE.exec(name)?.[1];
    if (month === undefined) continue;
    const isTooOld = sinceMs !== undefined && month < monthOf(sinceMs);
    const isTooNew = untilMs !== undefined && month > monthOf(untilMs);
    if (!isTooOld && !isTooNew) months.set(month, [...(months.get(month) ?? []), join(folder, name)]);
  }
  return [...months].toSorted(([a], [b]) => compare(b, a)).map(([, paths]) => paths.toSorted());
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return [];
    throw unreadable(folder, error);
  });
}

function makeFilter(query: HistoryQuery): (entry: HistoryEntry) => boolean {
  const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY, state } = query;
  const [isSender, isMailbox] = [makeMatcher(query.sender), makeMatcher(query.mailbox)];
  const wanted = fold(query.search ?? "");
  return (entry) => {
    const { at, sender, mailbox, trackingId, folder = "" } = entry;
    const atMs = Date.parse(at);
    return (
      atMs >= sinceMs &&
      atMs < untilMs &&
      (state === undefined || state === entry.state) &&
      isSender(sender) &&
      isMailbox(mailbox) &&
      (wanted === "" || [trackingId, sender, folder].some((text) => fold(text).includes(wanted)))
    );
  };
}

/** Matches texts against a pattern with `*` and `?`. Case is ignored. Without a pattern, every text matches. */
export function makeMatcher(pattern: string | undefined): (text: string) => boolean {
  if (pattern === undefined) return () => true;
  const folded = fold(pattern);
  return (text) => matchesGlob(fold(text), folded);
}

function fold(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/** A round ends once, but after a crash the journal may hold its end twice, with different times. */
function keyOf({ mailbox, trackingId, state, round, at }: HistoryEntry, { changes }: HistoryQuery): string {
  const isEnd = round !== undefined && hasEnded({ state } as TransferRecord);
  return [mailbox, trackingId, ...(changes ? [state, isEnd ? round : at] : [])].join("\0");
}

/**
 * Keeps the newest entry of each key, and at most `limit` keys. Entries are added in the order in which files are read.
 */
class Newest {
  readonly #limit: number;
  #entries = new Map<string, HistoryEntry>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(key: string, entry: HistoryEntry): void {
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
  list(): [string, HistoryEntry][] {
    return [...this.#entries].toSorted(([, a], [, b]) => compare(b.at, a.at)).slice(0, this.#limit);
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function monthOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7);
}
