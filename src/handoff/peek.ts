/** Reads the outbox without changing it: what scans count, and what commands need without a daemon. */

import { systemDisk, tryRead } from "../base/disk.ts";
import { exists } from "../base/durable.ts";
import { type HandoffStep, type HandoffSummary, type HandoffTrouble, STEPS } from "../model/handoff.ts";
import {
  type Entry,
  entryPath,
  outboxIn,
  parseEntry,
  parseRoundKey,
  roundKey,
  type StepState,
} from "../model/outbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { type Delivery, deliveryOf, followingOf } from "./delivery.ts";
import { failedSteps } from "./entry.ts";
import { listEntries } from "./outbox.ts";
import type { HandoffTools } from "./port.ts";

/** How many failed deliveries are listed, and how many overdue ones. */
const MAX_TROUBLES = 500;

/** Counts the deliveries that are not handed over completely, entry by entry; its size is bounded. */
export class Summary implements HandoffSummary {
  readonly #tools: Pick<HandoffTools, "handoffOf">;
  /** By the entry's key. */
  readonly #failed = new Map<string, HandoffTrouble>();
  readonly #overdue = new Map<string, HandoffTrouble>();
  /** Deliveries that are only counted. */
  readonly #unlisted = { failed: 0, overdue: 0 };
  oldestMs: number | undefined;
  waiting = 0;

  constructor(tools: Pick<HandoffTools, "handoffOf">) {
    this.#tools = tools;
  }

  get troubles(): readonly HandoffTrouble[] {
    return [...this.#failed.values(), ...this.#overdue.values()];
  }

  get troubled(): number {
    return this.failing + this.#overdue.size + this.#unlisted.overdue;
  }

  /** How many deliveries have a failed step. */
  get failing(): number {
    return this.#failed.size + this.#unlisted.failed;
  }

  add(key: string, entry: Entry, delivery: Delivery): void {
    if (entry.pickedUpAt === undefined) {
      this.waiting++;
      this.oldestMs = Math.min(this.oldestMs ?? Number.POSITIVE_INFINITY, Date.parse(delivery.deliveredAt));
    }
    const unlisted = this.note(key, entry, delivery);
    if (unlisted !== undefined) this.#unlisted[unlisted]++;
  }

  /** The entry has changed. Returns the kind of a trouble that is not listed, because there are too many. */
  note(key: string, entry: Entry, delivery: Delivery): "failed" | "overdue" | undefined {
    this.#failed.delete(key);
    this.#overdue.delete(key);
    const failed = failedSteps(entry, followingOf(this.#tools, delivery));
    const isOverdue = entry.reported && entry.pickedUpAt === undefined;
    const problem = entry.pickedUpAt === undefined ? entry.problem : undefined;
    if (failed.length === 0 && !isOverdue && problem === undefined) return undefined;
    const list = failed.length > 0 ? this.#failed : this.#overdue;
    if (list.size >= MAX_TROUBLES) return failed.length > 0 ? "failed" : "overdue";
    list.set(key, { ...delivery, failed, isOverdue, problem });
    return undefined;
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
  let unread = 0;
  for await (const { key, kind } of listEntries(work)) {
    if (kind === "wait") unread++;
    if (kind !== "json") continue;
    const { name, round } = parseRoundKey(key);
    const entry = await peekEntry(work, key);
    // `inlet doctor` reports damaged records.
    const end = entry && (await readEnd(name, round).catch(() => undefined));
    if (entry !== undefined && end !== undefined) summary.add(key, entry, deliveryOf(key, end));
  }
  summary.waiting += unread;
  if (unread > 0) summary.oldestMs = undefined;
  return summary;
}

export type PeekedStep = StepState & { readonly step: HandoffStep };

/** The steps of a transfer's deliveries in these rounds. Reads only entries that may have an open step. */
export async function peekSteps(
  work: string,
  name: string,
  first: number,
  last: number,
): Promise<PeekedStep[]> {
  const found: PeekedStep[] = [];
  for (let round = first; round <= last; round++) {
    const entry = await peekEntry(work, roundKey({ name, round }));
    for (const step of STEPS) {
      const state = entry?.[step];
      if (state !== undefined) found.push({ step, ...state });
    }
  }
  return found;
}

/** The entry, if it may have an open step; `undefined` otherwise, and if it is damaged. */
async function peekEntry(work: string, key: string): Promise<Entry | undefined> {
  const text = await tryRead(systemDisk, entryPath(work, key, "json"));
  return text === undefined ? undefined : parseEntry(text, "json");
}
