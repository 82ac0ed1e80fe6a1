/**
 * Receipts as files below the work folder, on the inbox's own file system.
 *
 * `open/NAME/FENCE.json` holds those that are not final, so that a start reads only what is unfinished;
 * `done/XX/NAME.json` holds the final ones, spread over 256 folders. Where both are there the higher fence counts, and
 * of equal ones the final one: it was written first, and what remains is a line in the journal and to take the other
 * away.
 */
import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import {
  clearTemporaries,
  createDurably,
  durableStep,
  exists,
  makeFolderDurably,
  replaceDurably,
} from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { isFinal, type Receipt, TRANSITIONS } from "../model/receipt.ts";
import { formatReceipt } from "./format.ts";
import { appendToJournal } from "./journal.ts";
import { nameOf, Places } from "./places.ts";
import type { ReceiptKey, Receipts } from "./port.ts";
import { fencesIn, findReceipt, readHighest, readReceipt } from "./reading.ts";
import { findSpent, forgetUnspent, noteSpent } from "./spent.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export interface ReceiptsOptions {
  /** Nobody else works on this inbox: what a crash left can be cleared. */
  readonly alone: boolean;
  /** Where several hosts share an inbox each writes a journal of its own: no file system would keep lines whole. */
  readonly host?: string;
  readonly nowMs?: number;
}

export async function openReceipts(work: string, options: ReceiptsOptions): Promise<Receipts> {
  const places = new Places(work);
  if (options.alone) await rm(places.newFolder, { recursive: true, force: true });
  const { openFolder, doneFolder, newFolder, journalFolder } = places;
  for (const folder of [openFolder, doneFolder, newFolder, journalFolder]) {
    await makeFolderDurably(folder, FOLDER_MODE);
  }
  await clearTemporaries(newFolder, options.nowMs ?? Date.now());
  const { alone, host } = options;
  const writer = alone || host === undefined ? undefined : host.replace(/[^A-Za-z0-9-]/g, "_");
  return new FileReceipts(places, writer);
}

class FileReceipts implements Receipts {
  readonly #places: Places;
  readonly #writer: string | undefined;

  constructor(places: Places, writer: string | undefined) {
    this.#places = places;
    this.#writer = writer;
  }

  async find(key: ReceiptKey): Promise<Receipt | undefined> {
    return findReceipt(this.#places, key);
  }

  async spentOn(trackingId: string): Promise<Receipt[]> {
    return findSpent(this.#places, trackingId);
  }

  async create(receipt: Receipt, previous: Receipt | undefined): Promise<boolean> {
    const first = { ...receipt, fence: previous === undefined ? 0 : previous.fence + 1 };
    checkStep(first, previous);
    await makeFolderDurably(this.#places.openFolderOf(first), FOLDER_MODE);
    if (!(await this.#isNew(this.#places.openPathOf(first), first))) return false;
    await this.#note(first);
    if (previous !== undefined) await this.#remove(this.#places.donePathOf(first));
    return true;
  }

  async claim(key: ReceiptKey, next: (current: Receipt) => Receipt): Promise<Receipt | undefined> {
    const current = await this.find(key);
    if (current === undefined || isFinal(current)) return undefined;
    const fence = current.fence + 1;
    let claimed = { ...next(current), fence };
    const path = this.#places.openPathOf(claimed);
    if (!(await this.#isNew(path, claimed))) throw lost(key);
    // Whoever held it may have written, and even finished, since it was read.
    const before = await readReceipt(this.#places.openPathOf(current));
    const done = await readReceipt(this.#places.donePathOf(key));
    if (done !== undefined && done.fence >= current.fence) {
      await this.#clearOpen(key);
      return undefined;
    }
    if (before !== undefined && formatReceipt(before) !== formatReceipt(current)) {
      claimed = { ...next(before), fence };
      await replaceDurably(path, formatReceipt(claimed), FILE_MODE, this.#places.newFolder);
    }
    checkStep(claimed, before ?? current);
    if (claimed.state !== (before ?? current).state) await this.#note(claimed);
    await this.#clearBelow(key, fence);
    return claimed;
  }

  async put(receipt: Receipt, previous: Receipt): Promise<void> {
    checkStep(receipt, previous);
    await noteSpent(this.#places, receipt, previous);
    if (isFinal(receipt)) return this.#settle(receipt, previous);
    const path = this.#places.openPathOf(receipt);
    // A folder that is gone was taken away by whoever settled it.
    if (!(await exists(this.#places.openFolderOf(receipt)))) throw lost(receipt);
    await replaceDurably(path, formatReceipt(receipt), FILE_MODE, this.#places.newFolder);
    await this.#demandClaim(receipt);
    if (previous.state !== receipt.state) await this.#note(receipt);
    await forgetUnspent(this.#places, receipt, previous);
  }

  async *open(onDamaged: (path: string, reason: string) => void): AsyncIterable<Receipt> {
    for (const name of await readdir(this.#places.openFolder)) {
      const folder = join(this.#places.openFolder, name);
      const receipt = await readHighest(folder).catch((error: unknown) => {
        onDamaged(folder, error instanceof Error ? error.message : String(error));
        return undefined;
      });
      const latest = receipt === undefined ? undefined : await this.find(receipt);
      // A crash came before the first receipt was in its folder.
      if (latest === undefined) await rmdir(folder).catch(() => {});
      if (latest === undefined) continue;
      if (!isFinal(latest)) {
        // An earlier version made no entry of what is spent.
        await noteSpent(this.#places, latest, undefined);
        yield latest;
      } else {
        // A crash came between the final receipt and what follows it: the line in the journal may be there twice.
        await this.#note(latest);
        await this.#clearOpen(latest);
      }
    }
  }

  async openNames(): Promise<string[]> {
    return readdir(this.#places.openFolder);
  }

  folderName(key: ReceiptKey): string {
    return nameOf(key);
  }

  /** The first one to say how it ended counts, but that it was delivered is true whoever says so. */
  async #settle(receipt: Receipt, previous: Receipt): Promise<void> {
    const path = this.#places.donePathOf(receipt);
    if (isFinal(previous)) await this.#demandEnd(receipt);
    else if (receipt.state !== "delivered") await this.#demandClaim(receipt);
    await makeFolderDurably(this.#places.doneFolderOf(receipt), FOLDER_MODE);
    if (!(await this.#isNew(path, receipt))) {
      const existing = await readReceipt(path);
      if (existing !== undefined && !replaces(receipt, existing, previous)) {
        if (receipt.state !== existing.state) throw lost(receipt);
        return this.#clearSettled(receipt, previous);
      }
      await replaceDurably(path, formatReceipt(receipt), FILE_MODE, this.#places.newFolder);
    }
    await this.#note(receipt);
    await this.#clearSettled(receipt, previous);
  }

  /** What was settled before has nothing open any more, unless an operator has just sent it back to the start. */
  async #clearSettled(receipt: Receipt, previous: Receipt): Promise<void> {
    if (isFinal(previous)) await this.#clearBelow(receipt, receipt.fence + 1);
    else await this.#clearOpen(receipt);
  }

  /** Gives the receipt this name, unless there is one. */
  async #isNew(path: string, receipt: Receipt): Promise<boolean> {
    try {
      await createDurably(path, (file) => file.writeFile(formatReceipt(receipt)), this.#places.newFolder);
      return true;
    } catch (error) {
      if (error instanceof Fault && error.code === "TARGET_EXISTS") return false;
      throw error;
    }
  }

  async #demandClaim(receipt: Receipt): Promise<void> {
    const fences = await fencesIn(this.#places.openFolderOf(receipt));
    if (fences.length === 0 || Math.max(...fences) > receipt.fence) throw lost(receipt);
  }

  /** Nobody has sent it back to the start. */
  async #demandEnd(receipt: Receipt): Promise<void> {
    const fences = await fencesIn(this.#places.openFolderOf(receipt));
    if (Math.max(-1, ...fences) > receipt.fence) throw lost(receipt);
  }

  async #clearBelow(key: ReceiptKey, fence: number): Promise<void> {
    for (const lower of await fencesIn(this.#places.openFolderOf(key))) {
      if (lower < fence) await rm(this.#places.openPathOf({ ...key, fence: lower }), { force: true });
    }
  }

  async #clearOpen(key: ReceiptKey): Promise<void> {
    await this.#remove(this.#places.openFolderOf(key));
  }

  async #remove(path: string): Promise<void> {
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
    durableStep("other receipt removed");
  }

  async #note(receipt: Receipt): Promise<void> {
    await appendToJournal(this.#places.journalFolder, receipt, this.#writer);
  }
}

/** A step from one end to another, one that was delivered after all, or one of a later claim. */
function replaces(receipt: Receipt, existing: Receipt, previous: Receipt): boolean {
  if (existing.state === previous.state && existing.fence === previous.fence) return true;
  if (existing.state === "delivered" || existing.state === "collected") return false;
  return receipt.state === "delivered" || existing.fence < receipt.fence;
}

function lost({ trackingId }: ReceiptKey): Fault {
  return new Fault("CLAIM_LOST", { detail: trackingId });
}

function checkStep(receipt: Receipt, previous: Receipt | undefined): void {
  const allowed = previous === undefined ? ["discovered"] : TRANSITIONS[previous.state];
  if (previous?.state === receipt.state || (allowed as readonly string[]).includes(receipt.state)) return;
  throw new Error(`a receipt cannot go from ${previous?.state ?? "nothing"} to ${receipt.state}`);
}
