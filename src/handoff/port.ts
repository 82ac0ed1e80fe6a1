/**
 * The steps after a delivery: a command, a webhook, and the pick-up of the folder. The transfer stays delivered,
 * whatever happens here.
 *
 * Each delivery has one small file in the outbox. The file exists before the end record of its round, so no crash loses
 * it, and all processes that share the inbox work on it. The facts of the delivery are in the end record.
 */
import type { Secret } from "../base/secret.ts";
import type { Check } from "../model/mailbox.ts";
import type { TransferKey, TransferRecord, Verified } from "../model/record.ts";

export interface Handoffs {
  /**
   * Creates the outbox entry of a delivery, before the end record of its round. An existing entry stays as it is. When
   * it returns, the entry is durable if losing it would lose more than the notice of a pick-up. Throws `DISK_FULL` or
   * `DISK_REFUSED`.
   */
  prepare(record: TransferRecord): Promise<void>;
  /**
   * The folder is in the inbox, at `record.folder`: starts the steps. `wanted`: the folder that the end record names;
   * without it, the end record is read. May be called twice. Never throws: scans make up for failures.
   */
  placed(record: TransferRecord, wanted?: string): Promise<void>;
  /**
   * Starts the steps of this round, and of all earlier ones, that are pending or given up, without waiting for their next
   * attempt. False if another process works on one of them: call again later.
   */
  retry(key: TransferKey & { readonly round: number }): Promise<boolean>;
}

export interface OpenHandoffs extends Handoffs {
  /** Starts to scan the outbox periodically. */
  start(): void;
  /** Scans the outbox, and resolves when every step that was due at the call was tried. */
  finish(): Promise<void>;
  /** How many entries had a failed step when last seen. */
  failing(): number;
  /** When the outbox is to be scanned next; `undefined` before `start`. */
  scanDueMs(): number | undefined;
  close(): Promise<void>;
}

/** Runs the check of a transfer, before its delivery. */
export interface Checker {
  /**
   * Returns when the check accepts the transfer. Waits for a check of the same round that another process left running.
   * Throws `CHECK_REFUSED` with the check's own reason, `CHECK_FAILED` if it gives no verdict, and the signal's reason.
   */
  run(check: Check, transfer: CheckedTransfer, signal: AbortSignal): Promise<void>;
}

export interface CheckedTransfer extends TransferKey {
  /** The id that the delivery will have. */
  readonly id: string;
  readonly transferId: string;
  readonly sender: string;
  readonly verified: Verified;
  /** The complete folder: its absolute path. */
  readonly folder: string;
  /** The absolute path of its manifest. */
  readonly manifest: string;
  /** Must not appear in the reason. */
  readonly secrets: readonly Secret[];
}

export interface HandoffPatience {
  /** Pause after the first failure; it grows with each further one. */
  readonly retryMs: number;
  /** A failure this long after the first one is the last: the step is given up. */
  readonly giveUpMs: number;
  /** Pause between two scans; longer if a scan takes long. */
  readonly scanMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly killMs: number;
}
