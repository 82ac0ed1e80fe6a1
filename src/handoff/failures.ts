/** Reports what cannot be read or written: a damaged record once, and a failing disk until it works again. */
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { asFault } from "../base/faults.ts";
import { Outage } from "../base/outage.ts";
import type { Emit } from "../model/events.ts";
import { outboxIn } from "../model/outbox.ts";

/** How many damaged files are reported. */
const MAX_DAMAGED = 10_000;

/** The outage's key for all failures of scans. Each result that cannot be stored has its own key. */
export const SCAN = "scan";

export class Failures {
  readonly outage: Outage;
  readonly #folder: string;
  readonly #emit: Emit;
  readonly #damaged = new Set<string>();

  constructor({ work, clock, emit }: { readonly work: string; readonly clock: Clock; readonly emit: Emit }) {
    this.#folder = outboxIn(work);
    this.#emit = emit;
    this.outage = new Outage(clock, {
      began: (fault) => emit({ type: "handoffs-stuck", fault }),
      ended: (lastedMs) => emit({ type: "handoffs-resumed", stuckForMs: lastedMs }),
    });
  }

  /** The next scan tries again. Returns whether the disk is the cause: a damaged record concerns one delivery only. */
  failed(key: string, error: unknown): boolean {
    const fault = asFault(error);
    const isDamaged = fault.code === "RECORD_UNREADABLE";
    if (isDamaged) this.damaged(join(this.#folder, key), fault.message);
    else this.outage.add(SCAN, fault);
    return !isDamaged;
  }

  /** Reported once for each file. */
  damaged(path: string, reason = "not an outbox entry, or one of a newer version"): void {
    if (this.#damaged.has(path) || this.#damaged.size >= MAX_DAMAGED) return;
    this.#damaged.add(path);
    this.#emit({ type: "record-damaged", path, reason });
  }
}
