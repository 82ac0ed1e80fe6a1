/** What a daemon knows at one moment, as people and programs are shown it. Times are ISO 8601. */
import type { State } from "./record.ts";

export const STATUS_VERSION = 1;

export interface Status {
  readonly version: typeof STATUS_VERSION;
  readonly at: string;
  /** A daemon says so. Otherwise it is what stands on the disk, and nobody works on it, or can be asked. */
  readonly live: boolean;
  readonly daemon: DaemonFacts;
  /** What is wrong with the whole, not with one transfer: empty when all is well. */
  readonly troubles: readonly Trouble[];
  /** Keys of the configuration that have changed and wait for a restart. */
  readonly needsRestart: readonly string[];
  readonly mailboxes: readonly MailboxStatus[];
  /** How many transfers are in which state; those that ended well are not counted. */
  readonly counts: Readonly<Partial<Record<State, number>>>;
  /** How many there are in each of the lists that follow, which show no more of them than a person would look at. */
  readonly totals: Readonly<Record<"attention" | "inHand" | "queued", number>>;
  /** Since when the oldest transfer that nobody has in hand is in its state; missing where there is none. */
  readonly waitingSince: string | undefined;
  /** Need a person: in quarantine, gone, not handed over, what waits for a password or expires soon, not picked up. */
  readonly attention: readonly TransferStatus[];
  /** Downloaded by this process now. */
  readonly inHand: readonly TransferStatus[];
  /** Have their turn later, by themselves. */
  readonly queued: readonly TransferStatus[];
  /** Newest first. */
  readonly recent: readonly Delivery[];
  readonly load: readonly LoadSlot[];
}

export interface DaemonFacts {
  readonly program: string;
  readonly host: string;
  /** The process and when it began: missing where no daemon was asked. */
  readonly pid?: number | undefined;
  readonly startedAt?: string | undefined;
  readonly queue: "embedded" | "redis";
  readonly role: "all" | "worker" | "scheduler";
  readonly inbox: string;
  /** What `--config` says where commands are to reach this daemon; missing where they find it without. */
  readonly config?: string | undefined;
}

export interface Trouble {
  /** `disk`, `queue`, `configuration`, or `mailbox NAME`. */
  readonly what: string;
  readonly since: string;
  readonly code: string;
  readonly message: string;
  readonly advice: string;
}

export interface MailboxStatus {
  readonly name: string;
  readonly email: string;
  readonly paused: boolean;
  readonly pollSeconds: number;
  readonly lastPoll: string | undefined;
  readonly lastSuccess: string | undefined;
  readonly nextPoll: string | undefined;
  /** How many active transfers the service listed, last. */
  readonly listed: number | undefined;
  readonly tokenValidUntil: string | undefined;
  /** It has quiet hours now, and no download is begun before then; missing where it has none. */
  readonly quietUntil: string | undefined;
  readonly trouble: Trouble | undefined;
}

export interface TransferStatus {
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  readonly state: State;
  readonly round?: number | undefined;
  readonly since: string | undefined;
  /** As in its record; beside that `handoff` or `not-picked-up` after a delivery, and `quiet` in quiet hours. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  /** No password would be sent any more. */
  readonly noAttemptsLeft?: boolean | undefined;
  readonly until: string | undefined;
  readonly expires: string | undefined;
  readonly progress: Progress | undefined;
  /** What a person may type in a shell to help; empty or missing where nothing helps, or nobody is needed. */
  readonly commands?: readonly string[];
  /** Of one in quarantine: the folder that holds what was received of it. */
  readonly keptIn?: string;
}

/** How it stands with a transfer that has not ended well, in a few words. */
export function describeStanding({ state, reason }: TransferStatus): string {
  if (reason === "password") return "needs a password";
  if (state === "quarantined") return "in quarantine";
  if (reason === "handoff") return "delivered, but what follows the delivery failed";
  if (reason === "not-picked-up") return "delivered, but not picked up";
  if (state === "gone") return "gone before it was delivered";
  if (reason === "locked") return "locked by the service";
  if (reason === "disk") return "waits for room on the disk";
  if (reason === "large") return "waits for another large transfer";
  if (reason === "slow") return "arrives slowly, and lets others pass";
  if (reason === "retry") return "failed, and is tried again";
  if (reason === "quiet") return "waits for the end of quiet hours";
  return state === "discovered" ? "queued" : state;
}

export interface Progress {
  readonly doneBytes: number;
  readonly totalBytes: number;
  /** Over the last seconds. */
  readonly bytesPerSecond: number;
  readonly secondsLeft: number | undefined;
}

export interface Delivery {
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  /** From the inbox's root. */
  readonly folder: string;
  readonly at: string;
  /** From its discovery; missing where that is not known. */
  readonly tookSeconds: number | undefined;
}

/** A quarter of an hour of the last day. */
export interface LoadSlot {
  readonly from: string;
  readonly bytes: number;
  readonly delivered: number;
  /** The most that waited for a turn at any moment of it. */
  readonly mostQueued: number;
}
