/** Where a transfer goes that we will not vouch for: what was received of it, and a file that says why. */
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { faultOfDisk, renameDurably, syncFile, syncFolder } from "../base/durable.ts";
import { describeFault, type Fault } from "../base/faults.ts";
import type { Record } from "./record.ts";
import type { CollectTools, StagedSource } from "./tools.ts";

export async function quarantine(
  { inbox, passwords, clock }: CollectTools,
  { mailbox, stage }: StagedSource,
  record: Record,
  fault: Fault,
): Promise<void> {
  const kept = join(inbox.quarantine, record.key);
  const { trackingId, sender } = record.receipt;
  try {
    const reason = {
      at: new Date(clock.now()).toISOString(),
      mailbox: mailbox.name,
      trackingId,
      sender,
      code: fault.code,
      message: fault.message,
      advice: fault.advice,
    };
    await writeFile(join(stage.folder, "reason.json"), `${JSON.stringify(reason, null, 2)}\n`, {
      mode: 0o600,
    });
    await syncTree(stage.folder);
    await rm(kept, { recursive: true, force: true });
    await renameDurably(stage.folder, kept);
  } catch (error) {
    throw faultOfDisk(error, kept);
  }
  const message = describeFault(fault);
  await record.enter("quarantined", { reason: fault.code, message }, fault);
  await stage.clear();
  await passwords.settled(mailbox, trackingId);
}

/** It may be all that is left of the transfer: it outlives a power cut. */
async function syncTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncTree(path);
    else await syncFile(path, 0o600);
  }
  await syncFolder(folder);
}
