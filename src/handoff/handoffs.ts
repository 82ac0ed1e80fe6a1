/** The hand-offs: the outbox, the steps that follow each delivery, and the scanner that finds due steps. */
import { type Entry, roundKey } from "../model/outbox.ts";
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
    const { handoffOf, ledger, outbox } = this.#tools;
    const key = roundKey({ name: ledger.nameOf(record), round: record.round });
    await outbox.create(key, newEntry(record.steps ?? []), needsDurability(handoffOf(record), record));
  }

  placed(record: TransferRecord): void {
    const { ledger } = this.#tools;
    const key = roundKey({ name: ledger.nameOf(record), round: record.round });
    this.#begin(key, followingOf(this.#tools, record));
  }

  async retry({ round, ...transfer }: TransferKey & { readonly round: number }): Promise<boolean> {
    const { ledger, outbox } = this.#tools;
    const name = ledger.nameOf(transfer);
    let isDone = true;
    for (let each = 1; each <= round; each++) {
      const key = roundKey({ name, round: each });
      if ((await outbox.find(key)) === undefined) continue;
      const following = followingOf(this.#tools, (await ledger.readEnd(name, each)) ?? transfer);
      const isChanged = await this.#change(key, following, (entry) => {
        const steps = openSteps(entry, following);
        return steps.length === 0 ? entry : { ...entry, ...untried(steps) };
      });
      if (isChanged) this.#begin(key, following);
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
    const byMs = this.#tools.clock.now();
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

  /** False if another process has the entry. */
  async #change(key: string, following: Following, change: (entry: Entry) => Entry): Promise<boolean> {
    const { outbox } = this.#tools;
    const isChanged = await outbox.change(key, async () => {
      const stored = await outbox.take(key);
      if (stored === undefined) return true;
      const entry = change(stored.entry);
      await outbox.save(key, stored, entry, kindOf(entry, following));
      return true;
    });
    return isChanged === true;
  }
}
