/** How receipts are written and taken away. Who may, and what counts, is decided elsewhere. */
import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import {
  appendDurably,
  createTextDurably,
  durableStep,
  faultOfDisk,
  linkDurably,
  removeFile,
  replaceDurably,
} from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { makeFolderDurably } from "../base/folders.ts";
import { systemCode } from "../base/system-code.ts";
import type { Receipt } from "../model/receipt.ts";
import { formatReceipt } from "./format.ts";
import { appendToJournal } from "./journal.ts";
import type { Places } from "./places.ts";
import type { ReceiptKey } from "./port.ts";
import { fencesIn, orIfMissing } from "./reading.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export class Writing {
  readonly #places: Places;
  /** Whose journal it is, where several write. */
  readonly #writer: string | undefined;
  /** Open receipts that could not be appended to: what stands at their end is not known. */
  readonly #unsure = new Set<string>();

  constructor(places: Places, writer: string | undefined) {
    this.#places = places;
    this.#writer = writer;
  }

  /** An open receipt, by its fence. False where there is one: somebody was faster. */
  async begin(receipt: Receipt): Promise<boolean> {
    return this.#isNew(this.#places.openPathOf(receipt), receipt);
  }

  async makeOpenFolder(key: ReceiptKey): Promise<void> {
    await makeFolderDurably(this.#places.openFolderOf(key), FOLDER_MODE);
  }

  /** To the open receipt of a claim, which only that claim writes to. Throws `CLAIM_LOST` where a later one took it away. */
  async append(receipt: Receipt): Promise<void> {
    const path = this.#places.openPathOf(receipt);
    const text = formatReceipt(receipt);
    try {
      if (this.#unsure.has(path)) await replaceDurably(path, text, FILE_MODE, this.#places.newFolder);
      else await appendDurably(path, text);
      this.#unsure.delete(path);
    } catch (error) {
      if (isMissing(error)) throw new Fault("CLAIM_LOST", { detail: receipt.trackingId });
      this.#unsure.add(path);
      throw faultOfDisk(error, path);
    }
  }

  /** A final receipt, unless there is one. */
  async end(receipt: Receipt): Promise<boolean> {
    await makeFolderDurably(this.#places.doneFolderOf(receipt), FOLDER_MODE);
    return this.#isNew(this.#places.donePathOf(receipt), receipt);
  }

  /** The same, where it was open until now: what its claim has appended to all along gets the name of the final one. */
  async endOpen(receipt: Receipt): Promise<boolean> {
    const path = this.#places.openPathOf(receipt);
    // With nothing but a last word in it, which does not count there, it would not be readable any more.
    if (this.#unsure.has(path)) return this.end(receipt);
    try {
      await this.append(receipt);
      await makeFolderDurably(this.#places.doneFolderOf(receipt), FOLDER_MODE);
      if (await linkDurably(path, this.#places.donePathOf(receipt))) return true;
    } catch (error) {
      if (error instanceof Fault && error.code === "TARGET_EXISTS") return false;
      // A later claim has taken the file away, before or after the last word: that was delivered is true all the same.
      const isGone = error instanceof Fault && (error.code === "CLAIM_LOST" || isMissing(error.cause));
      if (!isGone) throw error;
    }
    return this.end(receipt);
  }

  async replaceEnd(receipt: Receipt): Promise<void> {
    const path = this.#places.donePathOf(receipt);
    await replaceDurably(path, formatReceipt(receipt), FILE_MODE, this.#places.newFolder);
  }

  async removeEnd(key: ReceiptKey): Promise<void> {
    await removeFile(this.#places.donePathOf(key));
    durableStep("final receipt removed");
  }

  async removeOpen(receipt: Receipt): Promise<void> {
    await removeFile(this.#places.openPathOf(receipt));
  }

  /** Those with lower fences. */
  async clearBelow(key: ReceiptKey, fence: number): Promise<void> {
    for (const lower of await fencesIn(this.#places.openFolderOf(key))) {
      if (lower < fence) await removeFile(this.#places.openPathOf({ ...key, fence: lower }));
    }
  }

  async clearOpen(key: ReceiptKey): Promise<void> {
    const folder = this.#places.openFolderOf(key);
    for (const name of await readdir(folder).catch(orIfMissing<string[]>(folder, []))) {
      this.#unsure.delete(join(folder, name));
      await removeFile(join(folder, name));
    }
    await rmdir(folder).catch((error: unknown) => {
      // Who claims it at this moment finds out by itself that it is too late.
      if (!["ENOENT", "ENOTEMPTY"].includes(systemCode(error))) throw error;
    });
    durableStep("open receipts removed");
  }

  /** A line in the journal. */
  async note(receipt: Receipt): Promise<void> {
    await appendToJournal(this.#places.journalFolder, receipt, this.#writer);
  }

  async #isNew(path: string, receipt: Receipt): Promise<boolean> {
    try {
      await createTextDurably(path, formatReceipt(receipt), this.#places.newFolder);
      return true;
    } catch (error) {
      if (error instanceof Fault && error.code === "TARGET_EXISTS") return false;
      throw error;
    }
  }
}

function isMissing(error: unknown): boolean {
  return systemCode(error) === "ENOENT";
}
