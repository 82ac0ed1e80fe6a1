/**
 * Transfers and their past, as commands, the API and the console show them.
 *
 * The shapes check the answers of a daemon. As JSON, every key of a transfer is always present.
 */
import * as v from "valibot";
import { STEPS } from "./handoff.ts";
import { FileShape } from "./manifest.ts";
import { ACTS, ActorShape, TRANSFER_ACTS } from "./order.ts";
import type { JournalKind, TransferFilter } from "./queries.ts";
import { ReleaseShape, STATES, VERIFIED } from "./record.ts";
import { listOf, NAMED, OpenListShape, SENT } from "./status.ts";
import { AddresseesShape } from "./transfer.ts";

const Text = v.optional(v.string());
const Count = v.optional(v.number());
const Texts = listOf(v.string());
const TextOrNull = v.nullable(v.string());
const CountOrNull = v.nullable(v.number());

export const TransferShape = v.object({
  mailbox: v.string(),
  trackingId: v.string(),
  transferId: v.string(),
  sender: v.string(),
  state: v.picklist(STATES),
  reason: TextOrNull,
  message: TextOrNull,
  until: TextOrNull,
  expires: TextOrNull,
  folder: TextOrNull,
  /** The inbox of that folder: an absolute path. Null: the common inbox. */
  inbox: TextOrNull,
  route: TextOrNull,
  subject: TextOrNull,
  files: CountOrNull,
  bytes: CountOrNull,
  verified: v.nullable(v.picklist(VERIFIED)),
  released: v.nullable(ReleaseShape),
  passwordsSpent: CountOrNull,
  round: v.number(),
  at: v.record(v.picklist(STATES), v.string()),
});

/** A transfer as `inlet list --json` prints it. */
export type TransferView = Readonly<v.InferOutput<typeof TransferShape>>;

export const TransferListShape = v.object({
  ...OpenListShape.entries,
  transfers: listOf(TransferShape),
  /** Paths of unreadable records, which are skipped; a bounded number. */
  damaged: Texts,
});

export type TransferList = Readonly<v.InferOutput<typeof TransferListShape>>;

export const HistoryEntryShape = v.object({
  at: v.pipe(v.string(), v.isoTimestamp()),
  ...NAMED,
  state: v.string(),
  round: Count,
  reason: Text,
  /** From the inbox's root. */
  folder: Text,
  /** Missing: the common inbox. */
  inbox: Text,
  /** Of a delivery. */
  ...SENT,
  /** From discovery to delivery. */
  seconds: Count,
});

/** A change of state in the journal. */
export type HistoryEntry = Readonly<v.InferOutput<typeof HistoryEntryShape>>;

export const ActEntryShape = v.object({
  at: v.pipe(v.string(), v.isoTimestamp()),
  act: v.picklist(ACTS),
  /** The same in each record of one act: several processes may record it, and one may do so twice. */
  id: v.string(),
  ...ActorShape.entries,
  /** When the operator acted. */
  given: Text,
  mailbox: Text,
  trackingId: Text,
  sender: Text,
  round: Count,
  /** Changed keys of the configuration. */
  keys: v.optional(Texts),
  /** Why new settings were refused, or a poll failed: a fault's code. */
  reason: Text,
  /** Of a poll. */
  message: Text,
  listed: Count,
  discovered: Count,
});

/** An operator's act, or a change of the configuration, in the journal. */
export type ActEntry = Readonly<v.InferOutput<typeof ActEntryShape>>;

export type RecordedAct = Omit<ActEntry, "at">;

/**
 * `state`: entries of this state, even if another state followed. Acts on no transfer, such as a change of the
 * configuration, match neither a sender nor a mailbox.
 */
export interface JournalQuery extends TransferFilter {
  readonly limit: number;
}

/** Entries of the journal, newest first. */
export const JournalPageShape = v.object({
  entries: listOf(v.union([ActEntryShape, HistoryEntryShape])),
  /** Damaged lines of a file, as far as it was read. */
  damaged: listOf(v.object({ path: v.string(), lines: v.number() })),
});

export interface Journal<Kind extends JournalKind = JournalKind> {
  readonly entries: readonly (Kind extends "acts" ? ActEntry : HistoryEntry)[];
  readonly damaged: v.InferOutput<typeof JournalPageShape>["damaged"];
}

/** How transfers ended in one slot of time. */
export interface Tally {
  readonly delivered: number;
  readonly quarantined: number;
  readonly gone: number;
  /** Of the deliveries, as far as their sizes are known. */
  readonly bytes: number;
}

const FailedStepShape = v.object({
  step: v.picklist(STEPS),
  message: v.string(),
  /** The last output of the command: several lines of untrusted text. */
  output: Text,
  /** Missing if it was given up. */
  nextAt: Text,
});

const HandoffShape = v.object({
  /**
   * `open`: a command or webhook is due, or has failed. `waiting`: the folder is not picked up yet. `kept`: the folder
   * was picked up, and is removed later.
   */
  progress: v.picklist(["open", "waiting", "kept", "finished"]),
  pickedUpAt: Text,
  /** Steps whose last attempt failed. Missing if there are none. */
  failed: v.optional(listOf(FailedStepShape)),
});

const RoundShape = v.object({
  round: v.number(),
  /** Missing for round 1. */
  begun: v.optional(v.object({ why: v.string(), by: v.string(), at: v.string() })),
  /** Missing while the round is open. */
  ended: v.optional(
    v.object({
      outcome: v.picklist(STATES),
      at: Text,
      reason: Text,
      message: Text,
      folder: Text,
      /** Missing: the common inbox. */
      inbox: Text,
      verified: v.optional(v.picklist(VERIFIED)),
      released: v.optional(ReleaseShape),
      /** False until the content is moved to the inbox or the quarantine. */
      isPlaced: v.boolean(),
      /** Missing if nothing follows the delivery. */
      handoff: v.optional(HandoffShape),
    }),
  ),
});

export type HandoffView = Readonly<v.InferOutput<typeof HandoffShape>>;
export type RoundView = Readonly<v.InferOutput<typeof RoundShape>>;

export type FileView = NonNullable<Story["contents"]>[number];

/** What `verified` of a file means, for people. */
export function describeVerdict({ verified, checksum }: FileView): string {
  if (verified) return "verified";
  return checksum === undefined ? "no checksum" : "does not match its checksum";
}

/** The sender's checksum, or without one the file's SHA-256. */
export function describeChecksum({ checksum, algorithm = "", sha256 }: FileView): string {
  return checksum === undefined ? `SHA-256 ${sha256}` : `${algorithm} ${checksum}`;
}

export const StoryShape = v.object({
  ...TransferShape.entries,
  /** With the attempts that an operator has granted. */
  passwordAttempts: CountOrNull,
  attempts: v.number(),
  acknowledged: v.boolean(),
  /** Null: the service does not say. */
  recipients: v.nullable(AddresseesShape),
  /** Of the transfer at the service, as it names them. */
  securityMode: TextOrNull,
  passwordMode: TextOrNull,
  /** Why its route matches, for people. */
  routedBecause: TextOrNull,
  /** The operator who allowed its delivery, whatever the routes say. */
  allowedBy: TextOrNull,
  rounds: listOf(RoundShape),
  staged: Texts,
  /** The folder in quarantine. */
  kept: TextOrNull,
  /** Oldest first. */
  acts: listOf(ActEntryShape),
  /** Orders that no daemon has carried out yet. */
  orders: listOf(v.object({ act: v.picklist(TRANSFER_ACTS), ...ActorShape.entries, at: v.string() })),
  /** The last output of the check that refused it, or gave no verdict: several lines of untrusted text. */
  output: TextOrNull,
  /** The files of its last round; a bounded number. Null: they are not known, or no longer there. */
  contents: v.nullable(listOf(FileShape)),
  /** Why the files are not known: what others have made of the manifest in the inbox. */
  contentsProblem: TextOrNull,
  /** How many more files there are. */
  moreContents: v.number(),
  /** Acts that apply in its state. */
  actions: listOf(v.picklist(TRANSFER_ACTS)),
  commands: Texts,
});

/** Everything known about one transfer, as `inlet show --json` prints it. */
export type Story = Readonly<v.InferOutput<typeof StoryShape>>;

/** `given`: the order is kept, and its outcome was not awaited. */
const ResultShape = v.picklist(["fine", "attention", "pending", "refused", "given"]);

export const ActResultShape = v.object({
  mailbox: v.string(),
  trackingId: v.string(),
  /** 200: the order was given; 404: no such transfer; 409: not possible in its state. */
  status: v.number(),
  /** A sentence for people. */
  text: v.string(),
  state: Text,
  reason: Text,
  result: ResultShape,
});

export const MailboxResultShape = v.object({
  mailbox: v.string(),
  /** 200: done, or the order was given; 404: no such mailbox; 409: not possible now. */
  status: v.number(),
  result: ResultShape,
  /** A sentence for people. */
  text: v.string(),
  /** By the poll: active transfers, and new ones among them. */
  listed: Count,
  discovered: Count,
});

export type MailboxResult = Readonly<v.InferOutput<typeof MailboxResultShape>>;

export type ActResult = Readonly<v.InferOutput<typeof ActResultShape>>;

/** What a dry run says of a transfer, for people. A downloaded transfer may still fail verification or the check. */
export const PLANS = {
  deliver: "would be downloaded and delivered",
  open: "would be opened, and then its files decide which route it takes",
  password: "would wait for a password",
  hold: "would be held for an operator",
  ignore: "would be left out",
  wait: "would wait",
} as const;

export type Plan = keyof typeof PLANS;

/** When the transfer entered its state. */
export function timeOf({ at, state }: Pick<TransferView, "at" | "state">): string {
  return at[state] ?? Object.values(at).toSorted().at(-1) ?? "";
}
