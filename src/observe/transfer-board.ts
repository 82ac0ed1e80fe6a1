/**
 * What is known of each transfer that has not ended well: whether it is in hand, has its turn later, or needs a person.
 * All are counted; of as many as a person would look at more is known.
 */
import type { Clock } from "../base/clock.ts";
import { needsNoAttention, type State, type TransferRecord } from "../model/record.ts";
import type { Status, TransferStatus } from "../model/status.ts";
import { ProgressMeter } from "./progress.ts";

/** Of so many, and of so many more that need a person whatever comes, everything is known. */
const MOST_KNOWN = 5_000;
const MOST_GRAVE = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;

interface Entry {
  readonly state: State;
  readonly reason: string | undefined;
  readonly needsPerson: boolean;
  readonly since: string | undefined;
  readonly expires: string | undefined;
  /** Missing for those beyond the bounds. */
  readonly record: TransferRecord | undefined;
  /** This process has it in hand. */
  readonly meter: ProgressMeter | undefined;
}

/** In each list what expires first is first. */
export interface TransferPicture extends Pick<Status, "counts" | "totals" | "waitingSince"> {
  readonly quarantined: readonly TransferStatus[];
  /** The newest first. */
  readonly gone: readonly TransferStatus[];
  /** Others that need a person. */
  readonly pressing: readonly TransferStatus[];
  readonly inHand: readonly TransferStatus[];
  readonly queued: readonly TransferStatus[];
}

export class TransferBoard {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  #known = 0;
  #grave = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Everything that is not finished, as it stands on the disk: what others have finished since is forgotten. */
  learn(ledger: readonly TransferRecord[]): void {
    const listed = new Set(ledger.map(keyOf));
    for (const [key, entry] of this.#entries) {
      if (!listed.has(key) && entry.meter === undefined && !this.#isNews(entry)) this.#delete(key);
    }
    for (const record of ledger) {
      if (this.#entries.get(keyOf(record))?.meter === undefined) this.keep(record, false);
    }
  }

  /** `isOurs`: it is this process that works on it, if anybody does. */
  keep(record: TransferRecord, isOurs = true): void {
    const key = keyOf(record);
    if (needsNoAttention(record)) {
      this.#delete(key);
      return;
    }
    const before = this.#entries.get(key);
    if (before?.record !== undefined) this.#count(before.state, -1);
    const { state, reason, expires, at } = record;
    const isKnown = isGrave(state) ? this.#grave < MOST_GRAVE : this.#known < MOST_KNOWN;
    const isWorkedOn = isOurs && (state === "downloading" || state === "delivering");
    const meter = isWorkedOn && isKnown ? (before?.meter ?? new ProgressMeter()) : undefined;
    const needsPerson = record.needsPerson === true || reason === "password";
    const facts = { state, reason, needsPerson, since: at[state] };
    const shown = { expires: state === "gone" ? undefined : expires, record: isKnown ? record : undefined };
    this.#entries.set(key, { ...facts, ...shown, meter });
    if (isKnown) this.#count(state, 1);
  }

  /** Of what is known already, more has happened since. */
  recall(record: TransferRecord): void {
    if (!this.#entries.has(keyOf(record))) this.keep(record, false);
  }

  forget(record: TransferRecord): void {
    this.#delete(keyOf(record));
  }

  progressed(record: TransferRecord, doneBytes: number, totalBytes: number): void {
    this.#entries.get(keyOf(record))?.meter?.note(doneBytes, totalBytes, this.#clock.now());
  }

  read(): TransferPicture {
    const nowMs = this.#clock.now();
    const lists = { quarantined: [], gone: [], pressing: [], inHand: [], queued: [] } as Record<
      Place,
      TransferStatus[]
    >;
    const places = { quarantined: 0, gone: 0, pressing: 0, inHand: 0, queued: 0 };
    const counts: Partial<Record<State, number>> = {};
    let waitingSince: string | undefined;
    for (const entry of this.#entries.values()) {
      const place = placeOf(entry, nowMs);
      places[place]++;
      counts[entry.state] = (counts[entry.state] ?? 0) + 1;
      if (place !== "inHand" && (entry.since ?? "9") < (waitingSince ?? "9")) waitingSince = entry.since;
      if (entry.record !== undefined) lists[place].push(show(entry, entry.record, nowMs));
    }
    const { inHand, queued, ...attention } = places;
    return {
      quarantined: lists.quarantined.toSorted(byExpiry),
      gone: lists.gone.toSorted((a, b) => (b.since ?? "").localeCompare(a.since ?? "")),
      pressing: lists.pressing.toSorted(byExpiry),
      inHand: lists.inHand,
      queued: lists.queued.toSorted(byExpiry),
      counts,
      totals: { attention: attention.quarantined + attention.gone + attention.pressing, inHand, queued },
      waitingSince,
    };
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    if (entry?.record !== undefined) this.#count(entry.state, -1);
  }

  #count(state: State, change: 1 | -1): void {
    if (isGrave(state)) this.#grave += change;
    else this.#known += change;
  }

  /** What is gone is shown for a day, so that somebody hears of it. */
  #isNews({ state, since }: Entry): boolean {
    return state === "gone" && since !== undefined && this.#clock.now() - Date.parse(since) < DAY_MS;
  }
}

type Place = "quarantined" | "gone" | "pressing" | "inHand" | "queued";

function placeOf({ state, needsPerson, expires, meter }: Entry, nowMs: number): Place {
  if (meter !== undefined) return "inHand";
  if (state === "quarantined" || state === "gone") return state;
  // It will not go on by itself, or not in time.
  const isLate = expires !== undefined && Date.parse(expires) - nowMs < DAY_MS;
  return needsPerson || isLate ? "pressing" : "queued";
}

function show({ since, expires, meter }: Entry, record: TransferRecord, nowMs: number): TransferStatus {
  const { mailbox, trackingId, sender, state, reason, message, password, until } = record;
  const progress = meter?.read(nowMs);
  const facts = { mailbox, trackingId, sender, state, since, reason, message, until, expires, progress };
  return { ...facts, round: record.round, noAttemptsLeft: password?.isExhausted };
}

function isGrave(state: State): boolean {
  return state === "quarantined" || state === "gone";
}

function byExpiry(a: TransferStatus, b: TransferStatus): number {
  return (a.expires ?? "9999").localeCompare(b.expires ?? "9999");
}

function keyOf({ mailbox, trackingId }: TransferRecord): string {
  return `${mailbox}\0${trackingId}`;
}
