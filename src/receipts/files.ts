/**
 * Receipts as files below the work folder, on the inbox's own file system.
 *
 * `open/NAME.json` holds those that are not final, so that a start reads only what is unfinished;
 * `done/XX/NAME.json` holds the final ones, spread over 256 folders. Where a crash left both, the final one counts:
 * it was written first, and what remains is a line in the journal and to take the other away.
 */
import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { durableStep, makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { isFinal, type Receipt, TRANSITIONS } from "../model/receipt.ts";
import { formatReceipt, parseReceipt } from "./format.ts";
import { appendToJournal } from "./journal.ts";
import type { ReceiptKey, Receipts } from "./port.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export async function openReceipts(work: string): Promise<Receipts> {
  const openFolder = join(work, "receipts", "open");
  const doneFolder = join(work, "receipts", "done");
  const journalFolder = join(work, "journal");
  const temporaryFolder = join(work, "receipts", "new");
  await rm(temporaryFolder, { recursive: true, force: true });
  for (const folder of [openFolder, doneFolder, journalFolder, temporaryFolder]) {
    await makeFolderDurably(folder, FOLDER_MODE);
  }
  const pathsOf = (key: ReceiptKey) => {
    const name = nameOf(key);
    return {
      openPath: join(openFolder, `${name}.json`),
      shard: join(doneFolder, digestOf(key).slice(0, 2)),
      name,
    };
  };

  const find = async (key: ReceiptKey) => {
    const { openPath, shard, name } = pathsOf(key);
    // In this order: one that becomes final between the two is found by the second, and never by neither.
    const open = await read(openPath);
    return (await read(join(shard, `${name}.json`))) ?? open;
  };

  /** A crash came between the final receipt and what follows it: the line in the journal may be there twice. */
  const finish = async (receipt: Receipt, leftOver: string) => {
    await appendToJournal(journalFolder, receipt);
    await rm(leftOver, { force: true });
  };

  return {
    find,
    async put(receipt, previous) {
      checkStep(receipt, previous);
      const { openPath, shard, name } = pathsOf(receipt);
      const donePath = join(shard, `${name}.json`);
      if (isFinal(receipt)) await makeFolderDurably(shard, FOLDER_MODE);
      const [path, other] = isFinal(receipt) ? [donePath, openPath] : [openPath, donePath];
      await replaceDurably(path, formatReceipt(receipt), FILE_MODE, temporaryFolder);
      if (previous?.state !== receipt.state) await appendToJournal(journalFolder, receipt);
      if (previous !== undefined && isFinal(previous) !== isFinal(receipt)) {
        await rm(other, { force: true });
        durableStep("other receipt removed");
      }
    },
    async *open(onDamaged) {
      for (const file of await readdir(openFolder)) {
        if (!file.endsWith(".json")) continue;
        const receipt = await read(join(openFolder, file)).catch((error: unknown) => {
          onDamaged(join(openFolder, file), error instanceof Error ? error.message : String(error));
          return undefined;
        });
        const latest = receipt === undefined ? undefined : await find(receipt);
        if (latest === undefined) continue;
        if (isFinal(latest)) await finish(latest, join(openFolder, file));
        else yield latest;
      }
    },
    folderName: nameOf,
    async close() {},
  };
}

/** The tracking-id, as far as every file system can hold it, for people; the digest, to be unique. */
function nameOf(key: ReceiptKey): string {
  const readable = key.trackingId.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 60);
  return `${readable}.${digestOf(key).slice(0, 32)}`;
}

function digestOf({ mailbox, trackingId }: ReceiptKey): string {
  return createHash("sha256").update(`${mailbox}\0${trackingId}`).digest("hex");
}

async function read(path: string): Promise<Receipt | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw new Fault("RECEIPT_UNREADABLE", { detail: path, cause });
  }
  return parseReceipt(text, path);
}

function checkStep(receipt: Receipt, previous: Receipt | undefined): void {
  const allowed = previous === undefined ? ["discovered"] : TRANSITIONS[previous.state];
  if (previous?.state === receipt.state || (allowed as readonly string[]).includes(receipt.state)) return;
  throw new Error(`a receipt cannot go from ${previous?.state ?? "nothing"} to ${receipt.state}`);
}
