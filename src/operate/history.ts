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
import { JournalFile, type Kind } from "../ledger/lines.ts";
import { ledgerPaths, nameOf } from "../ledger/paths.ts";
import { type JournalKind, type KeyedFilter, makeFilter } from "../model/queries.ts";
import { hasEnded, type State, type TransferKey } from "../model/record.ts";
import type { ActEntry, HistoryEntry, Journal, JournalQuery, Tally } from "../model/views.ts";

/** Ends that a tally remembers, to find repeated ones: always those of the last half of this number. */
const MAX_COUNTED_ENDS = 50_000;

type Entry = HistoryEntry | ActEntry;

/**
 * `transfer`: only acts on it. Damaged lines are skipped. Throws `DISK_UNREADABLE` and `STOPPED`. No journal means no
 * history.
 */
export async function readJournal<Wanted extends JournalKind>(
  work: string,
  wanted: Wanted,
  query: JournalQuery & KeyedFilter & { readonly transfer?: TransferKey },
  signal?: AbortSignal,
): Promise<Journal<Wanted>> {
  const kind = wanted === "acts" ? "act" : "change";
  const { state, transfer } = query;
  const name = transfer && nameOf(transfer);
  const isOfTransfer = ({ mailbox = "", trackingId = "" }: Entry) =>
    name === undefined || name === nameOf({ mailbox, trackingId });
  const matches = makeFilter(query);
  const newest = new Newest(query.limit);
  const damaged: Journal["damaged"][number][] = [];
  for (const paths of await listMonths(work, query)) {
    // Each wanted line contains the mark.
    const lines = { kind, sinceMs: query.sinceMs, mark: transfer?.trackingId ?? state, signal } as const;
    const files = paths.map((path) => new JournalFile(path, lines));
    for await (const entry of readBlocks(files, (at) => newest.needs(at))) {
      if (matches(entry, entry.at) && isOfTransfer(entry)) newest.add(keyOf(wanted, entry), entry);
    }
    for (const file of files) if (file.damaged > 0) damaged.push({ path: file.path, lines: file.damaged });
    if (newest.isFull) break;
  }
  const entries = newest.list().map(([, entry]) => entry);
  // The kind decides the type, which the compiler cannot follow.
  return { entries: entries as unknown as Journal<Wanted>["entries"], damaged };
}

/** One tally per slot, from `sinceMs` until `untilMs`. Each end counts once. Throws `DISK_UNREADABLE` and `STOPPED`. */
export async function tallyHistory(
  work: string,
  { sinceMs, untilMs, slotMs }: Readonly<Record<"sinceMs" | "untilMs" | "slotMs", number>>,
  signal?: AbortSignal,
): Promise<Tally[]> {
  const none = { delivered: 0, quarantined: 0, gone: 0, bytes: 0 };
  const tallies = Array.from({ length: Math.ceil((untilMs - sinceMs) / slotMs) }, () => ({ ...none }));
  const counted = new CountedEnds();
  for (const paths of await listMonths(work, { sinceMs })) {
    const files = paths.map((path) => new JournalFile(path, { kind: "change", sinceMs, signal }));
    for await (const entry of readBlocks(files)) {
      const { state, bytes = 0 } = entry;
      const tally = tallies[Math.floor((Date.parse(entry.at) - sinceMs) / slotMs)];
      const isEnd = state === "delivered" || state === "quarantined" || state === "gone";
      if (tally === undefined || !isEnd || !counted.tryAdd(entry)) continue;
      tally[state]++;
      if (state === "delivered") tally.bytes += bytes;
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
    const key = hash("sha256", keyOf("changes", entry), "base64url");
    if (this.#newer.has(key) || this.#older.has(key)) return false;
    this.#newer.add(key);
    if (this.#newer.size >= MAX_COUNTED_ENDS / 2) {
      this.#older = this.#newer;
      this.#newer = new Set();
    }
    return true;
  }
}

/** The entries of several files. Each block is read from the file with the newest unread line, until no such line is needed. */
async function* readBlocks<K extends Kind>(
  files: readonly JournalFile<K>[],
  needs: (at: string) => boolean = () => true,
) {
  for (;;) {
    const unread = files.filter(({ isOver }) => !isOver);
    const [file] = unread.toSorted((a, b) => compareTexts(b.readDownTo, a.readDownTo));
    if (file === undefined || !needs(file.readDownTo)) return;
    yield* await file.readBlock();
  }
}

/** The files of each month that the query covers, the last month first. A file holds one month of UTC. */
async function listMonths(
  work: string,
  { sinceMs, untilMs }: Pick<JournalQuery, "sinceMs" | "untilMs">,
): Promise<string[][]> {
  const folder = ledgerPaths(work).journal;
  const monthAt = (ms: number) => new Date(ms).toISOString().slice(0, 7);
  const first = sinceMs === undefined ? "" : monthAt(sinceMs);
  // Sorts after every month.
  const last = untilMs === undefined ? "~" : monthAt(untilMs);
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return [];
    throw unreadable(folder, error);
  });
  const monthOf = (name: string) => JOURNAL_FILE.exec(name)?.[1] ?? "";
  const wanted = names.filter((name) => {
    const month = monthOf(name);
    return month !== "" && month >= first && month <= last;
  });
  const months = [...Map.groupBy(wanted.toSorted(), monthOf)].toSorted(([a], [b]) => compareTexts(b, a));
  return months.map(([, found]) => found.map((name) => join(folder, name)));
}

/** Of entries with the same key, only the newest is shown. */
export function keyOf(wanted: JournalKind, entry: Entry): string {
  if ("act" in entry) return entry.id;
  const { mailbox, trackingId, state, round, at } = entry;
  if (wanted === "transfers") return [mailbox, trackingId].join("\0");
  // A round ends once, but after a crash the journal may hold its end twice, with different times.
  const isEnd = round !== undefined && hasEnded({ state: state as State });
  return [mailbox, trackingId, state, isEnd ? round : at].join("\0");
}

/** Keeps the newest entry of each key, and at most `limit` keys. Entries are added in the order in which files are read. */
class Newest {
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

  get isFull(): boolean {
    return this.#entries.size >= this.#limit;
  }

  /** Whether entries of this time or older may be among the newest. */
  needs(at: string): boolean {
    if (!this.isFull) return true;
    const last = this.list().at(-1);
    return last !== undefined && last[1].at < at;
  }

  /** Newest first. Entries of the same time stay in the order in which they were read. */
  list(): [string, Entry][] {
    return [...this.#entries].toSorted(([, a], [, b]) => compareTexts(b.at, a.at)).slice(0, this.#limit);
  }
}
