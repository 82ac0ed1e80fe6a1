/** Makes a finished folder visible: everything on the disk first, then one rename. */
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  durableStep,
  exists,
  faultOfDisk,
  renameDurably,
  syncFolder,
  writeFinished,
} from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { makeSharedFolderDurably, setFolderMode } from "../base/folders.ts";
import { allDone } from "../base/parallel.ts";
import type { Receipt } from "../model/receipt.ts";
import { formatManifest, formatSums, type Received } from "./manifest.ts";
import { CONTENT, MANIFEST, type Plan, SUMS } from "./plan.ts";
import type { Record } from "./record.ts";
import type { CollectTools, StagedSource } from "./tools.ts";

/** `KEY/FENCE-MEMBER/content`. */
const LEVELS_STAGED = 3;

/** Adds manifest, sums and marker, and has them on the disk, and the folder with its mode: each file was before. */
export async function finishContent(
  { handoff }: CollectTools,
  record: Record,
  plan: Plan,
  received: Received,
): Promise<void> {
  try {
    const texts: (readonly [name: string, text: string])[] = [
      [MANIFEST, formatManifest(record.receipt, plan, received)],
      [SUMS, formatSums(plan, received)],
    ];
    if (handoff.marker !== undefined) texts.push([handoff.marker, ""]);
    const add = (name: string, text: string) =>
      writeFinished(join(plan.content, name), text, handoff.fileMode);
    await allDone(texts.map(([name, text]) => add(name, text)));
    await setFolderMode(plan.content, handoff.folderMode);
    await syncFolders(plan.content);
    durableStep("content synced");
  } catch (error) {
    throw faultOfDisk(error, plan.content);
  }
}

/** The folder and those above it, up to the one of all that is staged: each may be new. */
async function syncFolders(content: string): Promise<void> {
  const folders = [content];
  for (let above = dirname(content); folders.length <= LEVELS_STAGED; above = dirname(above))
    folders.push(above);
  await allDone(folders.map(syncFolder));
}

/** What was never claimed before was never quarantined, and not half removed from there either. */
const FIRST_CLAIM = 1;

/** What is delivered: where to, what its manifest says, and which name in it is free for a consumer. */
type Target = Required<Pick<Receipt, "verified" | "acknowledgement">> & { readonly folder: string };

/** Receipt `delivering`, one rename, receipt `delivered`. Throws `CLAIM_LOST` where somebody else has the content now. */
export async function deliver(
  tools: CollectTools,
  source: StagedSource,
  record: Record,
  { folder, ...facts }: Target,
): Promise<void> {
  const { inbox, handoff } = tools;
  const content = join(source.stage.folder, CONTENT);
  try {
    const free = await freeFolder(inbox.root, folder);
    const target = join(inbox.root, free);
    await makeSharedFolderDurably(dirname(target), handoff.folderMode);
    if (record.receipt.state !== "delivering" || record.receipt.folder !== free) {
      await record.enter("delivering", { ...facts, folder: free });
    }
    await renameDurably(content, target).catch(async (error: unknown) => {
      const isRename = error instanceof Error && "syscall" in error && error.syscall === "rename";
      if (!isRename || (await exists(content))) throw error;
      throw new Fault("CLAIM_LOST", { detail: record.receipt.trackingId });
    });
    await finish(tools, source, record, false);
  } catch (error) {
    throw faultOfDisk(error, join(inbox.root, folder));
  }
}

/**
 * After a crash at any point, or from one that has lost its claim: where the staged folder is still there the rename
 * did not happen, and now nobody else can do it; where it is not it did, whatever became of it since.
 */
export async function resumeDelivery(
  tools: CollectTools,
  source: StagedSource,
  record: Record,
  target: Target,
): Promise<void> {
  if (await exists(join(source.stage.folder, CONTENT))) return deliver(tools, source, record, target);
  await finish(tools, source, record, true);
}

/** What follows is on the disk before the receipt says that there is nothing left to do. */
async function finish(
  { passwords, inbox, handoffs }: CollectTools,
  { stage, mailbox }: StagedSource,
  record: Record,
  isResumed: boolean,
): Promise<void> {
  await handoffs.note(record.receipt, isResumed);
  const kept = join(inbox.quarantine, record.key);
  if (record.receipt.fence > FIRST_CLAIM || (await exists(kept))) await clearQuarantine(kept);
  await record.enter("delivered");
  handoffs.begin(record.receipt);
  await stage.clear();
  await passwords.settled(mailbox, record.receipt.trackingId);
}

/** Where it was before an operator vouched for it: nobody looks for it there any more after the receipt. */
async function clearQuarantine(kept: string): Promise<void> {
  await rm(kept, { recursive: true, force: true });
  await syncFolder(dirname(kept));
}

/** The folder itself, or the first of `FOLDER-2`, `FOLDER-3` … that is not there: nothing is ever replaced. */
async function freeFolder(root: string, folder: string): Promise<string> {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? folder : `${folder}-${number}`;
    if (!(await exists(join(root, candidate)))) return candidate;
  }
}
