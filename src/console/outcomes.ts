/** Recent actions of operators and their outcomes, so that each is shown where it was clicked. */
import type { Clock } from "../base/clock.ts";
import { formatCount } from "../base/phrases.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import type { TransferKey } from "../model/record.ts";
import type { ActResult } from "../model/views.ts";

const SHOWN_MS = 15 * 60_000;
const MAX_BATCHES = 50;

/** One click, on one transfer or on many. */
export interface Batch {
  readonly action: TransferAct;
  readonly by: Actor;
  readonly at: string;
  /** By the transfer's key. */
  readonly outcomes: ReadonlyMap<string, ActResult>;
}

export class Outcomes {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  /** Newest first. */
  #batches: Batch[] = [];

  constructor(clock: Clock, onChange: () => void) {
    this.#clock = clock;
    this.#onChange = onChange;
  }

  /** Returns a function that sets the outcome of each transfer. */
  begin(action: TransferAct, by: Actor): (result: ActResult) => void {
    const outcomes = new Map<string, ActResult>();
    const at = new Date(this.#clock.now()).toISOString();
    this.#batches = [{ action, by, at, outcomes }, ...this.recent()].slice(0, MAX_BATCHES);
    return (result) => {
      outcomes.set(keyOf(result), result);
      this.#onChange();
    };
  }

  /** Newest first. */
  recent(): readonly Batch[] {
    const oldestMs = this.#clock.now() - SHOWN_MS;
    this.#batches = this.#batches.filter(({ at }) => Date.parse(at) >= oldestMs);
    return this.#batches;
  }

  /** The last action on this transfer. */
  of(key: TransferKey): (ActResult & Pick<Batch, "action" | "by" | "at">) | undefined {
    const name = keyOf(key);
    const batch = this.recent().find(({ outcomes }) => outcomes.has(name));
    const outcome = batch?.outcomes.get(name);
    return batch === undefined || outcome === undefined ? undefined : { ...batch, ...outcome };
  }
}

/** "3 done, 1 needs attention, 2 in progress". */
export function summarize({ outcomes }: Batch): string {
  const count = (wanted: ActResult["result"]) =>
    [...outcomes.values()].filter(({ result }) => result === wanted).length;
  const parts = [
    `${count("fine")} done`,
    formatCount(count("attention"), "needs attention", "need attention"),
    `${count("refused")} refused`,
    `${count("pending")} in progress`,
  ];
  return parts.filter((part) => !part.startsWith("0 ")).join(", ");
}

/** Names a transfer, also in forms. */
export function keyOf({ mailbox, trackingId }: TransferKey): string {
  return JSON.stringify([mailbox, trackingId]);
}
