/** Where a transfer goes that we will not vouch for: what was received of it, and a file that says why. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { faultOfDisk, syncFile, writeFinished } from "../base/durable.ts";
import { describeFault, Fault } from "../base/faults.ts";
import { formatReason, REASON } from "./contents.ts";
import type { Run } from "./run.ts";
import type { Source, TransferTools } from "./tools.ts";

/** Throws `ROUND_LOST` where the round has ended otherwise. */
export async function quarantine(
  { ledger, passwords, clock }: TransferTools,
  { mailbox }: Source,
  run: Run,
  fault: Fault,
): Promise<void> {
  const { trackingId, sender } = run.record;
  const stage = run.stage ?? (await ledger.stages.openStage(run.record));
  run.stage = stage;
  const at = new Date(clock.now()).toISOString();
  const reason = formatReason({ at, mailbox: mailbox.name, trackingId, sender }, fault, run.contents);
  const record = run.ending("quarantined", { reason: fault.code, message: describeFault(fault) });
  try {
    // It may be all that is left of the transfer: it outlives a power cut.
    for (const name of await readdir(stage.folder)) await syncFile(join(stage.folder, name), 0o600);
    await writeFinished(join(stage.folder, REASON), reason, 0o600);
    await ledger.stages.seal(stage);
    if (!(await ledger.stages.endWith(stage, record))) throw new Fault("ROUND_LOST", { detail: trackingId });
    run.isDecided = true;
    await ledger.stages.place(record, stage);
  } catch (error) {
    throw faultOfDisk(error, stage.folder);
  }
  run.ended(record, fault);
  if (record.round > 1) await ledger.clearQuarantine(record, record.round);
  passwords.settled(mailbox, trackingId);
}
