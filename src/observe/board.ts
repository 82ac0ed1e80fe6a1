/**
 * What the daemon knows of itself now: fed with everything that happens, asked for a picture of it at any time. All of
 * it is learnt again after a start, and all of it is bounded.
 */
import type { Clock } from "../base/clock.ts";
import type { Fault } from "../base/faults.ts";
import type { Receipt, ReceiptState } from "../model/receipt.ts";
import {
  type DaemonFacts,
  type Delivery,
  STATUS_VERSION,
  type Status,
  type TransferStatus,
  type Trouble,
} from "../model/status.ts";
import { HandoffBoard } from "./handoff-board.ts";
import { Load } from "./load.ts";
import { MailboxBoard, type MailboxFacts } from "./mailbox-board.ts";
import { ProgressMeter } from "./progress.ts";

/** More than so many are counted, but not shown. */
const MOST_KNOWN = 5_000;
const MOST_SHOWN = 100;
const MOST_RECENT = 50;
const DAY_MS = 24 * 60 * 60 * 1000;

/** One transfer that has not ended well. */
interface Entry {
  readonly state: ReceiptState;
  /** Missing for those beyond the bound. */
  readonly receipt: Receipt | undefined;
  readonly meter: ProgressMeter | undefined;
}

export class Board {
  readonly #facts: DaemonFacts;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #mailboxes: MailboxBoard;
  readonly #entries = new Map<string, Entry>();
  readonly #troubles = new Map<string, Trouble>();
  readonly #load = new Load();
  #recent: Delivery[] = [];
  readonly #listeners = new Set<() => void>();
  readonly handoffs = new HandoffBoard(() => this.#changed());

  constructor(facts: DaemonFacts, mailboxes: readonly MailboxFacts[], clock: Clock) {
    this.#facts = facts;
    this.#clock = clock;
    this.#startedMs = clock.now();
    this.#mailboxes = new MailboxBoard(mailboxes, clock, facts.queue === "embedded");
  }

  /** Called after every change, which may be thousands of times a second. Returns what ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Everything that is not finished, as it stands on the disk: what others have finished since is forgotten. */
  learn(receipts: readonly Receipt[]): void {
    const known = new Set(receipts.map(keyOf));
    for (const [key, { meter, receipt }] of this.#entries) {
      if (!known.has(key) && meter === undefined && !this.#isNews(receipt)) this.#entries.delete(key);
    }
    for (const receipt of receipts) if (!this.#isInHand(receipt)) this.#keep(receipt, false);
    this.#changed();
  }

  setMailboxes(mailboxes: readonly MailboxFacts[]): void {
    this.#mailboxes.set(mailboxes);
    this.#changed();
  }

  /** Deliveries of earlier runs, newest first. */
  recall(deliveries: readonly Delivery[]): void {
    this.#recent = [...this.#recent, ...deliveries].slice(0, MOST_RECENT);
  }

  /** How many jobs wait for a place now. */
  queued(count: number): void {
    this.#load.queued(count, this.#clock.now());
  }

  tokenValidUntil(mailbox: string, ms: number | undefined): void {
    this.#mailboxes.tokenValidUntil(mailbox, ms);
  }

  discovered(receipt: Receipt): void {
    this.#keep(receipt);
    this.#changed();
  }

  stateChanged(receipt: Receipt): void {
    if (receipt.state === "delivered") this.#delivered(receipt);
    if (receipt.state === "delivered" || receipt.state === "collected") {
      this.#entries.delete(keyOf(receipt));
    } else this.#keep(receipt);
    this.#changed();
  }

  /** Another process has it now. */
  lost(receipt: Receipt): void {
    this.#entries.delete(keyOf(receipt));
    this.#changed();
  }

  progressed(receipt: Receipt, doneBytes: number, totalBytes: number, newBytes: number): void {
    const entry = this.#entries.get(keyOf(receipt));
    entry?.meter?.note(doneBytes, totalBytes, this.#clock.now());
    this.#load.received(newBytes, this.#clock.now());
    this.#changed();
  }

  polled(mailbox: string, listed: number): void {
    this.#mailboxes.polled(mailbox, listed);
    this.#changed();
  }

  pollFailed(mailbox: string, fault: Fault): void {
    this.#mailboxes.failed(mailbox, fault);
    this.#changed();
  }

  /** The disk or the queue, which concern everybody. */
  troubleBegan(what: "disk" | "queue", { code, message, advice }: Fault): void {
    const since = new Date(this.#clock.now()).toISOString();
    this.#troubles.set(what, { what, since, code, message, advice });
    this.#changed();
  }

  troubleEnded(what: "disk" | "queue"): void {
    this.#troubles.delete(what);
    this.#changed();
  }

  /** `described`: what was expected, of whom and by when. */
  missed(mailbox: string, described: string, dueMs: number): void {
    const since = new Date(dueMs).toISOString();
    this.#troubles.set(`${mailbox}\0${described}`, {
      what: `mailbox ${mailbox}`,
      since,
      code: "ARRIVAL_MISSED",
      message: `An expected transfer did not come: ${described}.`,
      advice: "Ask its sender. This is over as soon as one comes.",
    });
    this.#changed();
  }

  arrived(mailbox: string, described: string): void {
    this.#troubles.delete(`${mailbox}\0${described}`);
    this.#changed();
  }

  read(): Status {
    const nowMs = this.#clock.now();
    const shown = [...this.#entries.values()].flatMap((entry) => show(entry, nowMs));
    const mailboxes = this.#mailboxes.read();
    const attention = shown.filter((it) => !isInHand(it) && needsPerson(it, nowMs)).toSorted(byExpiry);
    const queued = shown.filter((it) => !isInHand(it) && !needsPerson(it, nowMs)).toSorted(byExpiry);
    return {
      version: STATUS_VERSION,
      at: new Date(nowMs).toISOString(),
      live: true,
      daemon: { ...this.#facts, startedAt: new Date(this.#startedMs).toISOString() },
      troubles: [...this.#troubles.values(), ...mailboxes.flatMap(({ trouble }) => trouble ?? [])],
      mailboxes,
      counts: this.#count(),
      attention: [...attention, ...this.handoffs.read()].slice(0, MOST_SHOWN),
      inHand: shown.filter(isInHand).slice(0, MOST_SHOWN),
      queued: queued.slice(0, MOST_SHOWN),
      recent: this.#recent,
      load: this.#load.read(nowMs),
    };
  }

  /** `isOurs`: it is this process that works on it, if anybody does. */
  #keep(receipt: Receipt, isOurs = true): void {
    const key = keyOf(receipt);
    const known = this.#entries.get(key);
    const isWorkedOn = isOurs && (receipt.state === "collecting" || receipt.state === "delivering");
    const isShown = known?.receipt !== undefined || this.#entries.size < MOST_KNOWN;
    this.#entries.set(key, {
      state: receipt.state,
      receipt: isShown ? receipt : undefined,
      meter: isWorkedOn && isShown ? (known?.meter ?? new ProgressMeter()) : undefined,
    });
  }

  /** What is gone is shown for a day, so that somebody hears of it. */
  #isNews(receipt: Receipt | undefined): boolean {
    const goneAt = receipt?.state === "gone" ? receipt.at.gone : undefined;
    return goneAt !== undefined && this.#clock.now() - Date.parse(goneAt) < DAY_MS;
  }

  #isInHand(receipt: Receipt): boolean {
    return this.#entries.get(keyOf(receipt))?.meter !== undefined;
  }

  #delivered({ mailbox, trackingId, sender, folder = "", at }: Receipt): void {
    const nowMs = this.#clock.now();
    const tookSeconds =
      at.discovered === undefined ? undefined : Math.max(0, (nowMs - Date.parse(at.discovered)) / 1000);
    const delivery = {
      mailbox,
      trackingId,
      sender,
      folder,
      at: at.delivered ?? new Date(nowMs).toISOString(),
    };
    this.#recent = [{ ...delivery, tookSeconds }, ...this.#recent].slice(0, MOST_RECENT);
    this.#load.delivered(nowMs);
  }

  #count(): Partial<Record<ReceiptState, number>> {
    const counts: Partial<Record<ReceiptState, number>> = {};
    for (const { state } of this.#entries.values()) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

function show({ receipt, meter }: Entry, nowMs: number): TransferStatus[] {
  if (receipt === undefined) return [];
  const { mailbox, trackingId, sender, state, reason, message, noAttemptsLeft, until, expires, at } = receipt;
  const progress = meter?.read(nowMs);
  const facts = { mailbox, trackingId, sender, state, since: at[state], reason, message, until, progress };
  return [{ ...facts, noAttemptsLeft, expires: state === "gone" ? undefined : expires }];
}

function isInHand({ progress }: TransferStatus): boolean {
  return progress !== undefined;
}

/** It will not go on by itself, or not in time. */
function needsPerson({ state, reason, expires }: TransferStatus, nowMs: number): boolean {
  if (state === "quarantined" || state === "gone" || reason === "password") return true;
  return expires !== undefined && Date.parse(expires) - nowMs < DAY_MS;
}

function byExpiry(a: TransferStatus, b: TransferStatus): number {
  return (a.expires ?? "9999").localeCompare(b.expires ?? "9999");
}

function keyOf({ mailbox, trackingId }: { readonly mailbox: string; readonly trackingId: string }): string {
  return `${mailbox}\0${trackingId}`;
}
