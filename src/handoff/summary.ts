/** Counts the deliveries that are not handed over completely, and lists the ones that need attention. */
import { exists } from "../base/durable.ts";
import type { HandoffSummary, HandoffTrouble } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { type Delivery, deliveredOf, deliveryOf, parseKey } from "./delivery.ts";
import { type Entry, failedSteps } from "./entry.ts";
import { listEntries, outboxIn, peekEntry } from "./peek.ts";

/** How many failed deliveries are listed, and how many overdue ones. */
const MAX_TROUBLES = 500;

/** Grows entry by entry; its size is bounded. */
export class Summary implements HandoffSummary {
  readonly #handoff: Handoff;
  readonly #failed: HandoffTrouble[] = [];
  readonly #overdue: HandoffTrouble[] = [];
  #oldestMs: number | undefined;
  #hasUnread = false;
  troubled = 0;
  waiting = 0;

  constructor(handoff: Handoff) {
    this.#handoff = handoff;
  }

  get oldestMs(): number | undefined {
    return this.#hasUnread ? undefined : this.#oldestMs;
  }

  get troubles(): readonly HandoffTrouble[] {
    return [...this.#failed, ...this.#overdue];
  }

  /** Adds a waiting delivery whose entry was not read. */
  addUnread(): void {
    this.waiting++;
    this.#hasUnread = true;
  }

  add(entry: Entry, delivery: Delivery): void {
    const isWaiting = entry.pickedUpAt === undefined;
    if (isWaiting) {
      this.waiting++;
      this.#oldestMs = Math.min(this.#oldestMs ?? Number.POSITIVE_INFINITY, Date.parse(delivery.deliveredAt));
    }
    const failed = failedSteps(entry, this.#handoff);
    const isOverdue = entry.reported && isWaiting;
    if (failed.length === 0 && !isOverdue) return;
    this.troubled++;
    const known = failed.length > 0 ? this.#failed : this.#overdue;
    if (known.length < MAX_TROUBLES) known.push({ ...deliveredOf(delivery), failed, isOverdue });
  }
}

/**
 * For use without a daemon. Reads only the entries that may need attention, and counts the others by name. `readEnd`:
 * as in `HandoffTools`.
 */
export async function peekHandoffs(
  work: string,
  handoff: Handoff,
  readEnd: (name: string, round: number) => Promise<TransferRecord | undefined>,
): Promise<HandoffSummary> {
  const summary = new Summary(handoff);
  if (!(await exists(outboxIn(work)))) return summary;
  for await (const { key, kind } of listEntries(work)) {
    if (kind === "wait") summary.addUnread();
    if (kind !== "json") continue;
    const { name, round } = parseKey(key);
    const entry = await peekEntry(work, key);
    const end = entry && (await readEnd(name, round).catch(() => undefined));
    if (entry !== undefined && end !== undefined) summary.add(entry, deliveryOf(key, end, entry.folder));
  }
  return summary;
}
