/** Opens the hand-offs: the outbox, the steps that follow each delivery, and the scanner that finds due steps. */
import { join } from "node:path";
import { asFault } from "../base/faults.ts";
import { Outage } from "../base/outage.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import { keyOf } from "./delivery.ts";
import {
  type Entry,
  type Following,
  kindOf,
  needsDurability,
  newEntry,
  openSteps,
  untried,
} from "./entry.ts";
import { Outbox } from "./outbox.ts";
import { outboxIn } from "./peek.ts";
import type { OpenHandoffs } from "./port.ts";
import { Scanner } from "./scanner.ts";
import { Steps } from "./steps.ts";
import { followingOf, type HandoffTools } from "./tools.ts";

/** How many damaged files are reported. */
const MAX_DAMAGED = 10_000;

/** The outage's key for all failures of scans and visits. Each result that cannot be stored has its own key. */
const SCAN = "scan";

/** Throws `DISK_FULL` or `DISK_REFUSED` if the outbox cannot be created. */
export async function openHandoffs(tools: HandoffTools): Promise<OpenHandoffs> {
  const handoffs = new FileHandoffs(tools);
  await handoffs.open();
  return handoffs;
}

class FileHandoffs implements OpenHandoffs {
  readonly #tools: HandoffTools;
  readonly #outbox: Outbox;
  readonly #steps: Steps;
  readonly #scanner: Scanner;
  readonly #outage: Outage;
  readonly #damaged = new Set<string>();
  /** How many attempts were made. */
  #tried = 0;

  constructor(tools: HandoffTools) {
    const { work, isAlone, clock, emit } = tools;
    this.#tools = tools;
    this.#outage = new Outage(clock, {
      began: (fault) => emit({ type: "handoffs-stuck", fault }),
      ended: (lastedMs) => emit({ type: "handoffs-resumed", stuckForMs: lastedMs }),
    });
    this.#outbox = new Outbox({
      work,
      isAlone,
      finishedPath: (name, round) => tools.finishedPath(name, round),
      onChanged: (key) => this.#scanner.noteChanged(key),
      onDamaged: (path) => this.#reportDamaged(path, "not an outbox entry, or one of a newer version"),
    });
    this.#scanner = new Scanner(tools, this.#outbox, {
      due: (key, step) => this.#steps.add(key, step),
      failed: (key, error) => this.#failed(key, error),
      succeeded: () => this.#outage.clear(SCAN),
    });
    this.#steps = new Steps(tools, this.#outbox, {
      tried: (key, entry, delivery) => {
        this.#tried++;
        this.#scanner.visitSoon(key, entry, delivery);
      },
      readFailed: (key, error) => void this.#failed(key, error),
      writeFailed: (what, fault) => this.#outage.add(what, fault),
      writeSucceeded: (what) => this.#outage.clear(what),
    });
  }

  async open(): Promise<void> {
    await this.#outbox.open(this.#tools.clock.now());
  }

  async prepare(record: TransferRecord): Promise<void> {
    const handoff = this.#tools.handoffOf(record);
    const key = keyOf(this.#tools.ledger.nameOf(record), record.round);
    const { steps = [] } = record;
    await this.#outbox.create(key, newEntry(steps), needsDurability(handoff, record));
    if (steps.includes("command")) this.#steps.noteNoOrphans(key);
  }

  async placed(record: TransferRecord, wanted?: string): Promise<void> {
    const { ledger } = this.#tools;
    const { folder, round } = record;
    const name = ledger.nameOf(record);
    const key = keyOf(name, round);
    const following = followingOf(this.#tools, record);
    try {
      const recorded = wanted ?? (await ledger.readEnd(name, round))?.folder;
      if (folder !== undefined && folder !== recorded)
        await this.#change(key, following, (entry) => ({ ...entry, folder }));
      // After a crash, only the entry knows a folder that got another name than its record says.
      else if (wanted !== undefined && following.steps.length === 0) this.#scanner.notePlaced(key, record);
    } catch (error) {
      this.#failed(key, error);
    }
    this.#begin(key, following);
  }

  async retry({ round, ...transfer }: TransferKey & { readonly round: number }): Promise<boolean> {
    const { ledger } = this.#tools;
    const name = ledger.nameOf(transfer);
    let isDone = true;
    for (let each = 1; each <= round; each++) {
      const key = keyOf(name, each);
      if ((await this.#outbox.find(key)) === undefined) continue;
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

  start(): void {
    this.#scanner.start();
  }

  async finish(): Promise<void> {
    // A pool may hold fewer steps than are due, so scans go on while steps are tried. A failed step is due only later.
    const byMs = this.#tools.clock.now();
    let [due, triedBefore] = [1, -1];
    while (due > 0 && this.#tried > triedBefore) {
      triedBefore = this.#tried;
      due = await this.#scanner.scan(byMs);
      await this.#steps.idle();
    }
  }

  failing(): number {
    return this.#scanner.failing();
  }

  scanDueMs(): number | undefined {
    return this.#scanner.dueMs;
  }

  async close(): Promise<void> {
    const scanned = this.#scanner.close();
    await this.#steps.close();
    await scanned;
    // The last steps may have started visits.
    await this.#scanner.close();
    this.#outage.end();
  }

  #begin(key: string, { steps }: Following): void {
    for (const step of steps) this.#steps.add(key, step);
  }

  /** False if another process has the entry. */
  async #change(key: string, following: Following, change: (entry: Entry) => Entry): Promise<boolean> {
    const isChanged = await this.#outbox.change(key, async () => {
      const stored = await this.#outbox.take(key);
      if (stored === undefined) return true;
      const entry = change(stored.entry);
      await this.#outbox.save(key, stored, entry, kindOf(entry, following));
      return true;
    });
    return isChanged === true;
  }

  /** Returns whether the disk is the cause: a damaged record concerns one delivery only. */
  #failed(key: string, error: unknown): boolean {
    const fault = asFault(error);
    const isDamaged = fault.code === "RECORD_UNREADABLE";
    if (isDamaged) this.#reportDamaged(join(outboxIn(this.#tools.work), key), fault.message);
    else this.#outage.add(SCAN, fault);
    return !isDamaged;
  }

  /** Once for each file. */
  #reportDamaged(path: string, reason: string): void {
    if (this.#damaged.has(path) || this.#damaged.size >= MAX_DAMAGED) return;
    this.#damaged.add(path);
    this.#tools.emit({ type: "record-damaged", path, reason });
  }
}
