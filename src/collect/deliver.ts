/** Makes a finished folder visible: everything on the disk first, then one rename. */
import { chmod, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  durableStep,
  exists,
  faultOfDisk,
  makeFolderDurably,
  renameDurably,
  syncFile,
  syncFolder,
} from "../base/durable.ts";
import { formatManifest, formatSums, type Received } from "./manifest.ts";
import { MANIFEST, type Plan, SUMS } from "./plan.ts";
import type { Record } from "./record.ts";
import type { CollectTools, Source } from "./tools.ts";

const SYNCS_AT_ONCE = 8;

/** Adds manifest, sums and marker, sets modes, and has all of it on the disk. */
export async function finishContent(
  { handoff }: CollectTools,
  record: Record,
  plan: Plan,
  received: Received,
): Promise<void> {
  try {
    await writeFile(join(plan.content, MANIFEST), formatManifest(record.receipt, plan, received));
    await writeFile(join(plan.content, SUMS), formatSums(plan, received));
    if (handoff.marker !== undefined) await writeFile(join(plan.content, handoff.marker), "");
    const names = await readdir(plan.content);
    const finish = async (): Promise<void> => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await syncFile(join(plan.content, name), handoff.fileMode);
      }
    };
    await Promise.all(Array.from({ length: SYNCS_AT_ONCE }, finish));
    await chmod(plan.content, handoff.folderMode);
    await syncFolder(plan.content);
    await syncFolder(dirname(plan.content));
    durableStep("content synced");
  } catch (error) {
    throw faultOfDisk(error, plan.content);
  }
}

/**
 * Receipt `delivering`, one rename, receipt `delivered`. Safe to run again after a crash at any point: where the
 * staged folder is still there the rename did not happen, where it is not it did, whatever became of it since.
 */
export async function deliver(
  tools: CollectTools,
  { mailbox }: Source,
  record: Record,
  content: string,
  folder: string,
): Promise<void> {
  const { inbox, handoff, passwords } = tools;
  try {
    if (await exists(content)) {
      const free = await freeFolder(inbox.root, folder);
      const target = join(inbox.root, free);
      await makeFolderDurably(dirname(target), handoff.folderMode);
      if (record.receipt.state !== "delivering" || record.receipt.folder !== free) {
        await record.enter("delivering", { folder: free });
      }
      await renameDurably(content, target);
    }
    await record.enter("delivered");
    await rm(dirname(content), { recursive: true, force: true });
    await passwords.settled(mailbox, record.receipt.trackingId);
  } catch (error) {
    throw faultOfDisk(error, join(inbox.root, folder));
  }
}

/** The folder itself, or the first of `FOLDER-2`, `FOLDER-3` … that is not there: nothing is ever replaced. */
async function freeFolder(root: string, folder: string): Promise<string> {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? folder : `${folder}-${number}`;
    if (!(await exists(join(root, candidate)))) return candidate;
  }
}
