/** The tools of the hand-offs: ledger, inbox, clock and machine. */

import type { Clock } from "../base/clock.ts";
import type { Emit } from "../model/events.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { Placement } from "../model/placement.ts";
import type { Routed, TransferKey, TransferRecord } from "../model/record.ts";
import type { Following } from "./entry.ts";
import type { HandoffPatience } from "./port.ts";

/** What follows a delivery, as its record says and its rule is configured now. */
export function followingOf(
  { handoffOf }: Pick<HandoffTools, "handoffOf">,
  delivery: Routed & Pick<TransferRecord, "steps">,
): Following {
  return { steps: delivery.steps ?? [], handoff: handoffOf(delivery) };
}

export interface HandoffTools {
  /** The work folder. */
  readonly work: string;
  /** No other process works on this inbox. */
  readonly isAlone: boolean;
  /** The hand-off of a delivery, by its mailbox and route, as configured now. */
  handoffOf(delivery: Routed): Handoff;
  /** The address of the console to link to; `undefined` for none. */
  console(): string | undefined;
  readonly ledger: {
    nameOf(key: TransferKey): string;
    /** The end record of this very round; `undefined` while the round is open. */
    readEnd(name: string, round: number): Promise<TransferRecord | undefined>;
    /**
     * Whether the staged folder that this end record names has left `staging/`. Until then it is not in the inbox.
     */
    isPlaced(end: TransferRecord): Promise<boolean>;
    /** Of deliveries that are more than one folder with its manifest inside. */
    readonly placements: {
      /** `undefined` for a delivery without one, and after `forget`. Throws `RECORD_UNREADABLE`. */
      find(end: TransferRecord): Promise<Placement | undefined>;
      /** The folder with a copy of the delivery's manifest, until `forget`; `undefined` without a placement. */
      folderOf(end: TransferRecord): string | undefined;
      /** The entry is about to be finished: the placement is no longer needed. */
      forget(end: TransferRecord): Promise<void>;
    };
    /** `record`: the end record, with the folder that the delivery really got. */
    pickedUp(record: TransferRecord): void;
  };
  /** Where a finished entry goes. The folder of that path exists. */
  finishedPath(name: string, round: number): string;
  readonly inbox: {
    /** The common inbox. */
    readonly root: string;
    /**
     * Whether the inbox, by default the common one, is still the folder that was opened, and not the empty mount point of
     * an unmounted disk.
     */
    isHere(inbox?: string): Promise<boolean>;
    /** `foreign`: the folder is another one now, or was changed; it is left alone. */
    removeDelivered(delivery: {
      readonly id: string;
      readonly folder: string;
      readonly inbox: string | undefined;
      readonly placement?: Placement | undefined;
    }): Promise<"removed" | "foreign">;
  };
  readonly clock: Clock;
  /** Time since the machine started: the same for all processes, and unaffected by changes of the clock. */
  readonly uptimeMs: () => number;
  /** Whether the clock can be trusted: no folder is removed while it cannot. */
  readonly isClockRight: () => boolean;
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
  readonly patience: HandoffPatience;
  readonly emit: Emit;
  /** Once aborted, no further step begins. */
  readonly stop: AbortSignal;
}
