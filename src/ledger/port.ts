/**
 * The ledger: durable records of how each transfer ended, and notes of open transfers.
 *
 * Several processes may work on one inbox, and each may pause for any length of time. Safety rests on records that are
 * created once and never changed. Everything else may be lost, at the cost of time.
 */
import type { AttemptKey, AttemptSlots } from "../model/attempts.ts";
import type { Placement } from "../model/placement.ts";
import type { Routed, TransferKey, TransferRecord } from "../model/record.ts";
import type { RecordedAct } from "../model/views.ts";
import type { Occasion } from "./format.ts";
import type { Journal } from "./journal.ts";
import type { Quarantined, QuarantineReason } from "./quarantine.ts";
import type { Starts } from "./starts.ts";

export type { TransferKey } from "../model/record.ts";
export type { Quarantined } from "./quarantine.ts";

/** The content of one attempt at a round, in a folder that only this attempt writes to. */
export interface Stage {
  readonly name: string;
  readonly round: number;
  readonly token: string;
  readonly folder: string;
  /** The path for a ZIP until it is unpacked. */
  readonly zip: string;
  /** The folder for files that are placed beside the delivered folder. Created by the attempt if it is needed. */
  readonly beside: string;
  /** The folder for the placement, and a copy of the manifest. */
  readonly placement: string;
  /** The folder is still empty. */
  readonly isNew: boolean;
}

export interface Ledger {
  /** The name of a transfer in all paths of the ledger: safe on every file system, and unique. */
  nameOf(key: TransferKey): string;
  /**
   * The transfer in its last round; `undefined` for an unknown transfer. The cost does not grow with the history.
   * Throws `RECORD_UNREADABLE` if a record is damaged or of another version.
   */
  find(key: TransferKey): Promise<TransferRecord | undefined>;
  /** Notes a new transfer. False if the transfer is known. */
  discover(record: TransferRecord): Promise<boolean>;
  /** Begins the round of `record`, after the round before it has ended. False if it has begun before. Durable. */
  begin(record: TransferRecord, why: Occasion, by: string): Promise<boolean>;
  /** Notes the record of an open round. Written soon, without a sync. */
  note(record: TransferRecord): void;
  /** Notes what an operator has ordered: when it returns, a power cut cannot take it away. */
  noteDurably(record: TransferRecord): Promise<void>;
  /** The same as `note`, and adds the change of state to the journal. */
  noteChange(record: TransferRecord): void;
  /** Ends a round without content: `gone`. False if it has ended before. Durable. */
  end(record: TransferRecord): Promise<boolean>;
  readonly stages: Stages;
  readonly placements: Placements;
  readonly attempts: AttemptSlots;
  /** Where mailboxes start: durable, and never changed. */
  readonly starts: Pick<Starts, "read" | "create">;
  /** Every open transfer, in no particular order. Removes the notes of rounds that have ended. */
  open(onDamaged: OnDamaged): AsyncIterable<TransferRecord>;
  /** Transfers whose last round ended in quarantine. */
  quarantined(onDamaged: OnDamaged): AsyncIterable<TransferRecord>;
  /**
   * Finishes rounds that a crash cut short: moves the staged folders that end records name, and removes the other
   * staged folders of ended rounds. May run beside workers. Returns the end records of the rounds, with their folders.
   */
  recover(onFailed: OnUnrecovered): Promise<TransferRecord[]>;
  /** The content of the round before, if it is in quarantine and complete. */
  findInQuarantine(record: TransferRecord): Promise<Quarantined | undefined>;
  /** How this round ended; `undefined` while it is open. Throws `RECORD_UNREADABLE`. */
  readEnd(name: string, round: number): Promise<TransferRecord | undefined>;
  /** Whether the content of an ended round has left staging. */
  isPlaced(end: TransferRecord): Promise<boolean>;
  /** Adds the pick-up of a delivery to the journal. */
  pickedUp(record: TransferRecord): void;
  /** Adds an operator's act to the journal. Resolves when it is written, or the disk has refused it. */
  recordAct(act: RecordedAct): Promise<void>;
  /** Adds changes of notices to the journal, and reports its batches. */
  readonly notices: Pick<Journal, "addNotice" | "onBatch">;
  /** Removes everything that the quarantine holds of a transfer. */
  clearQuarantine(key: TransferKey): Promise<void>;
  /** Removes records beyond their retention, from one part of the ledger per call. The clock must be right. */
  sweep(rules: RetentionRules): Promise<void>;
  /** Resolves when all notes and the journal are written, or the disk has refused them. */
  flush(): Promise<void>;
  /** Flushes, and closes the open folders. */
  close(): Promise<void>;
}

/** The placements of deliveries that are not picked up yet. */
export interface Placements {
  /** `undefined` for a delivery without one, and after `forget`. Throws `RECORD_UNREADABLE`. */
  find(end: TransferRecord): Promise<Placement | undefined>;
  /** The folder with a copy of the delivery's manifest, until `forget`; `undefined` without a placement. */
  folderOf(end: TransferRecord): string | undefined;
  /** The delivery was picked up. */
  forget(end: TransferRecord): Promise<void>;
}

export interface RetentionRules {
  /** How long records stay after the transfer has expired; missing: for ever. */
  readonly ledgerMs: number | undefined;
  /** How long the journal of a month is kept; missing: for ever. */
  readonly historyMs: number | undefined;
  /** Whether the service lists the transfer, or may list it. */
  isListed(record: TransferRecord): boolean;
  /** All transfers that the services list; `undefined` while the list of a mailbox is not known. */
  listed(): Iterable<AttemptKey> | undefined;
}

export type OnDamaged = (path: string, reason: string) => void;
/** `end`: the record of a round whose content cannot be moved to the inbox or the quarantine. */
export type OnUnrecovered = (path: string, error: unknown, end?: TransferRecord) => void;

export interface Stages {
  /** This process's stage for a round: its earlier one, or a new one. */
  openStage(record: TransferRecord): Promise<Stage>;
  /** The attempt is over for now. Its content stays for the next attempt of this process. */
  closeStage(stage: Stage): Promise<void>;
  /** Removes the stage, unless the round has ended with it. */
  dropStage(stage: Stage): Promise<void>;
  /** Which attempt has ended the round of a stage; `undefined` while the round is open. */
  endedBy(stage: Stage): Promise<"this" | "another" | undefined>;
  /** Folders with content of the same transfer, of other attempts or in quarantine. Their files may be copied. */
  otherContent(stage: Stage): Promise<string[]>;
  /** Removes the stages of other attempts that seem to be over. Safe if they are not. */
  reclaim(stage: Stage): Promise<void>;
  /** Syncs the stage's folder. Every file in it is synced already. */
  seal(stage: Stage): Promise<void>;
  /** Syncs every file in the stage, adds the reason, and seals the stage. */
  sealForQuarantine(stage: Stage, reason: QuarantineReason): Promise<void>;
  /**
   * Reserves a folder in an inbox until `giveBack`: `folder` itself, or the first free one of `FOLDER-2`, `FOLDER-3`
   * …. Without `inbox`, in the common one. Throws `TARGET_UNSAFE` if a folder on the way is a link, and
   * `INBOX_MISSING`.
   */
  takeFolder(folder: string, transfer: Routed, inbox?: string): Promise<string>;
  giveBack(folder: string, inbox?: string): void;
  /**
   * Claims names for a delivery with a placement: paths from the inbox's root. False, without a claim, if another delivery or
   * any file has one of them. The names stay claimed until the delivery is placed. Throws `TARGET_UNSAFE`.
   */
  claim(stage: Stage, paths: readonly string[], transfer: Routed, inbox?: string): Promise<boolean>;
  /** Stores the placement of a stage, with a copy of its manifest, and syncs both. Must precede `seal`. */
  writePlacement(stage: Stage, placement: Placement, manifest: string): Promise<void>;
  /** The folder with the placement of a staged folder, and a copy of its manifest. It may be missing. */
  placementOf(folder: string): string;
  /** Removes a placement that an earlier attempt with this stage has stored. */
  dropPlacement(stage: Stage): Promise<void>;
  /**
   * Ends the round with a sealed stage: `delivered` or `quarantined`. False if the round has ended before, or this
   * attempt was revoked. After true, the end is durable, and `place` must follow.
   */
  endWith(stage: Stage, record: TransferRecord): Promise<boolean>;
  /**
   * Moves the staged folder of an ended round to the inbox or the quarantine, or each part of its placement to the inbox,
   * and removes content that earlier rounds left in quarantine. Returns the record with its actual folder; `undefined`
   * if everything was moved before. Throws `TARGET_TAKEN`, `INBOX_MISSING` and `INBOX_APART`.
   * `stage`: the stage that has just ended the round.
   */
  place(record: TransferRecord, stage?: Stage): Promise<TransferRecord | undefined>;
}
