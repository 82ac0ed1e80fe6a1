/** A snapshot of a daemon, for people and programs. Times are ISO 8601. */
import { formatCount } from "../base/phrases.ts";
import { HELD, QUIET, type State } from "./record.ts";

export const STATUS_VERSION = 1;

export interface Status {
  readonly version: typeof STATUS_VERSION;
  readonly at: string;
  /** It comes from a running daemon; otherwise it was read from the disk. */
  readonly live: boolean;
  readonly daemon: DaemonFacts;
  /** Problems of the daemon or of a mailbox, not of single transfers. */
  readonly troubles: readonly Trouble[];
  /** What should have happened by now, by the kind of promise, whether or not a trouble explains it. */
  readonly overdue: readonly { readonly kind: string; readonly since: string }[];
  /** Changed configuration keys that need a restart. */
  readonly needsRestart: readonly string[];
  readonly mailboxes: readonly MailboxStatus[];
  /** Transfers per state, without those that ended well. */
  readonly counts: Readonly<Partial<Record<State, number>>>;
  /** The full length of each list below; the lists themselves are cut. */
  readonly totals: Readonly<Record<"attention" | "downloading" | "queued", number>>;
  /** When the oldest transfer that is not being downloaded entered its state. */
  readonly waitingSince: string | undefined;
  /** Why transfers need attention, the most urgent cause first. */
  readonly causes: readonly Cause[];
  /** Transfers that need attention: quarantined, gone, hand-off failed, not picked up, waiting for a password, expiring soon. */
  readonly attention: readonly TransferStatus[];
  /** Being downloaded by this process. */
  readonly downloading: readonly TransferStatus[];
  /** Waiting, and no person has to act. */
  readonly queued: readonly TransferStatus[];
  /** Newest first. */
  readonly recent: readonly Delivery[];
}

export interface DaemonFacts {
  readonly program: string;
  readonly host: string;
  /** Missing when the snapshot was read from the disk. */
  readonly pid?: number | undefined;
  readonly startedAt?: string | undefined;
  readonly queue: "embedded" | "redis";
  readonly role: "all" | "worker" | "scheduler";
  readonly inbox: string;
  /** The value of `--config` that commands need to reach this daemon, if they need it. */
  readonly config?: string | undefined;
  /** For times that people see. Missing: the machine's. */
  readonly timezone?: string | undefined;
}

/** One cause, however many mailboxes it affects. */
export interface Trouble {
  /**
   * `disk`, `queue`, `configuration`, `handoffs`, `notify`, `mailbox NAME`, `service ADDRESS` if several of its mailboxes
   * are affected, or what is overdue, such as `orders`.
   */
  readonly what: string;
  /** The names of the mailboxes that it affects. */
  readonly mailboxes?: readonly string[] | undefined;
  readonly since: string;
  readonly code: string;
  readonly message: string;
  readonly advice: string;
}

export interface MailboxStatus {
  readonly name: string;
  readonly email: string;
  /** The address of its service. */
  readonly service: string;
  readonly paused: boolean;
  readonly pollSeconds: number;
  readonly lastPoll: string | undefined;
  readonly lastSuccess: string | undefined;
  readonly nextPoll: string | undefined;
  /** Active transfers in the last listing. */
  readonly listed: number | undefined;
  readonly tokenValidUntil: string | undefined;
  /** It should have been polled successfully by then. Missing while it is polled in time. */
  readonly overdueSince: string | undefined;
  /** End of the quiet hours, while they last. */
  readonly quietUntil: string | undefined;
  readonly trouble: Trouble | undefined;
}

/** `attention`: a person has to act. `downloading`: by this process. `queued`: it continues without a person. */
export const TRANSFER_GROUPS = ["attention", "downloading", "queued"] as const;

export type TransferGroup = (typeof TRANSFER_GROUPS)[number];

export interface TransferStatus {
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  readonly state: State;
  /** The section of the console that it is shown in. */
  readonly group: TransferGroup;
  readonly round?: number | undefined;
  /** Known once the transfer was opened. */
  readonly subject?: string | undefined;
  readonly files?: number | undefined;
  readonly bytes?: number | undefined;
  readonly since: string | undefined;
  /** As in its record; also `handoff` or `not-picked-up` after a delivery. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  /** It needs attention only because it may expire before it is downloaded. */
  readonly isExpiring?: boolean | undefined;
  /** The budget of password attempts is spent. */
  readonly noAttemptsLeft?: boolean | undefined;
  readonly until: string | undefined;
  readonly expires: string | undefined;
  readonly progress: Progress | undefined;
  /** Shell commands that help. */
  readonly commands?: readonly string[];
  /** In quarantine: the folder with the received content. */
  readonly keptIn?: string;
}

/** The state of everything in a few words. "All is well" needs at least one poll of each mailbox. */
export function headlineOf({ troubles, totals, mailboxes, daemon }: Status): Headline {
  const problems = troubles.length;
  if (problems > 0) return { tone: "bad", words: formatCount(problems, "problem", "problems") };
  const { attention } = totals;
  if (attention > 0) {
    return { tone: "warn", words: `${formatCount(attention, "transfer needs", "transfers need")} attention` };
  }
  // On Redis, other processes may do the polls.
  const polled = daemon.queue === "redis" ? [] : mailboxes.filter(({ paused }) => !paused);
  const unpolled = polled.filter(({ lastSuccess }) => lastSuccess === undefined).length;
  if (unpolled === 0) return { tone: "good", words: "All is well" };
  return {
    tone: "plain",
    words: `Starting: ${formatCount(unpolled, "mailbox is", "mailboxes are")} not polled yet`,
  };
}

/** Transfers that need attention for the same reason. */
export interface Cause extends Pick<TransferStatus, "state" | "reason" | "isExpiring"> {
  readonly count: number;
  /** The first expiry among them. */
  readonly firstExpires: string | undefined;
}

/** `transfers`: all that need attention, the most urgent first. */
export function causesOf(transfers: readonly TransferStatus[]): Cause[] {
  const groups = Map.groupBy(transfers, causeKeyOf);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { state, isExpiring, expires } = first;
    const reason = state === "gone" ? undefined : first.reason;
    return [{ state, reason, isExpiring, count: group.length, firstExpires: expires }];
  });
}

/** Equal for transfers with the same cause. Each service has its own words for transfers that are gone. */
export function causeKeyOf({
  state,
  reason,
  isExpiring = false,
}: Pick<Cause, "state" | "reason" | "isExpiring">): string {
  return [state, state === "gone" ? "" : reason, isExpiring].join(" ");
}

export interface Headline {
  readonly tone: "bad" | "warn" | "good" | "plain";
  readonly words: string;
}

/** The state of a transfer that is not over, in a few words. */
export function describeState(transfer: Pick<TransferStatus, "state" | "reason" | "isExpiring">): string {
  const { state, reason, isExpiring } = transfer;
  if (isExpiring) return `expires soon: ${describeState({ state, reason })}`;
  if (reason === "password") return "needs a password";
  if (state === "quarantined") return "in quarantine";
  if (reason === "handoff") return "delivered, but the hand-off failed";
  if (reason === "not-picked-up") return "delivered, but not picked up";
  if (state === "gone") return "gone before it was delivered";
  if (reason === "locked") return "locked by the service";
  if (reason === "disk")
    return state === "delivering" ? "cannot be moved into the inbox" : "waits for free disk space";
  if (reason === HELD) return "held, until you release it";
  if (reason === "large") return "waits for another large transfer to finish";
  if (reason === "slow") return "slow; paused to let others go first";
  if (reason === "check") return "not checked: the check gave no verdict";
  if (reason === "retry") return "failed, will be retried";
  if (reason === QUIET) return "waits for the end of quiet hours";
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
  /** Relative to the inbox. */
  readonly folder: string;
  /** An absolute path. Missing: the common inbox. */
  readonly inbox?: string | undefined;
  readonly at: string;
  /** Since its discovery, if known. */
  readonly tookSeconds: number | undefined;
  readonly subject?: string | undefined;
  readonly files?: number | undefined;
  readonly bytes?: number | undefined;
}
