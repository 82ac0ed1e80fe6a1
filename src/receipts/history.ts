/**
 * What the journal tells of past transfers, newest first.
 *
 * Each month is read on its own, the last one first, and only as many months as the question needs. Of a month only
 * as many entries are kept as were asked for, so that the length of the journal costs time but no memory. A line may
 * stand there twice (decision 006): of each transfer one entry counts, the newest that fits the question.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import { matchesGlob } from "../base/glob.ts";
import { MOST_LINE_BYTES } from "./journal.ts";
import { readLines } from "./lines.ts";
import { Places } from "./places.ts";

export interface HistoryQuery {
  /** From then on, in milliseconds. */
  readonly sinceMs?: number | undefined;
  /** Before then. */
  readonly untilMs?: number | undefined;
  /** Patterns in which `*` and `?` count, whatever the case of the letters. */
  readonly sender?: string | undefined;
  readonly mailbox?: string | undefined;
  /** Entries of this state: how a transfer went on after it does not matter. */
  readonly state?: string | undefined;
  /** Stands somewhere in the tracking-id, the sender or the folder, whatever the case of the letters. */
  readonly search?: string | undefined;
  /** Every change of state, not only the last of each transfer. */
  readonly changes?: boolean | undefined;
  readonly limit: number;
}

export interface HistoryEntry {
  /** ISO 8601. */
  readonly at: string;
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  readonly state: string;
  readonly reason?: string | undefined;
  /** From the inbox's root. */
  readonly folder?: string | undefined;
}

/** Hears how many lines of a file are damaged; they are passed over. */
export type OnDamagedLines = (path: string, lines: number) => void;

/** `2026-03.jsonl`, or `2026-03.HOST.jsonl` where several hosts write. */
const FILE = /^(\d{4}-\d{2})(\..+)?\.jsonl$/;

const Line = v.object({
  at: v.pipe(v.string(), v.isoTimestamp()),
  mailbox: v.string(),
  trackingId: v.string(),
  sender: v.string(),
  state: v.string(),
  reason: v.optional(v.string()),
  folder: v.optional(v.string()),
});

/** Throws `DISK_UNREADABLE`; where there is no journal yet, there is no history. */
export async function* readHistory(
  work: string,
  query: HistoryQuery,
  onDamaged: OnDamagedLines,
  signal?: AbortSignal,
): AsyncGenerator<HistoryEntry, void, undefined> {
  const { journalFolder } = new Places(work);
  const told = new Set<string>();
  for (const { paths } of await listMonths(journalFolder, query)) {
    const newest = new Newest(query.limit - told.size);
    await readMonth(paths, newest, query, told, onDamaged, signal);
    for (const [key, entry] of newest.take()) {
      told.add(key);
      yield entry;
    }
    if (told.size >= query.limit) return;
  }
}

/** `told`: what a later month has told already. */
async function readMonth(
  paths: readonly string[],
  newest: Newest,
  query: HistoryQuery,
  told: ReadonlySet<string>,
  onDamaged: OnDamagedLines,
  signal: AbortSignal | undefined,
): Promise<void> {
  const fits = matcherOf(query);
  for (const path of paths) {
    let damaged = 0;
    const take = (line: string | undefined) => {
      const entry = line === undefined ? undefined : parseLine(line);
      if (entry === undefined) damaged++;
      else if (fits(entry) && !told.has(keyOf(entry, query))) newest.add(keyOf(entry, query), entry);
    };
    try {
      for await (const lines of readLines(path, MOST_LINE_BYTES, signal)) lines.forEach(take);
    } catch (error) {
      if (signal?.aborted) throw new Fault("STOPPED", { cause: error });
      throw error instanceof Error && "code" in error ? unreadable(path, error) : error;
    }
    if (damaged > 0) onDamaged(path, damaged);
  }
}

interface Month {
  readonly month: string;
  readonly paths: readonly string[];
}

/** The months that the question is about, the last one first. A file holds what happened in its month, by UTC. */
async function listMonths(folder: string, { sinceMs, untilMs }: HistoryQuery): Promise<Month[]> {
  const months = new Map<string, string[]>();
  for (const name of await namesIn(folder)) {
    const month = FILE.exec(name)?.[1];
    if (month === undefined) continue;
    const isTooOld = sinceMs !== undefined && month < monthOf(sinceMs);
    const isTooNew = untilMs !== undefined && month > monthOf(untilMs);
    if (!isTooOld && !isTooNew) months.set(month, [...(months.get(month) ?? []), join(folder, name)]);
  }
  return [...months]
    .map(([month, paths]) => ({ month, paths: paths.toSorted() }))
    .toSorted((a, b) => (a.month < b.month ? 1 : -1));
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw unreadable(folder, error);
  });
}

/**
 * `undefined` for a line that is none of ours. A power cut can leave zeros where bytes were not written yet; what was
 * appended after them is whole.
 */
function parseLine(line: string): HistoryEntry | undefined {
  try {
    const result = v.safeParse(Line, JSON.parse(line.replace(/^\0+/, "")));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
}

function matcherOf(query: HistoryQuery): (entry: HistoryEntry) => boolean {
  const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY, state } = query;
  const fold = (text: string) => text.normalize("NFC").toLowerCase();
  const isLike = (pattern: string | undefined) => {
    const folded = pattern === undefined ? undefined : fold(pattern);
    return (text: string) => folded === undefined || matchesGlob(fold(text), folded);
  };
  const [isSender, isMailbox] = [isLike(query.sender), isLike(query.mailbox)];
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

function keyOf({ mailbox, trackingId, state, at }: HistoryEntry, { changes }: HistoryQuery): string {
  return [mailbox, trackingId, ...(changes ? [state, at] : [])].join("\0");
}

/** The newest entry of each key, and of those no more than so many. */
class Newest {
  readonly #limit: number;
  #entries = new Map<string, HistoryEntry>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(key: string, entry: HistoryEntry): void {
    const known = this.#entries.get(key);
    // Of two at the same moment the one that was written later counts.
    if (known !== undefined && known.at > entry.at) return;
    this.#entries.set(key, entry);
    // Not with every one: sorting costs more than room for some.
    if (this.#entries.size >= 2 * this.#limit + 100) this.#entries = new Map(this.take().reverse());
  }

  /** Newest first, and of those of one moment the one that was written last. */
  take(): [string, HistoryEntry][] {
    const entries = [...this.#entries].reverse();
    return entries.toSorted(([, a], [, b]) => compare(b.at, a.at)).slice(0, this.#limit);
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function monthOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 7);
}

function unreadable(path: string, error: { readonly code?: unknown }): Fault {
  return new Fault("DISK_UNREADABLE", { detail: `${path} (${String(error.code)})`, cause: error });
}
