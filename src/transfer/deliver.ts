/**
 * Ends a round with its content: everything is on the disk first, then the end record decides, then one rename moves
 * the folder to the inbox, or to the quarantine.
 */

import { join } from "node:path";
import { forEachLimit } from "../base/concurrency.ts";
import { durableStep } from "../base/disk.ts";
import { faultOfDisk, setFolderMode, setGroup, writeFinished } from "../base/durable.ts";
import { describeFault, Fault } from "../base/faults.ts";
import type { Stage } from "../ledger/port.ts";
import { STEPS } from "../model/handoff.ts";
import { type Contents, formatManifest, formatSums, MANIFEST, SUMS, verifiedOf } from "../model/manifest.ts";
import type { TransferRecord } from "../model/record.ts";
import { routeOf } from "../model/route.ts";
import { checkContent } from "./check.ts";
import { needsPlacement, planDelivery, writeDelivery } from "./placement.ts";
import type { Run } from "./run.ts";
import type { Source, TransferTools } from "./tools.ts";

const OWNER_BITS = 0o700;

/**
 * `wanted`: the folder that the layout gives. Throws the faults of the check, and `ROUND_LOST` if another attempt, or an
 * operator, has ended the round.
 */
export async function deliver(
  tools: TransferTools,
  source: Source,
  run: Run,
  contents: Contents,
  wanted: string,
  signal: AbortSignal,
): Promise<void> {
  const { ledger, handoffs } = tools;
  const { stage, handoff } = run;
  const own = routeOf(source.mailbox, run.record)?.inbox ?? source.mailbox.inbox;
  const inbox = own === tools.inbox.root ? undefined : own;
  if (stage === undefined) throw new TypeError("there is no stage to deliver");
  try {
    const planned = needsPlacement(handoff)
      ? await planDelivery(tools, source, run, stage, contents, { wanted, inbox })
      : undefined;
    const added = await finishStage(tools, run, stage, contents);
    if (planned !== undefined) await writeDelivery(tools, run, stage, planned);
    else if (!stage.isNew) await ledger.stages.dropPlacement(stage);
    await ledger.stages.seal(stage);
    const isChecked = await checkContent(tools, run, stage, { contents, added }, signal);
    // The check may have changed these files, which are not in the folder.
    if (isChecked && planned !== undefined) {
      await writeDelivery(tools, run, stage, planned);
      await ledger.stages.seal(stage);
    }
    signal.throwIfAborted();
    const folder = planned?.folder ?? (await ledger.stages.takeFolder(wanted, run.record, inbox));
    try {
      const { acknowledgement } = handoff;
      const steps = STEPS.filter((step) => handoff[step] !== undefined);
      const facts = { folder, inbox, placement: planned?.deliver, acknowledgement, steps };
      run.enter("delivering", { verified: verifiedOf(contents), ...facts });
      const record = run.endRecord("delivered");
      await handoffs.prepare(record);
      const placed = await endWith(tools, run, stage, record);
      await afterPlacing(tools, source, run, placed, { folder });
    } finally {
      ledger.stages.giveBack(folder, inbox);
    }
  } catch (error) {
    throw faultOfDisk(error, join(inbox ?? tools.inbox.root, wanted));
  }
}

/** Moves the content received so far to the quarantine, with the reason. Throws `ROUND_LOST`. */
export async function quarantine(
  tools: TransferTools,
  source: Source,
  run: Run,
  fault: Fault,
): Promise<void> {
  const { ledger, clock } = tools;
  const { trackingId, sender } = run.record;
  const { code, message, advice } = fault;
  const stage = run.stage ?? (await ledger.stages.openStage(run.record));
  run.stage = stage;
  const at = new Date(clock.now()).toISOString();
  const facts = { at, mailbox: source.mailbox.name, trackingId, sender };
  await ledger.stages.sealForQuarantine(stage, { ...facts, code, message, advice, contents: run.contents });
  const record = run.endRecord("quarantined", { reason: code, message: describeFault(fault) });
  const placed = await endWith(tools, run, stage, record);
  await afterPlacing(tools, source, run, placed, { fault });
}

/** Moves the folder of an ended round if a crash, in any process, has prevented that. */
export async function finishPlacing(tools: TransferTools, source: Source, run: Run): Promise<void> {
  const placed = await tools.ledger.stages.place(run.record);
  if (placed !== undefined) await afterPlacing(tools, source, run, placed);
}

async function endWith(
  { ledger }: TransferTools,
  run: Run,
  stage: Stage,
  record: TransferRecord,
): Promise<TransferRecord> {
  if (!(await ledger.stages.endWith(stage, record))) {
    throw new Fault("ROUND_LOST", { detail: record.trackingId });
  }
  durableStep("round ended");
  run.isDecided = true;
  const placed = (await ledger.stages.place(record, stage)) ?? record;
  durableStep("content placed");
  return placed;
}

/**
 * The steps after the rename. A crash between them is safe. `folder`: the folder that the end record names, if it is
 * known. `fault`: why the transfer is in quarantine.
 */
async function afterPlacing(
  { handoffs, passwords }: TransferTools,
  { mailbox }: Source,
  run: Run,
  record: TransferRecord,
  { folder, fault }: { readonly folder?: string; readonly fault?: Fault } = {},
): Promise<void> {
  run.noteEnd(record, fault);
  if (record.state === "delivered") await handoffs.placed(record, folder);
  passwords.settled(mailbox, record.trackingId);
}

/** Adds the manifest, sums and marker that belong in the folder, and syncs each. Returns their texts by name. */
async function finishStage(
  { ledger }: TransferTools,
  run: Run,
  { folder, isNew }: Stage,
  contents: Contents,
): Promise<ReadonlyMap<string, string>> {
  const { record, handoff } = run;
  const texts = new Map<string, string>();
  if ((handoff.manifest ?? "inside") === "inside") {
    texts.set(MANIFEST, formatManifest(record, ledger.nameOf(record), contents));
    texts.set(SUMS, formatSums(contents));
  }
  if (handoff.marker !== undefined && handoff.deliver !== "files") texts.set(handoff.marker, "");
  await forEachLimit(texts, Math.max(texts.size, 1), ([name, text]) =>
    writeFinished(join(folder, name), text, handoff.fileMode),
  );
  if (handoff.gid !== undefined) await setGroup(folder, handoff.gid);
  // A new folder has its mode already, unless that mode keeps its owner from writing, or the route was not known then.
  const hasMode = isNew && record.route === undefined && (handoff.folderMode & OWNER_BITS) === OWNER_BITS;
  if (!hasMode) await setFolderMode(folder, handoff.folderMode);
  return texts;
}
