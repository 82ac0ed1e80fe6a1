/**
 * The record of one transfer for one mailbox, and its states.
 *
 * A transfer without problems goes `discovered` → `downloading` → `delivering` → `delivered` → `picked-up`.
 * - `checking`: it is complete, and the configured check decides about it.
 * - `waiting`: for a password, the end of a lock or of quiet hours, disk space, a slot or another attempt.
 * - `quarantined`: it failed verification or the check, and an operator decides.
 * - `gone`: the service removed it, or an operator discarded it, before its delivery.
 *
 * A *round* is one pass from discovery to an end state. An ended round never changes. The next round begins by an
 * operator's order, or when the service lists the transfer again.
 */

import { join } from "node:path";
import * as v from "valibot";
import { beginWait, LONGEST_MS, waitLeft } from "../base/waits.ts";
import { OWNERS, STEPS } from "./handoff.ts";
import { AddresseesShape, type ListedField } from "./transfer.ts";

export const RECORD_VERSION = 2;

export const STATES = [
  "discovered",
  "downloading",
  "waiting",
  "checking",
  "delivering",
  "delivered",
  "picked-up",
  "quarantined",
  "gone",
] as const;

export type State = (typeof STATES)[number];

const ENDED: ReadonlySet<State> = new Set(["delivered", "picked-up", "quarantined", "gone"]);

/** How many files match a checksum of their sender. */
export const VERIFIED = ["all", "some", "none"] as const;

export type Verified = (typeof VERIFIED)[number];

/** Identifies a transfer of a mailbox. Untrusted text. */
export interface TransferKey {
  readonly mailbox: string;
  readonly trackingId: string;
}

/** The page of a transfer. `console`: the address of the console, without a slash at its end. */
export function pageOf(console: string, { mailbox, trackingId }: TransferKey): string {
  return `${console}/transfer?${new URLSearchParams({ mailbox, trackingId })}`;
}

/** What the settings of a transfer depend on. */
export type Routed = Pick<TransferRecord, "mailbox" | "rule">;

/** An operator vouches for a transfer in quarantine. */
export const ReleaseShape = v.object({
  by: v.string(),
  /** ISO 8601, as all times here. */
  at: v.string(),
  /** Why it was in quarantine: a fault's code, and its message for people. */
  reason: v.string(),
  message: v.string(),
});

const PasswordObstacleShape = v.object({
  spent: v.number(),
  /** No attempts are left, not even for a supplied password. */
  isExhausted: v.boolean(),
  /** The supplied file holds no password, or does not name its service. */
  isUnusable: v.boolean(),
});

export type PasswordObstacle = Readonly<v.InferOutput<typeof PasswordObstacleShape>>;

/** A file as Inlet wrote it. */
const WrittenShape = v.object({ bytes: v.number(), sha256: v.string() });

const Text = v.optional(v.string());
const Count = v.optional(v.number());
const Flag = v.optional(v.boolean());

/** A key that is missing here would be lost when a record is read. */
export const RecordShape = v.object({
  version: v.literal(RECORD_VERSION),
  mailbox: v.string(),
  trackingId: v.string(),
  transferId: v.string(),
  sender: v.string(),
  state: v.picklist(STATES),
  /** Counted from 1. */
  round: v.pipe(v.number(), v.integer(), v.minValue(1)),
  /**
   * Why it waits (`password`, `mode`, `no-mode`, `browser`, `locked`, `disk`, `retry`, `quiet`, `large`, `slow`, `check`,
   * `held`, `doubt`), was quarantined (a fault's code), or is gone (the service's state, `not_listed`, `discarded` or `ignored`).
   */
  reason: Text,
  /** What happened, and what to do. */
  message: Text,
  /** The code of the fault that made it wait, if there was one. */
  code: Text,
  /** The last output of the check that refused it, or gave no verdict. */
  output: Text,
  /** End of the wait, if known. */
  until: Text,
  expires: Text,
  /** The sender chose no password: the listed link carries one. */
  passwordInLink: v.boolean(),
  /** The sender chose no password, and the link carries none either. */
  hasNoPassword: Flag,
  /** As the service first listed it. Empty: the service names none. Missing: unknown. */
  securityMode: Text,
  /** `MANUAL`, or how else its password was chosen, as first listed. */
  passwordMode: Text,
  /** As first listed, each list of them: later lists may name proxies. Missing: unknown. */
  recipients: v.optional(AddresseesShape),
  /** It holds a confidential message; missing if the service does not say. */
  hasMessage: Flag,
  /** The file of that message. */
  messageFileId: Text,
  /** The delivery's folder, planned or done, relative to the inbox. */
  folder: Text,
  /** The inbox of that folder: an absolute path. Missing: the common inbox. */
  inbox: Text,
  /** The sender's words, and how much was sent. Known once the transfer was opened, the subject earlier where the list shows it. Untrusted text. */
  subject: Text,
  files: Count,
  bytes: Count,
  /** As in the manifest. Known once the content is complete. */
  verified: v.optional(v.picklist(VERIFIED)),
  /**
   * Its content is complete and verified in a stage, and only the check is missing: the service is no longer needed. The
   * digest of the contents.
   */
  complete: Text,
  /** The file name reserved in the folder for the consumer's acknowledgement. */
  acknowledgement: Text,
  /** It has a placement, which says where its parts go. Missing: it is one folder with its manifest inside. */
  placement: v.optional(v.picklist(["folder", "files"])),
  /** Of all files in the delivered folder, as staged: a process that did not stage them compares it before it moves them. */
  sum: Text,
  /** The manifest and the sums in the delivered folder. Missing in records of earlier versions, and where they are elsewhere. */
  written: v.optional(v.object({ manifest: WrittenShape, sums: WrittenShape })),
  released: v.optional(ReleaseShape),
  /** The matching route, and why it matches, for people. Missing if no route matches. */
  route: Text,
  routedBecause: Text,
  /** Identifies that route, so that no other one is ever taken for it. */
  rule: Text,
  /** The steps that follow the delivery, decided with it. */
  steps: v.optional(v.pipe(v.array(v.picklist(STEPS)), v.readonly())),
  /** Who configured each step. Missing in records of earlier versions: then whoever configures it now. */
  owners: v.optional(
    v.object({ command: v.optional(v.picklist(OWNERS)), webhook: v.optional(v.picklist(OWNERS)) }),
  ),
  /** The routes that hold it, as a fingerprint: it is held until they change, or an operator allows it. */
  heldBy: Text,
  /** The operator who allowed its delivery, whatever the routes say. */
  allowedBy: Text,
  /** An operator has acknowledged that it is gone. */
  acknowledged: Flag,
  /** It waits for a password: why the last attempt ended without one. */
  password: v.optional(PasswordObstacleShape),
  /** It waits, and a retry alone will not help. */
  needsPerson: Flag,
  /** An operator ordered a retry: quiet hours and waits do not apply. */
  wanted: Flag,
  /** The number of the last order that this record takes into account. */
  ordered: Count,
  /** Consecutive polls that have not listed it. */
  missedPolls: Count,
  /** Polls no longer list it: the service is asked for its state. */
  vanished: Flag,
  /** Attempts started in this round. */
  attempts: v.number(),
  /** Failures of each operation in this round; `rest`: the operations that every delivery needs. */
  failures: v.optional(v.record(v.string(), v.number())),
  /** When it last entered each state. */
  at: v.record(v.picklist(STATES), v.string()),
});

export type TransferRecord = Readonly<v.InferOutput<typeof RecordShape>>;

/** The reason of a transfer that an operator discarded. It stays `gone`, even while the service lists it. */
export const DISCARDED = "discarded";

/** The reason of a transfer that the configuration leaves out. It stays `gone` until an operator retries it. */
export const IGNORED = "ignored";

/** The message of a transfer that is left out because an operator has said that it was delivered before. */
export const ADOPTED =
  "It was received before the records of this inbox were adopted (inlet adopt), so it counts as delivered, and is left out. To download it, use inlet retry.";

/** The reason of a transfer that waits for an operator, because a route says so. */
export const HELD = "held";

/** The reason of a transfer that waits for a person, because Inlet sends no password by itself in its security mode. */
export const MODE = "mode";

/** The reason of a transfer whose security mode is unknown. A person answers once for its service, not for each. */
export const NO_MODE = "no-mode";

/** The reason of a transfer that the service opens only in a browser: neither a password nor a retry helps. */
export const BROWSER = "browser";

/** The reason of a transfer that may have been delivered before, because records are missing: an operator decides. */
export const DOUBT = "doubt";

/** The reason of a transfer that the service has locked. */
export const LOCKED = "locked";

/** The reason of a transfer that waits for the end of quiet hours. */
export const QUIET = "quiet";

/** The service may list it again. Not so if an operator does not want it. */
export function mayComeBack(record: TransferRecord): boolean {
  return record.state === "gone" && !isUnwanted(record);
}

type Reasoned = Pick<TransferRecord, "state"> & Partial<Pick<TransferRecord, "reason">>;

/** An operator discarded it, or the configuration leaves it out. */
export function isUnwanted({ state, reason }: Reasoned): boolean {
  return state === "gone" && (reason === DISCARDED || reason === IGNORED);
}

export function isHeld({ state, reason }: Reasoned): boolean {
  return state === "waiting" && reason === HELD;
}

/** It may have been delivered before, and no operator has decided yet. */
export function isDoubtful({ state, reason, wanted }: Reasoned & Pick<TransferRecord, "wanted">): boolean {
  return state === "waiting" && reason === DOUBT && wanted !== true;
}

/** It opens only in a browser, and no operator has ordered a retry. */
export function isForBrowser({ state, reason, wanted }: Reasoned & Pick<TransferRecord, "wanted">): boolean {
  return state === "waiting" && reason === BROWSER && wanted !== true;
}

/** It waits, and goes on only after a person has acted. */
export function waitsForPerson(record: Pick<TransferRecord, "state" | "reason" | "needsPerson">): boolean {
  const needsPerson = record.state === "waiting" && record.needsPerson === true;
  return needsPerson || isHeld(record) || (waitsForPassword(record) && record.reason !== NO_MODE);
}

/** It waits for a password that a person can supply. */
export function waitsForPassword({ state, reason }: Reasoned): boolean {
  return state === "waiting" && (reason === "password" || reason === MODE || reason === NO_MODE);
}

/** As a record holds it. */
export function modeText(mode: ListedField<string>): string | undefined {
  return mode.is === "given" ? mode.value : mode.is === "none" ? "" : undefined;
}

export function modeOf({ securityMode: value }: Pick<TransferRecord, "securityMode">): ListedField<string> {
  return value ? { is: "given", value } : { is: value === "" ? "none" : "unknown" };
}

/** The folder of a delivery for people: relative to the common inbox, or in another inbox its whole path. */
export function shownFolder(of: {
  readonly inbox?: string | null | undefined;
  readonly folder: string;
}): string {
  return of.inbox ? join(of.inbox, of.folder) : of.folder;
}

/** Whether an order has had its effect on this record. Later ones for the same transfer come after it. */
export function isIncluded(order: number, { ordered = 0 }: Pick<TransferRecord, "ordered">): boolean {
  return ordered >= order;
}

export function hasEnded({ state }: Pick<TransferRecord, "state">): boolean {
  return ENDED.has(state);
}

export function isDelivered({ state }: Pick<TransferRecord, "state">): boolean {
  return state === "delivered" || state === "picked-up";
}

/** It was delivered, is unwanted, or an operator acknowledged that it is gone. */
export function needsNoAttention(record: Reasoned & Pick<TransferRecord, "acknowledged">): boolean {
  if (record.state === "gone") return isUnwanted(record) || record.acknowledged === true;
  return isDelivered(record);
}

/** The record in another state. Facts about the previous state are dropped. */
export function withState(
  record: TransferRecord,
  state: State,
  nowMs: number,
  facts: Partial<TransferRecord> = {},
): TransferRecord {
  const at = { ...record.at, [state]: new Date(nowMs).toISOString() };
  const { reason, message, code, output, until, password, wanted, heldBy, ...others } = record;
  const { vanished, missedPolls, failures, needsPerson, complete, ...kept } = others;
  // These count until the round ends.
  const counted = ENDED.has(state) ? {} : withoutMissing({ missedPolls, failures });
  // A new attempt does not clear `needsPerson`: its result does.
  const attention = state === "downloading" || state === "checking" ? withoutMissing({ needsPerson }) : {};
  // Until it is downloaded anew, which starts only without complete content.
  const staged = ENDED.has(state) || state === "downloading" ? {} : withoutMissing({ complete });
  return { ...kept, ...counted, ...attention, ...staged, ...facts, state, at };
}

/**
 * A transfer that cannot go on, as people see it. A delivery that is decided and cannot be placed needs a person; anything
 * else is retried. `why`: for people.
 */
export function asStuck(record: TransferRecord, why: string, code: string): TransferRecord {
  const facts = { message: why, code, until: undefined };
  if (ENDED.has(record.state))
    return { ...record, ...facts, state: "delivering", reason: "disk", needsPerson: true };
  return { ...record, ...facts, state: "waiting", reason: "disk" };
}

/** A key with the value `undefined` would make two equal records look different. */
export function withoutMissing(facts: Partial<TransferRecord>): Partial<TransferRecord> {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/** The same transfer at the start of its next round. It keeps its time of discovery, which may be part of folder names. */
export function nextRound(record: TransferRecord, facts: Partial<TransferRecord> = {}): TransferRecord {
  const { mailbox, trackingId, transferId, sender, expires, passwordInLink, round, at } = record;
  const { hasNoPassword, securityMode, passwordMode, recipients, hasMessage, messageFileId } = record;
  const { subject, files, bytes, allowedBy } = record;
  return {
    version: RECORD_VERSION,
    mailbox,
    trackingId,
    transferId,
    sender,
    passwordInLink,
    ...withoutMissing({ expires, hasNoPassword, securityMode, passwordMode, recipients }),
    ...withoutMissing({ hasMessage, messageFileId }),
    ...withoutMissing({ subject, files, bytes, allowedBy }),
    state: "discovered",
    round: round + 1,
    attempts: 0,
    at: { discovered: at.discovered ?? new Date(0).toISOString() },
    ...facts,
  };
}

type Waiting = TransferKey & Pick<TransferRecord, "state" | "reason" | "until">;

/** Identifies its wait in this process. */
export function waitIdOf({ mailbox, trackingId }: TransferKey): string {
  return `${mailbox}\0${trackingId}`;
}

/**
 * What is left of its wait; `undefined` if nothing is. Quiet hours do not count: the configuration says when they end, and
 * may have changed.
 */
export function waitLeftMs(record: Waiting, nowMs: number): number | undefined {
  const { state, reason, until } = record;
  if (state !== "waiting" || reason === QUIET || until === undefined) return undefined;
  const longestMs = reason === LOCKED ? LONGEST_MS.lock : LONGEST_MS.attempt;
  const leftMs = waitLeft(waitIdOf(record), until, longestMs, nowMs);
  return leftMs > 0 ? leftMs : undefined;
}

/** More than a correction of the clock: it was set. */
const CLOCK_SET_MS = 60_000;

/** The record, with the end of its wait by the clock of now, if that was set since the wait began. */
export function withRightUntil<Given extends Waiting>(record: Given, nowMs: number): Given {
  const leftMs = waitLeftMs(record, nowMs);
  const { until = "" } = record;
  if (leftMs === undefined || Math.abs(Date.parse(until) - nowMs - leftMs) < CLOCK_SET_MS) return record;
  return { ...record, until: beginWait(waitIdOf(record), leftMs, nowMs) };
}

/** The last moment that a date can hold. Stands for an unknown expiry. */
export const UNKNOWN_EXPIRY_MS = 8.64e15;

/** When the service deletes the transfer. */
export function expiryOf({ expires }: Pick<TransferRecord, "expires">): number {
  return expires === undefined ? UNKNOWN_EXPIRY_MS : Date.parse(expires);
}
