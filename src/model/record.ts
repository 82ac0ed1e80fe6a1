/**
 * What is known of one transfer for one mailbox, and the states it passes through.
 *
 * `discovered` → `downloading` → `delivering` → `delivered` → `picked-up` is the way of a transfer that goes well.
 * `waiting` parks one until a person, a lock, the disk or time changes something. `quarantined` holds one that we
 * will not vouch for until a person decides. `gone` ends one that the service took away before it was delivered.
 *
 * A *round* is one try to bring a transfer to an end. A round ends once and for ever; an operator's order, or a transfer
 * that the service lists again, begins the next one.
 */

import * as v from "valibot";

export const RECORD_VERSION = 2;

export const STATES = [
  "discovered",
  "downloading",
  "waiting",
  "delivering",
  "delivered",
  "picked-up",
  "quarantined",
  "gone",
] as const;

export type State = (typeof STATES)[number];

/** States in which a round has ended. */
const ENDED: ReadonlySet<State> = new Set(["delivered", "picked-up", "quarantined", "gone"]);

/** How many files match a checksum of their sender. */
export const VERIFIED = ["all", "some", "none"] as const;

export type Verified = (typeof VERIFIED)[number];

/** Identifies a transfer of a mailbox. Both are opaque text that a stranger may have chosen. */
export interface TransferKey {
  readonly mailbox: string;
  readonly trackingId: string;
}

/** An operator vouches for a transfer in quarantine. */
export const ReleaseShape = v.object({
  by: v.string(),
  /** ISO 8601, as all times here. */
  at: v.string(),
  /** Why it was in quarantine: a fault's code, and its message for people. */
  reason: v.string(),
  message: v.string(),
});

export type Release = Readonly<v.InferOutput<typeof ReleaseShape>>;

export interface TransferRecord extends TransferKey {
  readonly version: typeof RECORD_VERSION;
  readonly transferId: string;
  readonly sender: string;
  readonly state: State;
  /** Counted from 1. */
  readonly round: number;
  /** Why it waits (`password`, `locked`, `disk`, `retry`), was quarantined (a fault's code) or is gone (the service's state). */
  readonly reason: string | undefined;
  /** For people: what exactly happened and what to do. */
  readonly message: string | undefined;
  /** Until when it waits, where that is known. */
  readonly until: string | undefined;
  readonly expires: string | undefined;
  /** The sender chose no password: the link that the service lists carries one. */
  readonly passwordInLink: boolean;
  /** The sender chose no password, and the link carries none either. */
  readonly hasNoPassword?: boolean | undefined;
  /** Whether it holds a confidential message; missing where the service does not say. */
  readonly hasMessage?: boolean | undefined;
  /** Where it was or will be delivered, from the inbox's root. */
  readonly folder: string | undefined;
  /** What its manifest says. Known once it is complete. */
  readonly verified?: Verified | undefined;
  /** The file name that was kept free in the folder, by which a consumer acknowledges it. */
  readonly acknowledgement?: string | undefined;
  readonly released?: Release | undefined;
  /** It is gone, and an operator knows it. */
  readonly acknowledged?: boolean | undefined;
  /** It waits, and trying again will hardly help: a person has to act. */
  readonly needsPerson?: boolean | undefined;
  /** It waits for a password: what stood in the way when passwords were tried last. */
  readonly password?: PasswordObstacle | undefined;
  /** An operator wants it now: quiet hours and waits do not keep it back. */
  readonly wanted?: boolean | undefined;
  /** How many polls in a row have not listed it. */
  readonly missedPolls?: number | undefined;
  /** Polls no longer list it: the service is asked what became of it. */
  readonly vanished?: boolean | undefined;
  /** How often a download was begun in this round. */
  readonly attempts: number;
  /** How often each operation has failed in this round; `rest`: those that a delivery needs. */
  readonly failures?: Readonly<Record<string, number>> | undefined;
  /** When it entered each state, last. */
  readonly at: Readonly<Partial<Record<State, string>>>;
}

export interface PasswordObstacle {
  /** How many attempts were spent then. */
  readonly spent: number;
  /** Not even a person's password would be sent. */
  readonly isExhausted: boolean;
  /** The supplied file is no password, or does not say which service it is for. */
  readonly isUnusable: boolean;
}

/** The reason of a transfer that an operator did not want: the service may list it, and it is left alone. */
export const DISCARDED = "discarded";

/** Of an end by the service, which may list the transfer again. */
export function mayComeBack({ state, reason }: TransferRecord): boolean {
  return state === "gone" && reason !== DISCARDED;
}

export function hasEnded({ state }: TransferRecord): boolean {
  return ENDED.has(state);
}

export function isDelivered({ state }: TransferRecord): boolean {
  return state === "delivered" || state === "picked-up";
}

/** Whether it needs no attention: it ended well, or an operator wanted or knows how it ended. */
export function isSettledForPeople({ state, reason, acknowledged }: TransferRecord): boolean {
  if (state === "gone") return reason === DISCARDED || acknowledged === true;
  return state === "delivered" || state === "picked-up";
}

/** The record in another state: what was said of the one before is no longer true. */
export function entered(
  record: TransferRecord,
  state: State,
  nowMs: number,
  facts: Partial<TransferRecord> = {},
): TransferRecord {
  const at = { ...record.at, [state]: new Date(nowMs).toISOString() };
  const { reason, message, until, password, wanted, vanished, missedPolls, failures, needsPerson, ...kept } =
    record;
  const unsaid = { reason: undefined, message: undefined, until: undefined };
  // These count on while the round is open, whatever is tried meanwhile.
  const counted = ENDED.has(state) ? {} : withoutMissing({ missedPolls, failures });
  // Another try does not make it well.
  const attention = state === "downloading" ? withoutMissing({ needsPerson }) : {};
  return { ...kept, ...counted, ...attention, ...unsaid, ...facts, state, at };
}

/** A key whose value is undefined would make two equal records look different. */
export function withoutMissing(facts: Partial<TransferRecord>): Partial<TransferRecord> {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/**
 * The same transfer at the start of its next round. The time of its discovery does not change: folders may be named after
 * that day.
 */
export function nextRound(record: TransferRecord, facts: Partial<TransferRecord> = {}): TransferRecord {
  const { mailbox, trackingId, transferId, sender, round, expires, at } = record;
  const { passwordInLink, hasNoPassword, hasMessage } = record;
  return {
    version: RECORD_VERSION,
    mailbox,
    trackingId,
    transferId,
    sender,
    state: "discovered",
    round: round + 1,
    reason: undefined,
    message: undefined,
    until: undefined,
    expires,
    passwordInLink,
    hasNoPassword,
    hasMessage,
    folder: undefined,
    attempts: 0,
    at: { discovered: at.discovered ?? new Date(0).toISOString() },
    ...facts,
  };
}

/** The longest wait that anything here ever asks for: `Retry-After` is cut to a day, and the rest is shorter. */
const LONGEST_WAIT_MS = 25 * 60 * 60_000;

/** Whether a wait is over. A longer one than any that was asked for was noted by a clock that was wrong. */
export function isWaitOver(until: string, nowMs: number): boolean {
  const leftMs = Date.parse(until) - nowMs;
  return !(leftMs > 0 && leftMs <= LONGEST_WAIT_MS);
}
