/**
 * The steps after a delivery: a command, a webhook, and the pick-up of the folder. The transfer stays delivered,
 * whatever happens here.
 *
 * Each delivery has one small file in the outbox. The file exists before the end record of its round, so no crash loses
 * it, and all processes that share the inbox work on it. The facts of the delivery are in the end record.
 */
import type { Clock } from "../base/clock.ts";
import type { Secret } from "../base/secret.ts";
import type { Emit } from "../model/events.ts";
import type { Check, Handoff } from "../model/mailbox.ts";
import type { Placement } from "../model/placement.ts";
import type { Routed, TransferKey, TransferRecord, Verified } from "../model/record.ts";

export interface Handoffs {
  /**
   * Creates the outbox entry of a delivery, before the end record of its round. An existing entry stays as it is. When
   * it returns, the entry is durable if losing it would lose more than the notice of a pick-up. Throws `DISK_FULL` or
   * `DISK_REFUSED`.
   */
  prepare(record: TransferRecord): Promise<void>;
  /** The delivery is in the inbox: starts the steps. May be called twice. */
  placed(record: TransferRecord): void;
  /**
   * Starts the steps of this round, and of all earlier ones, that are pending or given up, without waiting for their next
   * attempt. False if another process works on one of them: call again later.
   */
  retry(key: TransferKey & { readonly round: number }): Promise<boolean>;
}

/** Runs the check of a transfer, before its delivery. */
export interface Checker {
  /**
   * Returns when the check accepts the transfer. Waits for a check of the same round that another process left running.
   * Throws `CHECK_REFUSED` with the check's own reason, `CHECK_FAILED` if it gives no verdict, and the signal's reason.
   */
  run(check: Check, transfer: CheckedTransfer, signal: AbortSignal): Promise<void>;
}

export interface CheckedTransfer
  extends TransferKey,
    Pick<TransferRecord, "recipients" | "securityMode" | "passwordMode"> {
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

/** The ledger, inbox, clock and machine of the hand-offs. */
export interface HandoffTools {
  /** The work folder. */
  readonly work: string;
  /** No other process works on this inbox. */
  readonly isAlone: boolean;
  /** The hand-off of a delivery, by its mailbox, its route and the owners of its steps, as configured now. */
  handoffOf(delivery: Routed & Pick<TransferRecord, "owners">): Handoff;
  /** The address of the console to link to; `undefined` for none. */
  console(): string | undefined;
  /** The ledger's methods of these names. */
  readonly ledger: {
    nameOf(key: TransferKey): string;
    readEnd(name: string, round: number): Promise<TransferRecord | undefined>;
    /** Until the staged folder has left `staging/`, it is not in the inbox. */
    isPlaced(end: TransferRecord): Promise<boolean>;
    readonly placements: {
      find(end: TransferRecord): Promise<Placement | undefined>;
      folderOf(end: TransferRecord): string | undefined;
      forget(end: TransferRecord): Promise<void>;
    };
    /** `record`: the end record. */
    pickedUp(record: TransferRecord): void;
  };
  /** Where a finished entry goes. The folder of that path exists. */
  finishedPath(name: string, round: number): string;
  /** The inbox's methods of these names. */
  readonly inbox: {
    readonly root: string;
    isHere(inbox?: string): Promise<boolean>;
    removeDelivered(delivery: {
      readonly id: string;
      readonly folder: string;
      readonly inbox: string | undefined;
      readonly placement: Placement | undefined;
    }): Promise<"removed" | "foreign">;
  };
  readonly clock: Clock;
  /** Time since the machine started: the same for all processes, and unaffected by changes of the clock. */
  readonly uptimeMs: () => number;
  /** Whether the clock can be trusted: no folder is removed while it cannot. */
  readonly isClockRight: () => boolean;
  readonly patience: HandoffPatience;
  readonly emit: Emit;
  /** Once aborted, no further step begins. */
  readonly stop: AbortSignal;
}
