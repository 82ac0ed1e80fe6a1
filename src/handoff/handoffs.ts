/** The hand-offs: the outbox, the steps that follow each delivery, and the scanner that finds due steps. */
import { monotonicMs } from "../base/timers.ts";
import { roundKey } from "../model/outbox.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import { followingOf, type OutboxTools } from "./delivery.ts";
import { type Following, kindOf, needsDurability, newEntry, openSteps, untried } from "./entry.ts";
import { Failures, Outbox } from "./outbox.ts";
import type { Handoffs, HandoffTools } from "./port.ts";
import { Scanner } from "./scanner.ts";
import { Steps } from "./steps.ts";

/** Throws `DISK_FULL` or `DISK_REFUSED` if the outbox cannot be created. */
export async function openHandoffs(tools: HandoffTools): Promise<OpenHandoffs> {
  const failures = new Failures(tools);
  const outbox = new Outbox({ ...tools, onDamaged: (path) => failures.damaged(path) });
  await outbox.open(tools.clock.now());
  return new OpenHandoffs({ ...tools, outbox, failures });
}

export class OpenHandoffs implements Handoffs {
  readonly #tools: OutboxTools;
  readonly #steps: Steps;
  readonly #scanner: Scanner;

  constructor(tools: OutboxTools) {
    this.#tools = tools;
    this.#steps = new Steps(tools, (...result) => this.#scanner.note(...result));
    this.#scanner = new Scanner(tools, this.#steps);
  }

  async prepare(record: TransferRecord): Promise<void> {
    const { handoffOf, isClockRight, outbox } = this.#tools;
    const isDurable = needsDurability(handoffOf(record), record);
    await outbox.create(this.#keyOf(record), newEntry(record.steps ?? [], isClockRight()), isDurable);
  }

  placed(record: TransferRecord): void {
    this.#begin(this.#keyOf(record), followingOf(this.#tools, record));
  }

  async retry({ round: last, ...transfer }: TransferKey & { readonly round: number }): Promise<boolean> {
    const { ledger, outbox } = this.#tools;
    let isDone = true;
    for (let round = 1; round <= last; round++) {
      const key = this.#keyOf({ ...transfer, round });
      if ((await outbox.find(key)) === undefined) continue;
      const end = await ledger.readEnd(ledger.nameOf(transfer), round);
      const following = followingOf(this.#tools, end ?? transfer);
      if (await this.#tryReset(key, following)) this.#begin(key, following);
      else isDone = false;
    }
    return isDone;
  }

  /** Starts to scan the outbox periodically. */
  start(): void {
    this.#scanner.start();
  }

  /** Scans the outbox, and resolves when every step that was due at the call was tried. */
  async finish(): Promise<void> {
    // A pool may hold fewer steps than are due, so scans go on while steps are tried. A failed step is due only later.
    const byMs = monotonicMs();
    let [due, triedBefore] = [1, -1];
    while (due > 0 && this.#steps.tried > triedBefore) {
      triedBefore = this.#steps.tried;
      due = await this.#scanner.scan(byMs);
      await this.#steps.idle();
    }
  }

  /** How many entries had a failed step when last seen. */
  failing(): number {
    return this.#scanner.failing;
  }

  /** When the outbox is to be scanned next; `undefined` before `start`. */
  scanDueMs(): number | undefined {
    return this.#scanner.dueMs;
  }

  async close(): Promise<void> {
    await Promise.all([this.#scanner.close(), this.#steps.close()]);
    this.#tools.failures.outage.end();
  }

  #begin(key: string, { steps }: Following): void {
    for (const step of steps) this.#steps.add(key, step);
  }

  /** Stores open steps as if they were not tried yet. False if another process has the entry. */
  async #tryReset(key: string, following: Following): Promise<boolean> {
    const { outbox } = this.#tools;
    const isReset = await outbox.change(key, async () => {
      const stored = await outbox.take(key);
      if (stored === undefined) return true;
      const steps = openSteps(stored.entry, following);
      const entry = steps.length === 0 ? stored.entry : { ...stored.entry, ...untried(steps) };
      await outbox.save(key, stored, entry, kindOf(entry, following));
      return true;
    });
    return isReset === true;
  }

  #keyOf(of: TransferKey & { readonly round: number }): string {
    return roundKey({ name: this.#tools.ledger.nameOf(of), round: of.round });
  }
}
