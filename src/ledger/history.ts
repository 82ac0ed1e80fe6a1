/**
 * Past transfers out of the journal, newest first.
 *
 * Each month is read on its own, the last one first, and each file of it from its end: the last deliveries cost a few
 * blocks, however long the journal is. The files of several writers are merged by the times in their lines. A clock that
 * was set back may show some entries in another order. The journal may hold a line twice: of each transfer one entry
 * counts, the newest that fits the query.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../base/faults.ts";
import { matchesGlob } from "../base/glob.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { type HistoryEntry, JournalFile, unreadable } from "./lines.ts";
import { LedgerPaths } from "./paths.ts";

export type { HistoryEntry } from "./lines.ts";

export interface HistoryQuery {
  /** From then on, in milliseconds. */
  readonly sinceMs?: number | undefined;
  /** Before then. */
  readonly untilMs?: number | undefined;
  /** Patterns with `*` and `?`, whatever the case of the letters. */
  readonly sender?: string | undefined;
  readonly mailbox?: string | undefined;
  /** Entries of this state, whatever followed it. */
  readonly state?: string | undefined;
  /** Part of the tracking-id, the sender or the folder, whatever the case of the letters. */
  readonly search?: string | undefined;
  /** Every change of state, not only the last of each transfer. */
  readonly changes?: boolean | undefined;
  readonly limit: number;
}

/** Gets the number of damaged lines in what was read of a file. Damaged lines are passed over. */
export type OnDamagedLines = (path: string, lines: number) => void;

/** `2026-03.jsonl`, or `2026-03.WRITER.jsonl` where several processes write. */
const FILE = /^(\d{4}-\d{2})(\..+)?\.jsonl$/;

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
    for (const [key, entry] of newest.take()) {
      shown.add(key);
      yield entry;
    }
    if (shown.size >= query.limit) return;
  }
}

/** Reads blocks, always of the file that is newest where it is unread, until nothing unread can be among the newest. */
async function readMonth(
  files: readonly JournalFile[],
  newest: Newest,
  query: HistoryQuery,
  shown: ReadonlySet<string>,
): Promise<void> {
  const fits = makeFilter(query);
  for (;;) {
    const unread = files.filter(({ isOver }) => !isOver);
    const file = unread.toSorted((a, b) => compare(b.readDownTo, a.readDownTo))[0];
    if (file === undefined || !newest.needs(file.readDownTo)) return;
    for (const entry of await file.readBlock()) {
      const key = keyOf(entry, query);
      if (fits(entry) && !shown.has(key)) newest.add(key, entry);
    }
  }
}

/** The files of each month that the query is about, the last month first. A file holds one month, by UTC. */
async function listMonths(folder: string, { sinceMs, untilMs }: HistoryQuery): Promise<string[][]> {
  const months = new Map<string, string[]>();
  for (const name of await namesIn(folder)) {
    const month = FILE.exec(name)?.[1];
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

/** Tests texts against a pattern with `*` and `?`, whatever the case of the letters. Without a pattern every text fits. */
export function makeMatcher(pattern: string | undefined): (text: string) => boolean {
  if (pattern === undefined) return () => true;
  const folded = fold(pattern);
  return (text) => matchesGlob(fold(text), folded);
}

function fold(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/** A round ends once: a crash can make the journal say so again, at another time. */
function keyOf({ mailbox, trackingId, state, round, at }: HistoryEntry, { changes }: HistoryQuery): string {
  const isEnd = round !== undefined && hasEnded({ state } as TransferRecord);
  return [mailbox, trackingId, ...(changes ? [state, isEnd ? round : at] : [])].join("\0");
}

/** The newest entry of each key, and no more keys than the limit. Gets entries in the order in which files are read. */
class Newest {
  readonly #limit: number;
  #entries = new Map<string, HistoryEntry>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(key: string, entry: HistoryEntry): void {
    const known = this.#entries.get(key);
    // Of two at the same time the one that was written later counts, which is read first.
    if (known !== undefined && known.at >= entry.at) return;
    this.#entries.set(key, entry);
    // Sorting at each entry would cost more than this memory.
    if (this.#entries.size >= 2 * this.#limit + 100) this.#entries = new Map(this.take());
  }

  /** Whether entries of this time, and older ones, may be among the newest. */
  needs(at: string): boolean {
    if (this.#entries.size < this.#limit) return true;
    const last = this.take().at(-1);
    return last !== undefined && last[1].at < at;
  }

  /** Newest first. Entries of the same time stay in the order in which they were read. */
  take(): [string, HistoryEntry][] {
    return [...this.#entries].toSorted(([, a], [, b]) => compare(b.at, a.at)).slice(0, this.#limit);
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function monthOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7);
}
