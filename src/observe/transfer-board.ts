/**
 * The transfers that are not delivered: being downloaded, queued, or in need of a person. All are counted; up to a
 * limit their records are kept too.
 */

import type { Clock } from "../base/clock.ts";
import { compareTexts } from "../base/phrases.ts";
import { monotonicMs } from "../base/timers.ts";
import { DAY_MS } from "../base/timetable.ts";
import { type Promised, WITHIN_MS } from "../model/promise.ts";
import { DOUBT, needsNoAttention, type State, type TransferRecord, waitsForPerson } from "../model/record.ts";
import type { Progress, Status, TransferGroup, TransferStatus } from "../model/status.ts";
import { mailboxIdOf } from "../model/transfer.ts";

const MAX_KEPT = 15_000;
/** Longer than the pause between two recoveries. */
const STUCK_MS = 7 * 60_000;

/** The rate is the average over this time. */
const WINDOW_MS = 10_000;
const SAMPLE_EVERY_MS = 500;

/** Sorts after every time in ISO 8601. */
const NO_TIME = "9";

const NOTHING = { reason: undefined, message: undefined };

const WORKED_ON: ReadonlySet<State> = new Set<State>(["downloading", "checking", "delivering"]);

interface Entry {
  readonly state: State;
  readonly needsPerson: boolean;
  /** Why it waits. While it is tried again, still why it needed a person, until the attempt receives content. */
  readonly why: Pick<TransferRecord, "reason" | "message">;
  readonly since: string | undefined;
  /** The same by the monotonic clock, as far as the board knows. */
  readonly sinceMs: number;
  readonly expires: string | undefined;
  /** When the board learned its state. */
  readonly keptMs: number;
  /** Missing beyond the limits. */
  readonly record: TransferRecord | undefined;
  /** Present while this process downloads it. */
  readonly meter: ProgressMeter | undefined;
}

export class TransferBoard {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** How many records are kept. */
  #kept = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes over the unfinished transfers of the ledger, and forgets transfers that other processes have finished. */
  learn(unfinished: readonly TransferRecord[]): void {
    const listed = new Set(unfinished.map(keyOf));
    for (const [key, entry] of this.#entries) {
      if (!listed.has(key) && entry.meter === undefined && !this.#isNews(entry)) this.#delete(key);
    }
    for (const record of unfinished) {
      if (this.#entries.get(keyOf(record))?.meter === undefined) this.keep(record, false);
    }
  }

  /** `isOurs`: this process works on the transfer, if any process does. */
  keep(record: TransferRecord, isOurs = true): void {
    const key = keyOf(record);
    if (needsNoAttention(record)) {
      this.#delete(key);
      return;
    }
    const before = this.#entries.get(key);
    if (before?.record !== undefined) this.#kept--;
    const { state, reason, message, expires, at } = record;
    const isKept = this.#kept < MAX_KEPT;
    const isWorkedOn = isOurs && WORKED_ON.has(state);
    const isTriedAgain = isWorkedOn && before?.needsPerson === true;
    this.#entries.set(key, {
      state,
      needsPerson: record.needsPerson === true || waitsForPerson(record) || isTriedAgain,
      why: isTriedAgain ? before.why : { reason, message },
      since: at[state],
      sinceMs: before?.state === state ? before.sinceMs : monotonicMs(),
      // The service is not needed for complete content.
      expires: state === "gone" || record.complete !== undefined ? undefined : expires,
      keptMs: this.#clock.now(),
      record: isKept ? record : undefined,
      meter: isWorkedOn && isKept ? (before?.meter ?? new ProgressMeter()) : undefined,
    });
    if (isKept) this.#kept++;
  }

  /** Adds a record of an earlier run, unless the transfer is known: then it has changed since. */
  recall(record: TransferRecord): void {
    if (!this.#entries.has(keyOf(record))) this.keep(record, false);
  }

  forget(record: TransferRecord): void {
    this.#delete(keyOf(record));
  }

  /** What a person had to do is done. */
  progressed(record: TransferRecord, doneBytes: number, totalBytes: number): void {
    const key = keyOf(record);
    const entry = this.#entries.get(key);
    entry?.meter?.note(doneBytes, totalBytes, this.#clock.now());
    if (entry?.needsPerson) this.#entries.set(key, { ...entry, needsPerson: false, why: NOTHING });
  }

  /** The transfers whose records are kept. */
  list(): TransferStatus[] {
    const nowMs = this.#clock.now();
    return [...this.#entries.values()].flatMap((entry) =>
      entry.record === undefined ? [] : [describe(entry, entry.record, nowMs)],
    );
  }

  read(): Pick<Status, "counts" | "totals" | "waitingSince"> {
    const nowMs = this.#clock.now();
    const totals = { attention: 0, downloading: 0, queued: 0 };
    const counts: Partial<Record<State, number>> = {};
    let waitingSince: string | undefined;
    for (const entry of this.#entries.values()) {
      const group = groupOf(entry, nowMs);
      totals[group]++;
      counts[entry.state] = (counts[entry.state] ?? 0) + 1;
      if (group !== "downloading" && (entry.since ?? NO_TIME) < (waitingSince ?? NO_TIME))
        waitingSince = entry.since;
    }
    return { counts, totals, waitingSince };
  }

  /** Transfers that wait until an operator decides whether they were delivered before: one cause, however many they are. */
  doubtful(): { readonly count: number; readonly since: string } | undefined {
    const times = this.#entries.values().flatMap((entry) => {
      return entry.state === "waiting" && entry.why.reason === DOUBT ? [entry.since ?? NO_TIME] : [];
    });
    const [since, ...others] = [...times].toSorted();
    return since === undefined ? undefined : { count: others.length + 1, since };
  }

  /** A decided delivery is placed within a minute. */
  *promised(): Iterable<Promised> {
    for (const { state, sinceMs, record, needsPerson } of this.#entries.values()) {
      if (state !== "delivering" || record === undefined) continue;
      const { mailbox, trackingId } = record;
      yield {
        kind: "delivery",
        subject: `transfer ${trackingId}`,
        mailbox,
        text: "It is complete, and cannot be moved into the inbox.",
        dueMs: sinceMs + WITHIN_MS,
        graceMs: WITHIN_MS,
        isExplained: needsPerson,
      };
    }
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    if (entry?.record !== undefined) this.#kept--;
  }

  /** A transfer that is gone is shown for a day. A delivery that cannot be placed is reported again every few minutes. */
  #isNews({ state, since, keptMs }: Entry): boolean {
    const nowMs = this.#clock.now();
    if (state === "delivering") return nowMs - keptMs < STUCK_MS;
    return state === "gone" && since !== undefined && nowMs - Date.parse(since) < DAY_MS;
  }
}

/** The first to expire first, then the longest without a change. */
export function byUrgency(a: TransferStatus, b: TransferStatus): number {
  return (
    compareTexts(a.expires ?? NO_TIME, b.expires ?? NO_TIME) ||
    compareTexts(a.since ?? NO_TIME, b.since ?? NO_TIME)
  );
}

function groupOf(entry: Entry, nowMs: number): TransferGroup {
  // It also needs a person while it is tried again: else it would seem settled for a moment.
  if (isEnded(entry.state) || entry.needsPerson) return "attention";
  if (entry.meter !== undefined) return "downloading";
  return isExpiring(entry, nowMs) ? "attention" : "queued";
}

/** It is queued, and may not be downloaded in time. */
function isExpiring({ state, needsPerson, expires, meter }: Entry, nowMs: number): boolean {
  if (meter !== undefined || isEnded(state) || needsPerson || expires === undefined) return false;
  return Date.parse(expires) - nowMs < DAY_MS;
}

function describe(entry: Entry, record: TransferRecord, nowMs: number): TransferStatus {
  const { mailbox, trackingId, sender, state, password, until, round, subject, files, bytes } = record;
  const { since, expires, why, meter } = entry;
  const facts = { mailbox, trackingId, sender, state, round, subject, files, bytes, since, until, expires };
  return {
    ...facts,
    ...why,
    group: groupOf(entry, nowMs),
    isExpiring: isExpiring(entry, nowMs) || undefined,
    noAttemptsLeft: password?.isExhausted,
    progress: meter?.read(nowMs),
  };
}

function isEnded(state: State): boolean {
  return state === "quarantined" || state === "gone";
}

function keyOf({ mailbox, trackingId }: TransferRecord): string {
  return `${mailboxIdOf(mailbox)}\0${trackingId}`;
}

/** Progress of a download: bytes, rate and remaining time. */
class ProgressMeter {
  #doneBytes = 0;
  #totalBytes = 0;
  /** Oldest first, within the window. */
  readonly #samples: { readonly atMs: number; readonly doneBytes: number }[] = [];

  note(doneBytes: number, totalBytes: number, nowMs: number): void {
    this.#doneBytes = doneBytes;
    this.#totalBytes = totalBytes;
    const last = this.#samples.at(-1);
    if (last !== undefined && nowMs - last.atMs < SAMPLE_EVERY_MS) return;
    this.#samples.push({ atMs: nowMs, doneBytes });
    this.#forgetBefore(nowMs - WINDOW_MS);
  }

  read(nowMs: number): Progress {
    this.#forgetBefore(nowMs - WINDOW_MS);
    const [first] = this.#samples;
    const elapsedMs = first === undefined ? 0 : nowMs - first.atMs;
    const bytesPerSecond =
      first === undefined || elapsedMs < SAMPLE_EVERY_MS
        ? 0
        : Math.round(((this.#doneBytes - first.doneBytes) * 1000) / elapsedMs);
    const left = this.#totalBytes - this.#doneBytes;
    return {
      doneBytes: this.#doneBytes,
      totalBytes: this.#totalBytes,
      bytesPerSecond,
      secondsLeft: bytesPerSecond > 0 ? Math.ceil(left / bytesPerSecond) : undefined,
    };
  }

  /** Keeps one sample older than the window, so that there is a rate when no bytes arrive. */
  #forgetBefore(ms: number): void {
    while ((this.#samples[1]?.atMs ?? Number.POSITIVE_INFINITY) <= ms) this.#samples.shift();
  }
}
