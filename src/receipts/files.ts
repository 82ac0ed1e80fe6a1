/**
 * Receipts as files below the work folder, on the inbox's own file system.
 *
 * `open/NAME/FENCE.json` holds those that are not final, so that a start reads only what is unfinished; each claim has
 * one of its own, and appends to it. `done/XX/NAME.json` holds the final ones, spread over 256 folders: it is the file of
 * the claim that settled it, under another name. Where both are there the higher fence counts, and of equal ones the
 * final one: what remains is a line in the journal and to take the other away.
 */
import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { clearTemporaries, exists } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { makeFolderDurably } from "../base/folders.ts";
import { isFinal, type Receipt, TRANSITIONS } from "../model/receipt.ts";
import { formatReceipt } from "./format.ts";
import { nameOf, Places } from "./places.ts";
import type { ReceiptKey, Receipts } from "./port.ts";
import { fencesIn, findReceipt, readHighest, readOpenReceipt, readReceipt } from "./reading.ts";
import { findSpent, forgetUnspent, noteSpent } from "./spent.ts";
import { Writing } from "./writing.ts";

const FOLDER_MODE = 0o700;

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
  return new FileReceipts(places, new Writing(places, writer));
}

class FileReceipts implements Receipts {
  readonly #places: Places;
  readonly #writing: Writing;

  constructor(places: Places, writing: Writing) {
    this.#places = places;
    this.#writing = writing;
  }

  async find(key: ReceiptKey): Promise<Receipt | undefined> {
    return findReceipt(this.#places, key);
  }

  async spentOn(key: ReceiptKey): Promise<Receipt[]> {
    return findSpent(this.#places, key);
  }

  async create(receipt: Receipt, previous: Receipt | undefined): Promise<boolean> {
    const first = { ...receipt, fence: previous === undefined ? 0 : previous.fence + 1 };
    checkStep(first, previous);
    await this.#writing.makeOpenFolder(first);
    if (!(await this.#writing.begin(first))) return false;
    await this.#writing.note(first);
    if (previous !== undefined) await this.#writing.removeEnd(first);
    return true;
  }

  async claim(found: Receipt, next: (current: Receipt) => Receipt): Promise<Receipt | undefined> {
    if (isFinal(found)) return undefined;
    const fence = found.fence + 1;
    let claimed = { ...next(found), fence };
    const isClaimed = await this.#writing.begin(claimed).catch(async (error: unknown) => {
      if (await exists(this.#places.openFolderOf(found))) throw error;
      return undefined;
    });
    // Without its folder, it was settled.
    if (isClaimed === undefined) return undefined;
    if (!isClaimed) throw lost(found);
    // Several may have claimed it since it was found, and taken lower ones away.
    await this.#demandClaim(claimed);
    // Whoever held it may have written, and even finished, since it was read.
    const before = await readOpenReceipt(this.#places.openPathOf(found));
    const done = await readReceipt(this.#places.donePathOf(found));
    if (done !== undefined && done.fence >= found.fence) {
      await this.#writing.clearOpen(found);
      return undefined;
    }
    if (before !== undefined && formatReceipt(before) !== formatReceipt(found)) {
      claimed = { ...next(before), fence };
      await this.#writing.append(claimed);
    }
    checkStep(claimed, before ?? found);
    if (claimed.state !== (before ?? found).state) await this.#writing.note(claimed);
    // Others that a crash left go when it is settled.
    await this.#writing.removeOpen(found);
    return claimed;
  }

  async put(receipt: Receipt, previous: Receipt): Promise<void> {
    checkStep(receipt, previous);
    await noteSpent(this.#places, receipt, previous);
    if (isFinal(receipt)) return this.#settle(receipt, previous);
    await this.#writing.append(receipt);
    await this.#demandClaim(receipt);
    if (previous.state !== receipt.state) await this.#writing.note(receipt);
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
        await this.#writing.note(latest);
        await this.#writing.clearOpen(latest);
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
    if (isFinal(previous)) await this.#demandEnd(receipt);
    else if (receipt.state !== "delivered") await this.#demandClaim(receipt);
    const isFirst = await (isFinal(previous) ? this.#writing.end(receipt) : this.#writing.endOpen(receipt));
    const existing = isFirst ? undefined : await readReceipt(this.#places.donePathOf(receipt));
    const stays = existing !== undefined && !replaces(receipt, existing, previous);
    if (stays && receipt.state !== existing.state) throw lost(receipt);
    if (!isFirst && !stays) await this.#writing.replaceEnd(receipt);
    if (!stays) await this.#writing.note(receipt);
    // What was settled before has nothing open any more, unless an operator has just sent it back to the start.
    if (isFinal(previous)) await this.#writing.clearBelow(receipt, receipt.fence + 1);
    else await this.#writing.clearOpen(receipt);
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
