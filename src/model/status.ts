/** A snapshot of a daemon, for people and programs. Times are ISO 8601. */
import * as v from "valibot";
import { formatCount } from "../base/phrases.ts";
import { TRANSFER_ACTS } from "./order.ts";
import { BROWSER, DOUBT, HELD, MODE, NO_MODE, QUIET, STATES } from "./record.ts";

export const STATUS_VERSION = 1;

const Time = v.pipe(v.string(), v.isoTimestamp());
const Text = v.optional(v.string());
const Count = v.optional(v.number());
const MaybeTime = v.optional(Time);
/** Names a transfer. */
export const NAMED = { mailbox: v.string(), trackingId: v.string(), sender: v.string() };
/** What was sent, as far as it is known. */
export const SENT = { subject: Text, files: Count, bytes: Count };
const StateShape = v.picklist(STATES);

export function listOf<Schema extends v.GenericSchema>(schema: Schema) {
  return v.pipe(v.array(schema), v.readonly());
}

const DaemonFactsShape = v.object({
  program: v.string(),
  host: v.string(),
  /** Missing when the snapshot was read from the disk. */
  pid: Count,
  startedAt: MaybeTime,
  queue: v.picklist(["embedded", "redis"]),
  role: v.picklist(["all", "worker", "scheduler"]),
  inbox: v.string(),
  /** The value of `--config` that commands need to reach this daemon, if they need it. */
  config: Text,
  /** For times that people see. Missing: the machine's. */
  timezone: Text,
});

export type DaemonFacts = Readonly<v.InferOutput<typeof DaemonFactsShape>>;

const TroubleShape = v.object({
  /**
   * `disk`, `queue`, `configuration`, `files`, `handoffs`, `notify`, `mailbox NAME`, `service ADDRESS` if several of its mailboxes
   * are affected, `mailboxes` that were paused together, or what is overdue, such as `orders`.
   */
  what: v.string(),
  mailboxes: v.optional(listOf(v.string())),
  since: Time,
  /** In the table of faults. */
  code: v.string(),
  message: v.string(),
  advice: v.string(),
});

/** One cause, however many mailboxes it affects. */
export type Trouble = Readonly<v.InferOutput<typeof TroubleShape>>;

const MailboxShape = v.object({
  name: v.string(),
  email: v.string(),
  service: v.string(),
  paused: v.boolean(),
  /** The operator who paused it. Missing for a pause in the configuration. */
  pausedBy: Text,
  pausedSince: MaybeTime,
  pollSeconds: v.number(),
  lastPoll: MaybeTime,
  lastSuccess: MaybeTime,
  nextPoll: MaybeTime,
  /** Active transfers in the last listing. */
  listed: Count,
  tokenValidUntil: MaybeTime,
  /** It should have been polled successfully by then. Missing while it is polled in time. */
  overdueSince: MaybeTime,
  /** End of the quiet hours, while they last. */
  quietUntil: MaybeTime,
  trouble: v.optional(TroubleShape),
});

export type MailboxStatus = Readonly<v.InferOutput<typeof MailboxShape>>;

/** `attention`: a person has to act. `downloading`: by this process. `queued`: it continues without a person. */
export const TRANSFER_GROUPS = ["attention", "downloading", "queued"] as const;

export type TransferGroup = (typeof TRANSFER_GROUPS)[number];

const ProgressShape = v.object({
  doneBytes: v.number(),
  totalBytes: v.number(),
  /** Over the last seconds. */
  bytesPerSecond: v.number(),
  secondsLeft: Count,
});

export type Progress = Readonly<v.InferOutput<typeof ProgressShape>>;

export const OpenTransferShape = v.object({
  ...NAMED,
  state: StateShape,
  group: v.picklist(TRANSFER_GROUPS),
  round: Count,
  ...SENT,
  since: MaybeTime,
  /** As in its record; also `handoff`, `not-picked-up` or `changed` after a delivery. */
  reason: Text,
  message: Text,
  /** It needs attention only because it may expire before it is downloaded. */
  isExpiring: v.optional(v.boolean()),
  /** The budget of password attempts is spent. */
  noAttemptsLeft: v.optional(v.boolean()),
  until: MaybeTime,
  expires: MaybeTime,
  progress: v.optional(ProgressShape),
  /** What can be done with it, and the same as shell commands. */
  actions: v.optional(listOf(v.picklist(TRANSFER_ACTS))),
  commands: v.optional(listOf(v.string())),
  /** In quarantine: the folder with the received content. */
  keptIn: Text,
});

/** A transfer that is not over, or whose hand-off is not. */
export type TransferStatus = Readonly<v.InferOutput<typeof OpenTransferShape>>;

/** One page of open transfers. */
export const OpenListShape = v.object({
  /** How many transfers match. */
  total: v.number(),
  page: v.number(),
  /** At least 1. */
  pages: v.number(),
  size: v.number(),
  transfers: listOf(OpenTransferShape),
});

export type OpenList = Readonly<v.InferOutput<typeof OpenListShape>>;

const DeliveryShape = v.object({
  ...NAMED,
  /** Relative to the inbox. */
  folder: v.string(),
  /** An absolute path. Missing: the common inbox. */
  inbox: Text,
  at: Time,
  /** Since its discovery, if known. */
  tookSeconds: Count,
  ...SENT,
});

export type Delivery = Readonly<v.InferOutput<typeof DeliveryShape>>;

const CauseShape = v.object({
  state: StateShape,
  reason: Text,
  isExpiring: v.optional(v.boolean()),
  count: v.number(),
  /** The first expiry among them. */
  firstExpires: MaybeTime,
});

/** Transfers that need attention for the same reason. */
export type Cause = Readonly<v.InferOutput<typeof CauseShape>>;

export const StatusShape = v.object({
  version: v.literal(STATUS_VERSION),
  at: Time,
  /** It comes from a running daemon; otherwise it was read from the disk. */
  live: v.boolean(),
  daemon: DaemonFactsShape,
  /** Problems of the daemon or of a mailbox, not of single transfers. */
  troubles: listOf(TroubleShape),
  /** What should have happened by now, by the kind of promise, whether or not a trouble explains it. */
  overdue: listOf(v.object({ kind: v.string(), since: Time })),
  /** Changed configuration keys that need a restart. */
  needsRestart: listOf(v.string()),
  mailboxes: listOf(MailboxShape),
  /** Transfers per state, without those that ended well. */
  counts: v.record(StateShape, v.number()),
  /** The full length of each list below; the lists themselves are cut. */
  totals: v.object({ attention: v.number(), downloading: v.number(), queued: v.number() }),
  /** When the oldest transfer that is not being downloaded entered its state. */
  waitingSince: MaybeTime,
  /** Why transfers need attention, the most urgent cause first. */
  causes: listOf(CauseShape),
  /** Transfers that need attention: quarantined, gone, hand-off failed, not picked up, waiting for a password, expiring soon. */
  attention: listOf(OpenTransferShape),
  /** Being downloaded by this process. */
  downloading: listOf(OpenTransferShape),
  /** Waiting, and no person has to act. */
  queued: listOf(OpenTransferShape),
  /** Newest first. */
  recent: listOf(DeliveryShape),
});

export type Status = Readonly<v.InferOutput<typeof StatusShape>>;

/** The state of everything in a few words. "All is well" needs at least one successful poll of each active mailbox. */
export function headlineOf({ troubles, totals, mailboxes, daemon }: Status) {
  const { attention } = totals;
  const parts = [
    troubles.length > 0 && formatCount(troubles.length, "problem", "problems"),
    attention > 0 && `${formatCount(attention, "transfer needs", "transfers need")} attention`,
  ].filter(Boolean);
  const words = parts.join(", and ");
  if (troubles.length > 0) return { tone: "bad", words } as const;
  if (attention > 0) return { tone: "warn", words } as const;
  // On Redis, other processes may do the polls.
  const polled = daemon.queue === "redis" ? [] : mailboxes.filter(({ paused }) => !paused);
  const unpolled = polled.filter(({ lastSuccess }) => lastSuccess === undefined).length;
  if (unpolled === 0) return { tone: "good", words: "All is well" } as const;
  const starting = `Starting: ${formatCount(unpolled, "mailbox is", "mailboxes are")} not polled yet`;
  return { tone: "plain", words: starting } as const;
}

/** Whether the first poll was attempted. On Redis, where another process may do all polls, it counts as attempted. */
export function isPolled({ daemon, mailboxes }: Status): boolean {
  const active = mailboxes.filter(({ paused }) => !paused);
  return (
    daemon.queue === "redis" || active.length === 0 || active.some(({ lastPoll }) => lastPoll !== undefined)
  );
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

/** Equal for transfers with the same cause. Reasons of transfers that are gone do not count: each service has its own. */
export function causeKeyOf(cause: Pick<Cause, "state" | "reason" | "isExpiring">): string {
  const { state, reason, isExpiring = false } = cause;
  return [state, state === "gone" ? "" : reason, isExpiring].join(" ");
}

/** By the reason of a transfer. Without one of these, its state says enough. */
const REASONS: Readonly<Record<string, string>> = {
  password: "needs a password",
  [MODE]: "needs a person: its security mode",
  [NO_MODE]: "its security mode is unknown",
  [BROWSER]: "opens only in a browser",
  handoff: "delivered, but the hand-off failed",
  "not-picked-up": "delivered, but not picked up",
  changed: "delivered, and changed in the inbox since",
  locked: "locked by the service",
  disk: "waits for free disk space",
  [HELD]: "held, until you release it",
  [DOUBT]: "may have been delivered before",
  large: "waits for another large transfer to finish",
  slow: "slow; paused to let others go first",
  check: "not checked: the check gave no verdict",
  retry: "failed, will be retried",
  [QUIET]: "waits for the end of quiet hours",
};

/** The state of a transfer that is not over, in a few words. */
export function describeState(transfer: Pick<TransferStatus, "state" | "reason" | "isExpiring">): string {
  const { state, reason = "", isExpiring } = transfer;
  if (isExpiring) return `expires soon: ${describeState({ state, reason })}`;
  if (state === "quarantined") return "in quarantine";
  if (state === "gone") return "gone before it was delivered";
  if (state === "delivering" && reason === "disk") return "cannot be moved into the inbox";
  const words = Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined;
  return words ?? (state === "discovered" ? "queued" : state);
}
