/** Counts the deliveries that are not handed over completely, and lists the ones that need attention. */

import { exists } from "../base/durable.ts";
import type { HandoffSummary, HandoffTrouble } from "../model/handoff.ts";
import type { TransferRecord } from "../model/record.ts";
import { type Delivery, deliveryOf, eventFactsOf, followingOf } from "./delivery.ts";
import { type Entry, failedSteps } from "./entry.ts";
import { listEntries, outboxIn, parseKey, peekEntry } from "./peek.ts";
import type { HandoffTools } from "./port.ts";

/** How many failed deliveries are listed, and how many overdue ones. */
const MAX_TROUBLES = 500;

/** Grows entry by entry; its size is bounded. */
export class Summary implements HandoffSummary {
  readonly #tools: Pick<HandoffTools, "handoffOf">;
  readonly #failed: HandoffTrouble[] = [];
  readonly #overdue: HandoffTrouble[] = [];
  #oldestMs: number | undefined;
  #hasUnread = false;
  troubled = 0;
  waiting = 0;
  /** How many deliveries have a failed step. */
  failing = 0;

  constructor(tools: Pick<HandoffTools, "handoffOf">) {
    this.#tools = tools;
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

  /** Adds a delivery whose entry cannot be read. It may be older than the oldest one that can. */
  addUnreadable(): void {
    this.waiting++;
  }

  add(entry: Entry, delivery: Delivery): void {
    const isWaiting = entry.pickedUpAt === undefined;
    if (isWaiting) {
      this.waiting++;
      this.#oldestMs = Math.min(this.#oldestMs ?? Number.POSITIVE_INFINITY, Date.parse(delivery.deliveredAt));
    }
    const failed = failedSteps(entry, followingOf(this.#tools, delivery));
    const isOverdue = entry.reported && isWaiting;
    if (failed.length === 0 && !isOverdue) return;
    this.troubled++;
    if (failed.length > 0) this.failing++;
    const list = failed.length > 0 ? this.#failed : this.#overdue;
    if (list.length < MAX_TROUBLES) list.push({ ...eventFactsOf(delivery), failed, isOverdue });
  }
}

/**
 * For use without a daemon. Reads only the entries that may need attention, and counts the others by name. `readEnd`:
 * as in `HandoffTools`.
 */
export async function peekHandoffs(
  work: string,
  handoffOf: HandoffTools["handoffOf"],
  readEnd: (name: string, round: number) => Promise<TransferRecord | undefined>,
): Promise<HandoffSummary> {
  const summary = new Summary({ handoffOf });
  if (!(await exists(outboxIn(work)))) return summary;
  for await (const { key, kind } of listEntries(work)) {
    if (kind === "wait") summary.addUnread();
    if (kind !== "json") continue;
    const { name, round } = parseKey(key);
    const entry = await peekEntry(work, key);
    // `inlet doctor` reports damaged records.
    const end = entry && (await readEnd(name, round).catch(() => undefined));
    if (entry !== undefined && end !== undefined) summary.add(entry, deliveryOf(key, end, entry));
  }
  return summary;
}
