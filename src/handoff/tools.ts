/** What hand-offs work with: as much of receipts and inbox as they need. */
import type { Clock } from "../base/clock.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { Receipt } from "../model/receipt.ts";
import type { HandoffPatience, HandoffWatch, TransferKey } from "./port.ts";

export interface HandoffTools {
  /** The work folder. */
  readonly work: string;
  /** Nobody else works on this inbox. */
  readonly isAlone: boolean;
  /** Who we are among those who share the inbox. */
  readonly owner: string;
  /** Whether that one will never write again. */
  isGone(owner: string): Promise<boolean>;
  /** As it is configured now. */
  handoff(): Handoff;
  readonly receipts: {
    find(key: TransferKey): Promise<Receipt | undefined>;
    put(receipt: Receipt, previous: Receipt): Promise<void>;
    folderName(key: TransferKey): string;
  };
  readonly inbox: {
    readonly root: string;
    isHere(): Promise<boolean>;
    removeDelivered(delivery: Delivery): Promise<"removed" | "foreign">;
  };
  readonly clock: Clock;
  /** How long the machine is up: it goes on evenly whatever becomes of the clock, for all processes alike. */
  readonly uptimeMs: () => number;
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
  readonly patience: HandoffPatience;
  readonly watch: HandoffWatch;
  /** From then on no step is begun. */
  readonly stop: AbortSignal;
}

interface Delivery {
  readonly id: string;
  readonly folder: string;
  readonly trackingId: string;
  readonly transferId: string;
}
