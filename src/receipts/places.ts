/** Where receipts stand below the work folder. */
import { hash } from "node:crypto";
import { join } from "node:path";
import type { ReceiptKey } from "./port.ts";

export class Places {
  readonly openFolder: string;
  readonly doneFolder: string;
  /** For entries of those that have passwords spent. */
  readonly spentFolder: string;
  readonly journalFolder: string;
  /** For what has no name yet; emptied by whoever holds the inbox alone. */
  readonly newFolder: string;

  constructor(work: string) {
    this.openFolder = join(work, "receipts", "open");
    this.doneFolder = join(work, "receipts", "done");
    this.spentFolder = join(work, "receipts", "spent");
    this.newFolder = join(work, "receipts", "new");
    this.journalFolder = join(work, "journal");
  }

  /** Holds `FENCE.json`: the highest counts. */
  openFolderOf(key: ReceiptKey): string {
    return join(this.openFolder, nameOf(key));
  }

  openPathOf(key: ReceiptKey & { readonly fence: number }): string {
    return join(this.openFolderOf(key), `${key.fence}.json`);
  }

  doneFolderOf(key: ReceiptKey): string {
    return join(this.doneFolder, spreadOf(nameOf(key)));
  }

  donePathOf(key: ReceiptKey): string {
    return join(this.doneFolderOf(key), `${nameOf(key)}.json`);
  }
}

/** The folder, below the one of those that are final, for a receipt by its name. */
export function spreadOf(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1).slice(0, 2);
}

/** The tracking-id, as far as every file system can hold it, for people; the digest, to be unique. */
export function nameOf(key: ReceiptKey): string {
  const known = names.get(key);
  if (known !== undefined) return known;
  const readable = key.trackingId.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 60);
  const name = `${readable}.${digestOf(key).slice(0, 32)}`;
  names.set(key, name);
  return name;
}

/** Each is wanted many times, by the same receipt. */
const names = new WeakMap<ReceiptKey, string>();

function digestOf({ mailbox, trackingId }: ReceiptKey): string {
  return hash("sha256", `${mailbox}\0${trackingId}`, "hex");
}
