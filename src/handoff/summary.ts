/** What is wrong with how many hand-offs, and how long the oldest folder has waited for somebody who collects it. */
import { exists } from "../base/durable.ts";
import type { HandoffSummary, HandoffTrouble } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import { deliveredOf, type Entry, failedSteps } from "./entry.ts";
import { folderIn, Outbox } from "./outbox.ts";

/** Of those that failed, and of those that nobody collects. */
const MOST_TROUBLES = 500;

/** Grows while all of them are looked over, and stays small. */
export class Summary implements HandoffSummary {
  readonly #handoff: Handoff;
  readonly #failed: HandoffTrouble[] = [];
  readonly #overdue: HandoffTrouble[] = [];
  troubled = 0;
  uncollected = 0;
  oldestMs: number | undefined;

  constructor(handoff: Handoff) {
    this.#handoff = handoff;
  }

  get troubles(): readonly HandoffTrouble[] {
    return [...this.#failed, ...this.#overdue];
  }

  add(entry: Entry | undefined): void {
    if (entry === undefined) return;
    if (entry.collectedAt === undefined) {
      this.uncollected++;
      this.oldestMs = Math.min(this.oldestMs ?? Number.POSITIVE_INFINITY, Date.parse(entry.deliveredAt));
    }
    const failed = failedSteps(entry, this.#handoff);
    const isOverdue = entry.reported && entry.collectedAt === undefined;
    if (failed.length === 0 && !isOverdue) return;
    this.troubled++;
    const known = failed.length > 0 ? this.#failed : this.#overdue;
    if (known.length < MOST_TROUBLES) known.push({ ...deliveredOf(entry), failed, isOverdue });
  }
}

/** For whoever looks from outside: all of them, whose ever they are, as they were left. */
export async function peekHandoffs(work: string, handoff: Handoff): Promise<HandoffSummary> {
  const outbox = new Outbox(folderIn(work), "", () => {});
  const summary = new Summary(handoff);
  if (!(await exists(folderIn(work)))) return summary;
  for await (const { name, owner } of outbox.list()) summary.add(await outbox.read(name, owner));
  return summary;
}
