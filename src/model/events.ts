/** Everything that happens in the daemon, as data. Log, status, metrics, watchdog and tests subscribe to it. */
import type { Fault } from "../base/faults.ts";
import type { Delivered, HandoffStep, HandoffSummary } from "./handoff.ts";
import type { Rest } from "./job.ts";
import type { Expectation, Labelled, Mailbox } from "./mailbox.ts";
import type { Act, Actor, MailboxOrder, Order, PasswordNotice } from "./order.ts";
import type { Broken } from "./promise.ts";
import type { TransferRecord } from "./record.ts";
import type { TokenFacts } from "./token.ts";

interface EventFacts {
  "transfer-discovered": { record: TransferRecord };
  /** The transfer entered the state of its record. `fault`: why it waits, or why it ended. */
  "transfer-changed": { record: TransferRecord; fault?: Fault | undefined };
  /** `receivedBytes` of `doneBytes` are new since the last of these events. */
  "transfer-progressed": {
    record: TransferRecord;
    doneBytes: number;
    totalBytes: number;
    receivedBytes: number;
  };
  /** The transfer cannot go on, and its record could not be written. It is retried. */
  "transfer-stuck": { record: TransferRecord; fault: Fault };
  /** Another attempt, or an operator, ended the round. */
  "transfer-lost": { record: TransferRecord };
  /** This process works on it no longer: it stops, or has stood still, and another one may work on it. */
  "transfer-left": { record: TransferRecord };
  /** An operator has seen that the transfer is gone. */
  "transfer-acknowledged": { record: TransferRecord };
  /** Emitted once for each transfer that is open on the day before it expires. */
  "transfer-expiring": { record: TransferRecord };
  "password-refused": { record: TransferRecord };
  /** The transfer is delivered without its confidential message, because the service refuses the message. */
  "message-refused": { record: TransferRecord; fault: Fault };
  /** A received archive is delivered without being unpacked. */
  "archive-left": { record: TransferRecord; archive: string; fault: Fault };

  /**
   * `unusable`: how many entries of the list cannot be used. `modeless`: how many transfers wait because their mode is unknown;
   * `doubtful`: because they may have been delivered before.
   */
  "poll-succeeded": PollFacts &
    Record<"listed" | "discovered" | "unusable", number> &
    Partial<Record<"modeless" | "doubtful", number>>;
  /** `isFirst`: the poll before succeeded, or there was none. `waitMs`: the next poll comes no sooner. */
  "poll-failed": PollFacts & { fault: Fault; isFirst: boolean; waitMs: number };
  /** `fault`: why the last poll before this one failed. */
  "poll-recovered": { mailbox: string; failedForMs: number; fault: Fault };
  /** Listed entries cannot be used. `reasons`: the first few. Not repeated while polls find the same. */
  "entries-rejected": { mailbox: string; entries: number; reasons: readonly Fault[] };
  /** An expected transfer did not arrive in time. Emitted once for each deadline. */
  "arrival-missed": Overdue;
  /** It arrived after `arrival-missed`. Emitted once. */
  "arrival-late": Overdue;
  /** All expected transfers that have not arrived in time. Emitted whenever the list may have changed. */
  "overdue-listed": { overdue: readonly Overdue[] };

  "handoff-succeeded": { delivered: Delivered; step: HandoffStep };
  /** Emitted for each failed attempt. `willRetry`: another attempt follows without an order. */
  "handoff-failed": {
    delivered: Delivered;
    step: HandoffStep;
    fault: Fault;
    attempts: number;
    willRetry: boolean;
  };
  /** `taken`: the folder is gone. `acknowledged`: it holds the acknowledgement file. */
  "folder-picked-up": { delivered: Delivered; how: "taken" | "acknowledged" };
  /** The folder was not picked up within the expected time. Emitted once. */
  "pick-up-overdue": { delivered: Delivered; sinceMs: number };
  /** The manifest in the folder is not the one that was delivered. Emitted once. */
  "manifest-changed": { delivered: Delivered; problem: string };
  /** The folder was removed when its retention ended. */
  "folder-removed": { delivered: Delivered; after: "picked-up" | "not-picked-up" };
  /** The folder was changed after its delivery, so retention leaves it in place. */
  "folder-left": { delivered: Delivered };
  /** All outbox entries were listed, and those that can be read were checked. The others count as waiting. */
  "outbox-scanned": { summary: HandoffSummary };
  /** Outbox entries cannot be read or written. Not repeated until `handoffs-resumed`. */
  "handoffs-stuck": { fault: Fault };
  "handoffs-resumed": { stuckForMs: number };

  /**
   * A message was sent. With 0 `notices` none was, because what it would have said is no longer true. `failing`: how many
   * other channels fail now.
   */
  "notify-succeeded": MessageFacts & { failing: number };
  /**
   * Emitted for each failed attempt; another one follows after `waitMs`. Without `waitMs`, none follows, because some
   * recipients have the mail. `isFirst`: the attempt before succeeded.
   */
  "notify-failed": MessageFacts & { fault: Fault; isFirst: boolean; waitMs: number | undefined };

  /** The daemon polls and downloads from now on. */
  ready: object;
  /** A client id was created. The service's administrator has to register it. */
  "client-id-created": { origin: string; path: string };
  "record-damaged": { path: string; reason: string };
  /** Other users may be able to change what Inlet trusts, or not without a fault. Emitted after each look. */
  "trust-looked-at": { fault: Fault | undefined };
  /** Something that a crash left behind cannot be cleaned up. */
  "recovery-failed": { fault: Fault };
  /** A disk is full, lost or refuses writes: what needs it pauses. Emitted again if the cause changes. */
  "disk-failed": { fault: Fault };
  "disk-recovered": { pausedForMs: number };
  /** Running work goes on, and no new work begins. Repeated only if the cause changes. */
  /** Missing `rest`: it is over. */
  "service-rests": { service: string; rest: Rest | undefined };
  "queue-lost": { fault: Fault };
  "queue-back": { lostForMs: number };
  /** Redis may evict jobs: its policy is not `noeviction`. */
  "queue-evicts": { policy: string };
  /** New settings are in force. `changed`: top-level keys. `needsRestart`: keys that change only with a restart. */
  "settings-reloaded": {
    mailboxes: readonly ShownMailbox[];
    timezone?: string | undefined;
    changed?: readonly string[];
    needsRestart: readonly string[];
  };
  /** The new settings are invalid or cannot be applied. The old ones stay in force. */
  "settings-refused": { fault: Fault };
  /** An order cannot be carried out now, and is retried. Emitted once for each order. */
  "order-failed": { order: Order | PasswordNotice | MailboxOrder; fault: Fault };
  /** An order or a password of an operator was taken up, and is in the journal. */
  "operator-acted": { act: Act; by: Actor; mailbox: string; trackingId: string | undefined };
  /** Operators have paused or resumed mailboxes. `mailboxes`: all of them. */
  "pauses-changed": { mailboxes: readonly ShownMailbox[] };
  /** At the start: what people call each mailbox, and its key. */
  "mailboxes-named": { mailboxes: readonly ShownMailbox[] };
  /** The system cannot watch a folder: it is checked every few seconds instead. Emitted once for each folder. */
  "folder-unwatchable": { fault: Fault };
  "console-opened": { address: string };
  /** The address cannot be listened on, and is retried. Emitted once. */
  "console-failed": { address: string; reason: string };
  /** Callers of the console exceed a limit. `count`: how many since the last of these events; `from`: the last of them. */
  "callers-limited": { limit: CallerLimit; from: string; count: number };
  "socket-opened": { address: string };
  /** Commands cannot reach the daemon: no place for its socket is safe. Retried. Emitted once. */
  "socket-failed": { fault: Fault };
  /** The service manager does not accept notifications. Emitted once. */
  "supervisor-unreachable": { reason: string };
  /** `began`: broken since the last of these events; `kept`: no longer broken; both only as far as no trouble explains them. */
  "promises-changed": { broken: readonly Broken[]; began: readonly Broken[]; kept: readonly Broken[] };
  /** Work makes no progress, so the watchdog is not fed. Emitted once for each stall. */
  "work-stuck": { work: string };
}

/** `silent`: connections without a request; `crowded`: too many requests at once; `unread`: answers. */
export type CallerLimit = "silent" | "unfinished" | "unread" | "crowded" | "wrong-token";

type EventType = keyof EventFacts;

export type EventOf<Type extends EventType> = Readonly<{ type: Type } & EventFacts[Type]>;

export type DaemonEvent = { [Type in EventType]: EventOf<Type> }[EventType];

interface PollFacts {
  mailbox: string;
  tookMs: number;
  token: TokenFacts | undefined;
}

/** `notices`: how many the message is about. */
interface MessageFacts {
  kind: "mail" | "webhook";
  channel: string;
  notices: number;
}

/** An expected transfer that is missing since a deadline. */
export interface Overdue {
  readonly mailbox: string;
  readonly expectation: Expectation;
  readonly dueMs: number;
}

/** The settings of a mailbox that the status shows. */
export type ShownMailbox = Labelled &
  Pick<Mailbox, "pollMs" | "paused" | "pause" | "quiet"> & {
    readonly service: { readonly baseUrl: URL };
  };

/** Must not throw. */
export type Emit = (event: DaemonEvent) => void;

export type Listeners = { readonly [Type in EventType]?: (event: EventOf<Type>) => void };

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
