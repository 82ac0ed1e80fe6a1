/**
 * What follows a delivery: a command, a webhook, and the pick-up of the folder. The transfer stays delivered, whatever
 * happens here.
 *
 * Each delivery has one small file in the outbox. The file exists before the end record of its round, so no crash loses
 * it, and all processes that share the inbox work on it. The facts of the delivery are in the end record.
 */
import type { TransferKey, TransferRecord } from "../model/record.ts";

export interface Handoffs {
  /**
   * Creates the outbox entry of a delivery, before the end record of its round. An existing entry stays as it is. When it
   * returns, the entry is durable if anything but the pick-up is configured. Throws `DISK_FULL` or `DISK_REFUSED`.
   */
  note(record: TransferRecord): Promise<void>;
  /**
   * The folder is in the inbox, at `record.folder`: begins the steps. `wanted`: the folder that the end record names; where
   * it is missing, the end record is read. May be called twice. Never throws: looks make up for what failed.
   */
  placed(record: TransferRecord, wanted?: string): Promise<void>;
  /**
   * Tries open and failed steps again at once, of this round and of all before it. False where another process works on
   * one of them: call again later.
   */
  retry(key: TransferKey & { readonly round: number }): Promise<boolean>;
}

export interface OpenHandoffs extends Handoffs {
  /** Starts to look at all entries, again and again. */
  start(): void;
  /** Looks once, and resolves when every due step was tried. */
  finish(): Promise<void>;
  /** How many entries had a failed step when last seen. */
  failing(): number;
  close(): Promise<void>;
}

export interface HandoffPatience {
  /** Pause after the first failure; it grows with each further one. */
  readonly retryMs: number;
  /** From the first attempt to the last. */
  readonly giveUpMs: number;
  /** Pause between two looks; longer where a look takes long. */
  readonly lookMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly killMs: number;
}
