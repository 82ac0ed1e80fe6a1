/**
 * The ledger: the durable record of how each transfer ended, and notes of those that are open.
 *
 * Several processes may work on one inbox, and each may be stopped for any length of time and then go on. Safety rests on
 * records that are created once and never changed; everything else may be lost, and costs time.
 */
import type { AttemptSlots } from "../model/attempts.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import type { Quarantined, QuarantineReason } from "./quarantine.ts";

export type { TransferKey } from "../model/record.ts";
export type { Quarantined } from "./quarantine.ts";

/** Why a round begins. */
export type Occasion = "retry" | "release" | "redeliver" | "discard" | "acknowledge" | "listed again";

/** One attempt's content: a folder that only its maker writes in. */
export interface Stage {
  readonly name: string;
  readonly round: number;
  readonly token: string;
  readonly folder: string;
  /** For a ZIP until it is unpacked. */
  readonly zip: string;
  /** Nothing was ever written in it. */
  readonly isNew: boolean;
}

export interface Ledger {
  /** Names everything that belongs to this transfer; safe on every file system, and unique. */
  nameOf(key: TransferKey): string;
  /**
   * The transfer as it is in its last round; `undefined` where nothing is known of it. Costs the same whatever the length
   * of history. Throws `RECORD_UNREADABLE` where a record is damaged or of another version: never guessed over.
   */
  find(key: TransferKey): Promise<TransferRecord | undefined>;
  /** Notes a transfer that nothing is known of. False where something is. */
  discover(record: TransferRecord): Promise<boolean>;
  /**
   * Begins the round of `record`, after the one before it has ended. False where somebody began it before. When it returns,
   * a power cut cannot undo it.
   */
  begin(record: TransferRecord, why: Occasion, by: string): Promise<boolean>;
  /** Notes what is known of an open round. A convenience: written soon, and not synced. */
  note(record: TransferRecord): void;
  /** The same, and the journal says that its state has changed. */
  noteChange(record: TransferRecord): void;
  /**
   * Ends a round without content: `gone`. False where it has ended before. When it returns, a power cut cannot undo it.
   */
  end(record: TransferRecord): Promise<boolean>;
  readonly stages: Stages;
  readonly attempts: AttemptSlots;
  /** Every open transfer that is known, in no particular order. Settles those whose round has ended meanwhile. */
  open(onDamaged: OnDamaged): AsyncIterable<TransferRecord>;
  /** Those in quarantine. */
  quarantined(onDamaged: OnDamaged): AsyncIterable<TransferRecord>;
  /**
   * Finishes what crashes have left: places what end records name, removes what nobody needs. Leaves open rounds alone. May
   * run beside workers. Returns the deliveries that it placed, with their folders.
   */
  recover(onFailed: (path: string, error: unknown) => void): Promise<TransferRecord[]>;
  /** The content of the round before, where it is complete in quarantine. */
  findInQuarantine(record: TransferRecord): Promise<Quarantined | undefined>;
  /** How this very round ended; `undefined` while it is open. Throws `RECORD_UNREADABLE`. */
  readEnd(name: string, round: number): Promise<TransferRecord | undefined>;
  /** Whether the folder of a delivery has left staging. */
  isPlaced(end: TransferRecord): Promise<boolean>;
  /** Writes down that a delivery was picked up. */
  pickedUp(record: TransferRecord): void;
  /** Removes everything that the quarantine holds of a transfer. */
  clearQuarantine(key: TransferKey): Promise<void>;
  /**
   * Removes some of what is older than it is to be kept: every part of the ledger has its turn. To be called now and then,
   * while the clock is right.
   */
  sweep(rules: RetentionRules): Promise<void>;
  /** Resolves when everything that was noted is written, as far as the disk allows. */
  flush(): Promise<void>;
  /** Writes what is unwritten, and closes what is open. */
  close(): Promise<void>;
}

export interface RetentionRules {
  /** How long after its expiry the records of a transfer stay; missing: for ever. */
  readonly ledgerMs: number | undefined;
  /** How long the journal's months stay; missing: for ever. */
  readonly historyMs: number | undefined;
  /** Whether the service lists it, or may do so. */
  isListed(record: TransferRecord): boolean;
}

export type OnDamaged = (path: string, reason: string) => void;

export interface Stages {
  /** The stage of this process for a round: the one it had before, or a new one. Throws what the disk says. */
  openStage(record: TransferRecord): Promise<Stage>;
  /** The attempt is over for now; its content stays for the next one. */
  closeStage(stage: Stage): Promise<void>;
  /** Its content is of no use any more. Content with which the round has ended stays. */
  dropStage(stage: Stage): Promise<void>;
  /** Which attempt has ended the round of a stage; `undefined` while it is open. */
  endedBy(stage: Stage): Promise<"this" | "another" | undefined>;
  /** Folders with content of the same transfer, of other attempts and of its quarantine: files in them may be copied. */
  otherContent(stage: Stage): Promise<string[]>;
  /** Removes what other attempts left that seem to be over, whether or not they are. */
  reclaim(stage: Stage): Promise<void>;
  /** Every file in the stage is synced; now its folder is. */
  seal(stage: Stage): Promise<void>;
  /** Syncs every file in the stage, adds the reason, and seals it. */
  sealForQuarantine(stage: Stage, reason: QuarantineReason): Promise<void>;
  /**
   * The folder where a delivery goes: `folder` itself, or the first of `FOLDER-2`, `FOLDER-3` … that is free. No other
   * delivery of this process gets it until `giveBack`. Throws `TARGET_UNSAFE` where a link is on the way.
   */
  takeFolder(folder: string): Promise<string>;
  giveBack(folder: string): void;
  /**
   * Ends the round with a sealed stage: `delivered` or `quarantined`. False where the round has ended before, or where this
   * attempt was revoked. When it returns true, the delivery is decided, and `place` has to follow.
   */
  endWith(stage: Stage, record: TransferRecord): Promise<boolean>;
  /**
   * Moves the staged folder of an ended round to where it belongs, and removes what earlier rounds left in quarantine.
   * Returns the record with the folder that it got; `undefined` where there was nothing left to move. `stage`: the one that
   * ended the round just now.
   */
  place(record: TransferRecord, stage?: Stage): Promise<TransferRecord | undefined>;
}
