/**
 * Ends a round with its content: everything is on the disk first, then the end record decides, then one rename moves
 * the folder to the inbox, or to the quarantine.
 */
import { join } from "node:path";
import { forEachLimit } from "../base/concurrency.ts";
import { durableStep } from "../base/disk.ts";
import { onDisk, setFolderMode, setGroup, writeFinished } from "../base/durable.ts";
import { describeFault, Fault } from "../base/faults.ts";
import { lstat } from "../base/files.ts";
import type { Stage } from "../ledger/port.ts";
import { STEPS } from "../model/handoff.ts";
import { type Contents, formatManifest, formatSums, MANIFEST, SUMS, verifiedOf } from "../model/manifest.ts";
import { type TransferRecord, withoutMissing } from "../model/record.ts";
import { routeOf } from "../model/route.ts";
import {
  layoutValues,
  needsPlacement,
  type Prepared,
  planDelivery,
  type Target,
  writeDelivery,
} from "./placement.ts";
import type { Run } from "./run.ts";
import { clearDiskWait } from "./settle.ts";
import type { Outcome } from "./step.ts";

const PERMISSIONS = 0o777;

/** Completes the stage with what Inlet adds, and syncs it. Throws `TARGET_UNSAFE`. */
export async function prepareDelivery(run: Run, contents: Contents): Promise<Prepared> {
  const { handoff, tools } = run;
  const { stages } = tools.ledger;
  const target = targetOf(run, contents.subject);
  const stage = await run.openStage();
  return onDisk(pathOf(run, target), async () => {
    const planned = needsPlacement(handoff) ? await planDelivery(run, stage, contents, target) : undefined;
    const added = await finishStage(run, stage, contents);
    if (planned !== undefined) await writeDelivery(run, stage, planned);
    else if (!stage.isNew) await stages.dropPlacement(stage);
    await stages.seal(stage);
    return { stage, contents, planned, added, target };
  });
}

/** Decides the delivery, and places it. Throws `ROUND_LOST` if another attempt, or an operator, has ended the round. */
export async function deliver(run: Run, prepared: Prepared): Promise<Outcome> {
  const { stage, contents, planned, target } = prepared;
  const { ledger, handoffs } = run.tools;
  const { handoff } = run;
  return onDisk(pathOf(run, target), async () => {
    const folder =
      planned?.folder ?? (await ledger.stages.takeFolder(target.wanted, run.record, target.inbox));
    try {
      const { acknowledgement } = handoff;
      const steps = STEPS.filter((step) => handoff[step] !== undefined);
      const facts = { folder, inbox: target.inbox, placement: planned?.deliver, acknowledgement, steps };
      run.enter("delivering", { verified: verifiedOf(contents), ...facts });
      const record = run.endRecord("delivered");
      await handoffs.prepare(record);
      const placed = await endWith(run, stage, record);
      await afterPlacing(run, placed, { folder });
      return { kind: "delivered" };
    } finally {
      ledger.stages.giveBack(folder, target.inbox);
    }
  });
}

/** Moves the content received so far to the quarantine, with the reason. Throws `ROUND_LOST`. */
export async function quarantine(run: Run, fault: Fault): Promise<void> {
  const { ledger, clock } = run.tools;
  const { trackingId, sender } = run.record;
  const { code, message, advice } = fault;
  const stage = await run.openStage();
  const at = new Date(clock.now()).toISOString();
  const facts = { at, mailbox: run.source.mailbox.name, trackingId, sender };
  await ledger.stages.sealForQuarantine(stage, { ...facts, code, message, advice, contents: run.contents });
  const why = { reason: code, message: describeFault(fault), ...withoutMissing({ output: fault.output }) };
  const record = run.endRecord("quarantined", why);
  const placed = await endWith(run, stage, record);
  clearDiskWait(run.tools, run.key);
  await afterPlacing(run, placed, { fault });
}

/** Moves the folder of an ended round if a crash, in any process, has prevented that. */
export async function finishPlacing(run: Run): Promise<void> {
  const placed = await run.tools.ledger.stages.place(run.record);
  if (placed !== undefined) await afterPlacing(run, placed);
}

/** Where the delivery goes, by its route or mailbox as configured now. */
function targetOf({ source, record, tools }: Run, subject: string | undefined): Target {
  const { mailbox } = source;
  const route = routeOf(mailbox, record);
  const own = route?.inbox ?? mailbox.inbox;
  const layout = route?.layout ?? mailbox.layout;
  return {
    wanted: tools.inbox.formatLayout(layout, layoutValues(mailbox, record, subject)),
    inbox: own === tools.inbox.root ? undefined : own,
  };
}

function pathOf({ tools }: Run, { wanted, inbox }: Target): string {
  return join(inbox ?? tools.inbox.root, wanted);
}

async function endWith(run: Run, stage: Stage, record: TransferRecord): Promise<TransferRecord> {
  const { stages } = run.tools.ledger;
  if (!(await stages.endWith(stage, record))) throw new Fault("ROUND_LOST", { detail: record.trackingId });
  durableStep("round ended");
  run.isDecided = true;
  const placed = (await stages.place(record, stage)) ?? record;
  durableStep("content placed");
  return placed;
}

/**
 * The steps after the rename. A crash between them is safe. `folder`: the folder that the end record names, if it is
 * known. `fault`: why the transfer is in quarantine.
 */
async function afterPlacing(
  run: Run,
  record: TransferRecord,
  { folder, fault }: { readonly folder?: string; readonly fault?: Fault } = {},
): Promise<void> {
  const { handoffs, passwords } = run.tools;
  run.noteEnd(record, fault);
  if (record.state === "delivered") await handoffs.placed(record, folder);
  passwords.settled(run.source.mailbox, record.trackingId);
}

/** Adds the manifest, sums and marker that belong in the folder, and syncs each. Returns their texts by name. */
async function finishStage(
  run: Run,
  { folder }: Stage,
  contents: Contents,
): Promise<ReadonlyMap<string, string>> {
  const { record, handoff } = run;
  const texts = new Map<string, string>();
  if ((handoff.manifest ?? "inside") === "inside") {
    texts.set(MANIFEST, formatManifest(record, run.key, contents));
    texts.set(SUMS, formatSums(contents));
  }
  if (handoff.marker !== undefined && handoff.deliver !== "files") texts.set(handoff.marker, "");
  await forEachLimit(texts, Math.max(texts.size, 1), ([name, text]) =>
    writeFinished(join(folder, name), text, handoff.fileMode),
  );
  if (handoff.gid !== undefined) await setGroup(folder, handoff.gid);
  const hasMode = ((await lstat(folder)).mode & PERMISSIONS) === handoff.folderMode;
  if (!hasMode) await setFolderMode(folder, handoff.folderMode);
  return texts;
}
