/** Everything that happens in the daemon, as data. Log, status, metrics, watchdog and tests subscribe to it. */
import type { Fault } from "../base/faults.ts";
import type { Delivered, HandoffStep, HandoffSummary } from "./handoff.ts";
import type { Expectation, Mailbox } from "./mailbox.ts";
import type { Act, Actor, MailboxOrder, Order, PasswordNotice } from "./order.ts";
import type { Broken } from "./promise.ts";
import type { TransferRecord } from "./record.ts";
import type { TokenFacts } from "./token.ts";

export type DaemonEvent = TransferEvent | MailboxEvent | HandoffEvent | NotifyEvent | ProcessEvent;

type TransferEvent =
  | { readonly type: "transfer-discovered"; readonly record: TransferRecord }
  /** The transfer entered the state of its record. `fault`: why it waits, or why it ended. */
  | { readonly type: "transfer-changed"; readonly record: TransferRecord; readonly fault?: Fault | undefined }
  /** `receivedBytes` of `doneBytes` are new since the last of these events. */
  | {
      readonly type: "transfer-progressed";
      readonly record: TransferRecord;
      readonly doneBytes: number;
      readonly totalBytes: number;
      readonly receivedBytes: number;
    }
  /** The transfer cannot go on, and its record could not be written. It is retried. */
  | { readonly type: "transfer-stuck"; readonly record: TransferRecord; readonly fault: Fault }
  /** Another attempt, or an operator, ended the round. */
  | { readonly type: "transfer-lost"; readonly record: TransferRecord }
  /** An operator has seen that the transfer is gone. */
  | { readonly type: "transfer-acknowledged"; readonly record: TransferRecord }
  /** Emitted once for each transfer that is open on the day before it expires. */
  | { readonly type: "transfer-expiring"; readonly record: TransferRecord }
  | { readonly type: "password-refused"; readonly record: TransferRecord }
  /** The transfer is delivered without its confidential message, because the service refuses the message. */
  | { readonly type: "message-refused"; readonly record: TransferRecord; readonly fault: Fault }
  /** A received archive is delivered without being unpacked. */
  | {
      readonly type: "archive-left";
      readonly record: TransferRecord;
      readonly archive: string;
      readonly fault: Fault;
    };

type MailboxEvent =
  /** `unusable`: how many entries of the list cannot be used. */
  | {
      readonly type: "poll-succeeded";
      readonly mailbox: string;
      readonly listed: number;
      readonly discovered: number;
      readonly unusable: number;
      readonly tookMs: number;
      readonly token: TokenFacts | undefined;
    }
  /** `isFirst`: the poll before succeeded, or there was none. `waitMs`: the next poll comes no sooner. */
  | {
      readonly type: "poll-failed";
      readonly mailbox: string;
      readonly fault: Fault;
      readonly isFirst: boolean;
      readonly waitMs: number;
      readonly tookMs: number;
      readonly token: TokenFacts | undefined;
    }
  /** `fault`: why the last poll before this one failed. */
  | {
      readonly type: "poll-recovered";
      readonly mailbox: string;
      readonly failedForMs: number;
      readonly fault: Fault;
    }
  /** Listed entries cannot be used. `reasons`: the first few. Not repeated while polls find the same. */
  | {
      readonly type: "entries-rejected";
      readonly mailbox: string;
      readonly entries: number;
      readonly reasons: readonly Fault[];
    }
  /** An expected transfer did not arrive in time. Emitted once for each deadline. */
  | ({ readonly type: "arrival-missed" } & Overdue)
  /** It arrived after `arrival-missed`. Emitted once. */
  | ({ readonly type: "arrival-late" } & Overdue)
  /** All expected transfers that have not arrived in time. Emitted whenever the list may have changed. */
  | { readonly type: "overdue-listed"; readonly overdue: readonly Overdue[] };

/** An expected transfer that is missing since a deadline. */
export interface Overdue {
  readonly mailbox: string;
  readonly expectation: Expectation;
  readonly dueMs: number;
}

type HandoffEvent =
  | { readonly type: "handoff-succeeded"; readonly delivered: Delivered; readonly step: HandoffStep }
  /** Emitted for each failed attempt. `willRetry`: another attempt follows without an order. */
  | {
      readonly type: "handoff-failed";
      readonly delivered: Delivered;
      readonly step: HandoffStep;
      readonly fault: Fault;
      readonly attempts: number;
      readonly willRetry: boolean;
    }
  /** `taken`: the folder is gone. `acknowledged`: it holds the acknowledgement file. */
  | {
      readonly type: "folder-picked-up";
      readonly delivered: Delivered;
      readonly how: "taken" | "acknowledged";
    }
  /** The folder was not picked up within the expected time. Emitted once. */
  | { readonly type: "pick-up-overdue"; readonly delivered: Delivered; readonly sinceMs: number }
  /** The folder was removed when its retention ended. */
  | {
      readonly type: "folder-removed";
      readonly delivered: Delivered;
      readonly after: "picked-up" | "not-picked-up";
    }
  /** The folder was changed after its delivery, so retention leaves it in place. */
  | { readonly type: "folder-left"; readonly delivered: Delivered }
  /** All outbox entries were listed, and those that can be read were checked. The others count as waiting. */
  | { readonly type: "outbox-scanned"; readonly summary: HandoffSummary }
  /** Outbox entries cannot be read or written. Not repeated until `handoffs-resumed`. */
  | { readonly type: "handoffs-stuck"; readonly fault: Fault }
  | { readonly type: "handoffs-resumed"; readonly stuckForMs: number };

type NotifyEvent =
  /** A message was sent. `notices`: how many it is about. `failing`: how many other channels fail now. */
  | {
      readonly type: "notify-succeeded";
      readonly kind: "mail" | "webhook";
      readonly channel: string;
      readonly notices: number;
      readonly failing: number;
    }
  /**
   * A mail was sent, but not to all recipients. It is not sent again. `isFirst`: the mail before was sent to all, or
   * there was none.
   */
  | {
      readonly type: "recipients-refused";
      readonly kind: "mail" | "webhook";
      readonly channel: string;
      readonly notices: number;
      readonly fault: Fault;
      readonly isFirst: boolean;
    }
  /** What could not be sent is no longer true, so there is nothing to send. `failing`: as above. */
  | { readonly type: "notify-settled"; readonly channel: string; readonly failing: number }
  /** Emitted for each failed attempt; another one follows after `waitMs`. `isFirst`: the attempt before succeeded. */
  | {
      readonly type: "notify-failed";
      readonly kind: "mail" | "webhook";
      readonly channel: string;
      readonly notices: number;
      readonly fault: Fault;
      readonly isFirst: boolean;
      readonly waitMs: number;
    };

type ProcessEvent =
  /** The daemon polls and downloads from now on. */
  | { readonly type: "ready" }
  /** A client id was created. The service's administrator has to register it. */
  | { readonly type: "client-id-created"; readonly origin: string; readonly path: string }
  | { readonly type: "record-damaged"; readonly path: string; readonly reason: string }
  /** Other users may write this folder: they could replace files in the work folder or the state folder. */
  | { readonly type: "folder-exposed"; readonly of: "work" | "state"; readonly folder: string }
  /** Something that a crash left behind cannot be cleaned up. */
  | { readonly type: "recovery-failed"; readonly fault: Fault }
  /** A disk is full, lost or refuses writes: what needs it pauses. Emitted again if the cause changes. */
  | { readonly type: "disk-failed"; readonly fault: Fault }
  | { readonly type: "disk-recovered"; readonly pausedForMs: number }
  /** Running work goes on, and no new work begins. Repeated only if the cause changes. */
  | { readonly type: "queue-lost"; readonly fault: Fault }
  | { readonly type: "queue-back"; readonly lostForMs: number }
  /** A value in Redis would have stopped work for ever, and was removed. Emitted once for each key. */
  | { readonly type: "queue-value-removed"; readonly key: string }
  /** Redis may evict jobs: its policy is not `noeviction`. */
  | { readonly type: "queue-evicts"; readonly policy: string }
  /** New settings are in force. `needsRestart`: keys that change only with a restart. */
  | {
      readonly type: "settings-reloaded";
      readonly mailboxes: readonly ShownMailbox[];
      readonly timezone?: string | undefined;
      /** Top-level keys whose values have changed. */
      readonly changed?: readonly string[];
      readonly needsRestart: readonly string[];
    }
  /** The new settings are invalid or cannot be applied. The old ones stay in force. */
  | { readonly type: "settings-refused"; readonly fault: Fault }
  /** An order cannot be carried out now, and is retried. Emitted once for each order. */
  | {
      readonly type: "order-failed";
      readonly order: Order | PasswordNotice | MailboxOrder;
      readonly fault: Fault;
    }
  /** An order or a password of an operator was taken up, and is in the journal. */
  | {
      readonly type: "operator-acted";
      readonly act: Act;
      readonly by: Actor;
      readonly mailbox: string;
      readonly trackingId: string | undefined;
    }
  /** Operators have paused or resumed mailboxes. `mailboxes`: all of them. */
  | { readonly type: "pauses-changed"; readonly mailboxes: readonly ShownMailbox[] }
  /** The system cannot watch a folder: it is checked every few seconds instead. Emitted once for each folder. */
  | { readonly type: "folder-unwatchable"; readonly fault: Fault }
  | { readonly type: "console-opened"; readonly address: string }
  /** The address cannot be listened on, and is retried. Emitted once. */
  | { readonly type: "console-failed"; readonly address: string; readonly reason: string }
  /** The service manager does not accept notifications. Emitted once. */
  | { readonly type: "supervisor-unreachable"; readonly reason: string }
  /** Other promises are broken than before. `began`, `kept`: those without a trouble that explains them. */
  | {
      readonly type: "promises-changed";
      readonly broken: readonly Broken[];
      readonly began: readonly Broken[];
      readonly kept: readonly Broken[];
    }
  /** Work makes no progress, so the watchdog is not fed. Emitted once for each stall. */
  | { readonly type: "work-stuck"; readonly work: string };

/** The settings of a mailbox that the status shows. */
export type ShownMailbox = Pick<Mailbox, "name" | "email" | "pollMs" | "paused" | "pause" | "quiet"> & {
  readonly service: { readonly baseUrl: URL };
};

/** Must not throw. */
export type Emit = (event: DaemonEvent) => void;

export type Listeners = {
  readonly [Type in DaemonEvent["type"]]?: (event: Extract<DaemonEvent, { readonly type: Type }>) => void;
};

/** A listener for every type of event. */
export type AllListeners = Required<Listeners>;

/** Returns a listener that passes each event to the function for its type, if there is one. */
export function listenTo(listeners: Listeners): Emit {
  return (event) => (listeners[event.type] as Emit | undefined)?.(event);
}

/** Passes each event to all subscribers, in the order in which they subscribed. */
export class Events {
  readonly #subscribers = new Set<Emit>();

  readonly emit: Emit = (event) => {
    for (const subscriber of this.#subscribers) subscriber(event);
  };

  /** Returns a function that ends the subscription. */
  subscribe(subscriber: Emit): () => void {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }
}
