/** The status of the daemon, built from its events. It is bounded, and rebuilt after each start. */
import type { Clock } from "../base/clock.ts";
import type { Fault } from "../base/faults.ts";
import { type Emit, type Listeners, listenTo, type Overdue, type ShownMailbox } from "../model/events.ts";
import type { TransferRecord } from "../model/record.ts";
import {
  type DaemonFacts,
  type Delivery,
  STATUS_VERSION,
  type Status,
  type TransferStatus,
  type Trouble,
} from "../model/status.ts";
import { HandoffBoard } from "./handoff-board.ts";
import { withHelp } from "./help.ts";
import { Load } from "./load.ts";
import { MailboxBoard } from "./mailbox-board.ts";
import { TransferBoard } from "./transfer-board.ts";

/** More than so many are counted, but not shown. */
const MOST_SHOWN = 100;
const MOST_RECENT = 50;

type GeneralTrouble = "disk" | "queue" | "configuration" | "notify";

export class Board {
  readonly #facts: DaemonFacts;
  readonly #keptIn: ((transfer: TransferStatus) => string) | undefined;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #mailboxes: MailboxBoard;
  readonly #transfers: TransferBoard;
  readonly #troubles = new Map<GeneralTrouble, Trouble>();
  #needsRestart: readonly string[] = [];
  readonly #load = new Load();
  #recent: Delivery[] = [];
  #overdue: readonly Overdue[] = [];
  readonly #handoffs = new HandoffBoard();
  readonly #subscribers = new Set<() => void>();
  readonly #apply = listenTo(this.#listeners());

  /** `keptIn`: where content is kept that is in quarantine. */
  constructor(
    facts: DaemonFacts,
    mailboxes: readonly ShownMailbox[],
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

  readonly listener: Emit = (event) => {
    this.#apply(event);
    this.#changed();
  };

  /** Called after every event, which may be thousands of times a second. Returns a function that ends the subscription. */
  onChange(subscriber: () => void): () => void {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  /** Everything that is not finished, as it stands on the disk: what others have finished since is forgotten. */
  learn(ledger: readonly TransferRecord[]): void {
    this.#transfers.learn(ledger);
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

  read(): Status {
    const nowMs = this.#clock.now();
    const mailboxes = this.#mailboxes.read();
    const unusable = this.#mailboxes.unusable();
    const transfers = this.#transfers.read();
    const handoffs = this.#handoffs.read();
    const { quarantined, gone, pressing, inHand, queued, totals, counts, waitingSince } = transfers;
    return {
      version: STATUS_VERSION,
      at: new Date(nowMs).toISOString(),
      live: true,
      daemon: { ...this.#facts, startedAt: new Date(this.#startedMs).toISOString() },
      troubles: [
        ...this.#troubles.values(),
        ...this.#overdue.map(describeOverdue),
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
      queued: queued.slice(0, MOST_SHOWN),
      recent: this.#recent,
      load: this.#load.read(nowMs),
    };
  }

  #listeners(): Listeners {
    return {
      "transfer-discovered": ({ record }) => this.#transfers.keep(record),
      "transfer-changed": ({ record }) => {
        if (record.state === "delivered") this.#delivered(record);
        this.#transfers.keep(record);
      },
      "transfer-progressed": ({ record, doneBytes, totalBytes, receivedBytes }) => {
        this.#transfers.progressed(record, doneBytes, totalBytes);
        this.#load.received(receivedBytes, this.#clock.now());
      },
      "transfer-acknowledged": ({ record }) => this.#transfers.forget(record),
      "transfer-lost": ({ record }) => this.#transfers.forget(record),
      "poll-succeeded": (event) => this.#mailboxes.polled(event),
      "poll-failed": (event) => this.#mailboxes.failed(event),
      "entries-rejected": ({ mailbox, entries, reasons: [first] }) => {
        if (first !== undefined) this.#mailboxes.rejected(mailbox, entries, first);
      },
      "overdue-listed": ({ overdue }) => {
        this.#overdue = overdue;
      },
      "handoff-succeeded": ({ delivered, step }) => this.#handoffs.succeeded(delivered, step),
      "handoff-failed": ({ delivered, step, fault, willRetry }) =>
        this.#handoffs.failed(delivered, step, fault.message, willRetry),
      "pick-up-overdue": ({ delivered }) => this.#handoffs.notPickedUp(delivered),
      "folder-picked-up": ({ delivered }) => this.#handoffs.pickedUp(delivered),
      "handoffs-checked": ({ summary }) => this.#handoffs.checked(summary),
      "disk-full": ({ fault }) => this.#troubleBegan("disk", fault),
      "disk-has-room": () => this.#troubles.delete("disk"),
      "queue-lost": ({ fault }) => this.#troubleBegan("queue", fault),
      "queue-back": () => this.#troubles.delete("queue"),
      "notify-failed": ({ fault }) => this.#troubleBegan("notify", fault),
      "notify-succeeded": ({ failing }) => failing === 0 && this.#troubles.delete("notify"),
      "settings-refused": ({ fault }) => this.#troubleBegan("configuration", fault),
      "settings-reloaded": ({ mailboxes, needsRestart }) => {
        this.#mailboxes.set(mailboxes);
        this.#needsRestart = needsRestart;
        this.#troubles.delete("configuration");
        this.#troubles.delete("notify");
      },
    };
  }

  #troubleBegan(what: GeneralTrouble, { code, message, advice }: Fault): void {
    const since = this.#troubles.get(what)?.since ?? new Date(this.#clock.now()).toISOString();
    this.#troubles.set(what, { what, since, code, message, advice });
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
    for (const subscriber of this.#subscribers) subscriber();
  }
}

function describeOverdue({ mailbox, expectation, dueMs }: Overdue): Trouble {
  return {
    what: `mailbox ${mailbox}`,
    since: new Date(dueMs).toISOString(),
    code: "ARRIVAL_MISSED",
    message: `An expected transfer did not arrive: ${expectation.described}.`,
    advice: "Ask its sender. This is over as soon as one arrives.",
  };
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
