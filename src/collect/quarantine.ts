/** Where a transfer goes that we will not vouch for: what was received of it, and a file that says why. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { exists, faultOfDisk, makeFolderDurably, renameDurably } from "../base/durable.ts";
import { describeFault, type Fault } from "../base/faults.ts";
import type { Record } from "./record.ts";
import type { CollectTools, Source } from "./tools.ts";

export async function quarantine(
  { inbox, passwords, clock }: CollectTools,
  { mailbox }: Source,
  record: Record,
  fault: Fault,
): Promise<void> {
  const staged = join(inbox.staging, record.key);
  const kept = join(inbox.quarantine, record.key);
  const { trackingId, sender } = record.receipt;
  try {
    if (!(await exists(staged))) await makeFolderDurably(staged, 0o700);
    const reason = {
      at: new Date(clock.now()).toISOString(),
      mailbox: mailbox.name,
      trackingId,
      sender,
      code: fault.code,
      message: fault.message,
      advice: fault.advice,
    };
    await writeFile(join(staged, "reason.json"), `${JSON.stringify(reason, null, 2)}\n`, { mode: 0o600 });
    await rm(kept, { recursive: true, force: true });
    await renameDurably(staged, kept);
  } catch (error) {
    throw faultOfDisk(error, kept);
  }
  const message = describeFault(fault);
  await record.enter("quarantined", { reason: fault.code, message }, fault);
  await passwords.settled(mailbox, trackingId);
}
