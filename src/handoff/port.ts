/**
 * What follows a delivery. The folder is in the inbox and stays delivered, whatever happens here: a command is run, a
 * webhook is told, and somebody is waited for who collects it.
 *
 * Each delivery has a small file of its own, made before its receipt says `delivered`, so that no crash loses it. One
 * process owns it, as its name says. Only the owner writes it, and only from an owner that is provably gone is it taken.
 */
import type { Fault } from "../base/faults.ts";
import type { Delivered, HandoffStep, HandoffSummary } from "../model/handoff.ts";
import type { Receipt } from "../model/receipt.ts";

export interface Handoffs {
  /**
   * Makes the hand-off of a delivery durable, before its receipt is. May be called twice for one delivery, also by
   * another process. `isResumed`: somebody else may have called it before. Throws what the disk says against it.
   */
  note(receipt: Receipt, isResumed: boolean): Promise<void>;
  /** Its receipt says `delivered` now. */
  begin(key: TransferKey): void;
  /**
   * Steps that are not done are tried again at once, as if for the first time. False where another process that is
   * alive has the hand-off: that one has to be asked.
   */
  retry(key: TransferKey): Promise<boolean>;
}

export interface TransferKey {
  readonly mailbox: string;
  readonly trackingId: string;
}

/** Hears what happens. Must not throw. */
export interface HandoffWatch {
  handedOver(delivered: Delivered, step: HandoffStep): void;
  /** Told with every attempt. */
  handoffFailed(delivered: Delivered, step: HandoffStep, fault: Fault, failure: StepFailure): void;
  /** The folder is gone, or a file in it says so. */
  collected(delivered: Delivered, how: "taken" | "acknowledged"): void;
  /** Told once, where nobody has collected it for longer than was expected. */
  uncollected(delivered: Delivered, sinceMs: number): void;
  /** Its folder was there for longer than it is to be kept. */
  removed(delivered: Delivered, after: "collected" | "uncollected"): void;
  /** Its folder was to be removed, but is not as it was delivered: it is left alone for good. */
  leftInPlace(delivered: Delivered): void;
  /** All of them were looked at. */
  handoffsSeen(summary: HandoffSummary): void;
  /** Hand-offs cannot be read or written. Not told again until it was over. */
  handoffsStuck(fault: Fault): void;
  handoffsGoOn(stuckForMs: number): void;
  receiptDamaged(path: string, reason: string): void;
}

interface StepFailure {
  readonly attempts: number;
  /** False: it was given up, until an operator wants it tried again. */
  readonly willRetry: boolean;
  /** The end of what the command printed; empty for anything else. */
  readonly output: string;
}

/** How long to wait for what. */
export interface HandoffPatience {
  /** After the first failure; longer after each further one. */
  readonly retryMs: number;
  /** From the first attempt on. */
  readonly giveUpMs: number;
  /** Between two looks for what was collected; longer where there are very many. */
  readonly lookMs: number;
  /** For a command to end by itself that was told to. */
  readonly killMs: number;
}
