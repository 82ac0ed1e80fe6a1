/**
 * What the daemon knows of itself now: fed with everything that happens, asked for a picture of it at any time. All of
 * it is learnt again after a start, and all of it is bounded.
 */
import type { Clock } from "../base/clock.ts";
import type { Fault } from "../base/faults.ts";
import type { TransferRecord } from "../model/record.ts";
import {
  type DaemonFacts,
  type Delivery,
  type MailboxStatus,
  STATUS_VERSION,
  type Status,
  type TransferStatus,
  type Trouble,
} from "../model/status.ts";
import { HandoffBoard } from "./handoff-board.ts";
import { withHelp } from "./help.ts";
import { Load } from "./load.ts";
import { MailboxBoard, type MailboxFacts } from "./mailbox-board.ts";
import { TransferBoard } from "./transfer-board.ts";

/** More than so many are counted, but not shown. */
const MOST_SHOWN = 100;
const MOST_RECENT = 50;

type GeneralTrouble = "disk" | "queue" | "configuration";

export class Board {
  readonly #facts: DaemonFacts;
  readonly #keptIn: ((transfer: TransferStatus) => string) | undefined;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #mailboxes: MailboxBoard;
  readonly #transfers: TransferBoard;
  readonly #troubles = new Map<string, Trouble>();
  #needsRestart: readonly string[] = [];
  readonly #load = new Load();
  #recent: Delivery[] = [];
  readonly #listeners = new Set<() => void>();
  readonly handoffs = new HandoffBoard(() => this.#changed());

  /** `keptIn`: where content is kept that is in quarantine. */
  constructor(
    facts: DaemonFacts,
    mailboxes: readonly MailboxFacts[],
    clock: Clock,
    keptIn?: (transfer: TransferStatus) => string,
  ) {
    this.#facts = facts;
    this.#keptIn = keptIn;
    this.#clock = clock;
    this.#startedMs = clock.now();
    this.#mailboxes = new MailboxBoard(mailboxes, clock, facts.queue === "embedded");
    this.#transfers = new TransferBoard(clock);
  }

  /** Called after every change, which may be thousands of times a second. Returns what ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Everything that is not finished, as it stands on the disk: what others have finished since is forgotten. */
  learn(ledger: readonly TransferRecord[]): void {
    this.#transfers.learn(ledger);
    this.#changed();
  }

  setMailboxes(mailboxes: readonly MailboxFacts[]): void {
    this.#mailboxes.set(mailboxes);
    this.#changed();
  }

  /** Deliveries of earlier runs, newest first, and what was gone lately. */
  recall(deliveries: readonly Delivery[], gone: readonly TransferRecord[]): void {
    this.#recent = [...this.#recent, ...deliveries].slice(0, MOST_RECENT);
    for (const record of gone) this.#transfers.recall(record);
  }

  /** How many jobs wait for a slot now. */
  queued(count: number): void {
    this.#load.queued(count, this.#clock.now());
  }

  tokenValidUntil(mailbox: string, ms: number | undefined): void {
    this.#mailboxes.tokenValidUntil(mailbox, ms);
  }

  discovered(record: TransferRecord): void {
    this.#transfers.keep(record);
    this.#changed();
  }

  stateChanged(record: TransferRecord): void {
    if (record.state === "delivered") this.#delivered(record);
    this.#transfers.keep(record);
    this.#changed();
  }

  /** Somebody knows that it is gone. */
  acknowledged(record: TransferRecord): void {
    this.#transfers.forget(record);
    this.#changed();
  }

  /** Another process has it now. */
  lost(record: TransferRecord): void {
    this.#transfers.forget(record);
    this.#changed();
  }

  progressed(record: TransferRecord, doneBytes: number, totalBytes: number, newBytes: number): void {
    this.#transfers.progressed(record, doneBytes, totalBytes);
    this.#load.received(newBytes, this.#clock.now());
    this.#changed();
  }

  rejected(mailbox: string, entries: number, fault: Fault): void {
    this.#mailboxes.rejected(mailbox, entries, fault);
    this.#changed();
  }

  polled(mailbox: string, listed: number, unusable?: number): void {
    this.#mailboxes.polled(mailbox, listed, unusable);
    this.#changed();
  }

  /** `waitMs`: the next poll comes no sooner. */
  pollFailed(mailbox: string, fault: Fault, waitMs = 0): void {
    this.#mailboxes.failed(mailbox, fault, waitMs);
    this.#changed();
  }

  /** Of what concerns everybody. */
  troubleBegan(what: GeneralTrouble, { code, message, advice }: Fault): void {
    const since = this.#troubles.get(what)?.since ?? new Date(this.#clock.now()).toISOString();
    this.#troubles.set(what, { what, since, code, message, advice });
    this.#changed();
  }

  troubleEnded(what: GeneralTrouble): void {
    this.#troubles.delete(what);
    this.#changed();
  }

  /** A valid configuration is in force, but for these keys of it. */
  reloaded(needsRestart: readonly string[]): void {
    this.#needsRestart = needsRestart;
    this.troubleEnded("configuration");
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
    const mailboxes = this.#mailboxes.read();
    const unusable = this.#mailboxes.unusable();
    const transfers = this.#transfers.read();
    const handoffs = this.handoffs.read();
    const { quarantined, gone, pressing, inHand, queued, totals, counts, waitingSince } = transfers;
    return {
      version: STATUS_VERSION,
      at: new Date(nowMs).toISOString(),
      live: true,
      daemon: { ...this.#facts, startedAt: new Date(this.#startedMs).toISOString() },
      troubles: [
        ...this.#troubles.values(),
        ...mailboxes.flatMap(({ trouble }) => trouble ?? []),
        ...unusable.troubles,
      ],
      needsRestart: this.#needsRestart,
      mailboxes,
      counts,
      totals: { ...totals, attention: totals.attention + handoffs.total + unusable.entries },
      waitingSince,
      attention: shareOut([quarantined, gone, handoffs.failed, pressing, handoffs.notPickedUp]).map(
        (transfer) => withHelp(transfer, { daemon: this.#facts, mailboxes, keptIn: this.#keptIn }),
      ),
      inHand: inHand.slice(0, MOST_SHOWN),
      queued: queued.slice(0, MOST_SHOWN).map((transfer) => withQuiet(transfer, mailboxes)),
      recent: this.#recent,
      load: this.#load.read(nowMs),
    };
  }

  #delivered({ mailbox, trackingId, sender, folder = "", at }: TransferRecord): void {
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

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Many of one kind do not hide another: each has its share of the places, and what is left goes to the first. */
function shareOut(kinds: readonly (readonly TransferStatus[])[]): TransferStatus[] {
  const share = Math.floor(MOST_SHOWN / kinds.length);
  let left = MOST_SHOWN - kinds.reduce((sum, { length }) => sum + Math.min(length, share), 0);
  return kinds.flatMap((kind) => {
    const more = Math.min(left, Math.max(0, kind.length - share));
    left -= more;
    return kind.slice(0, share + more);
  });
}

/** Nobody has written down that quiet hours keep it back: they may have changed since. */
function withQuiet(transfer: TransferStatus, mailboxes: readonly MailboxStatus[]): TransferStatus {
  const { quietUntil } = mailboxes.find(({ name }) => name === transfer.mailbox) ?? {};
  if (quietUntil === undefined || transfer.state !== "discovered") return transfer;
  return { ...transfer, reason: "quiet", until: quietUntil };
}
