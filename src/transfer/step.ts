/** What a step of the flow leads to. One switch in `download.ts` says what follows. */
import type { Fault } from "../base/faults.ts";
import type { Next } from "../model/job.ts";
import type { TransferRecord } from "../model/record.ts";

/** The attempt ends here. */
export type Outcome =
  /** The transfer waits, and `next` says when its job runs again. `facts`: missing if it waits as before. */
  | {
      readonly kind: "wait";
      readonly facts?: Partial<TransferRecord>;
      readonly fault?: Fault | undefined;
      readonly next: Next;
    }
  | { readonly kind: "quarantine"; readonly fault: Fault }
  /** The round ends without content. `isLeftOut`: the configuration says so, not the service. */
  | {
      readonly kind: "gone";
      readonly reason: string;
      readonly message: string;
      readonly isLeftOut?: boolean;
    }
  | { readonly kind: "delivered" }
  /** Another attempt, or an operator, has ended the round. */
  | { readonly kind: "lost" }
  /** The disk refuses the record, or the move after it. */
  | { readonly kind: "stuck"; readonly fault: Fault }
  /** The process stops. The content stays on the disk, and the next start continues with it. */
  | { readonly kind: "stopped" };

export type Step<Value> = { readonly kind: "continue"; readonly value: Value } | Outcome;

export function goOn<Value>(value: Value): Step<Value> {
  return { kind: "continue", value };
}
