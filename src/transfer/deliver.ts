/** Makes a finished folder visible: everything on the disk first, then the end record, then one rename. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { forEachLimit } from "../base/concurrency.ts";
import { durableStep } from "../base/disk.ts";
import { faultOfDisk, setFolderMode, writeFinished } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import type { Stage } from "../ledger/port.ts";
import type { TransferRecord } from "../model/record.ts";
import { type Contents, verifiedOf } from "./contents.ts";
import { formatManifest, formatSums, type MessageFile } from "./manifest.ts";
import { MANIFEST, MESSAGE, SUMS } from "./plan.ts";
import type { Run } from "./run.ts";
import type { Source, TransferTools } from "./tools.ts";

const OWNER_BITS = 0o700;

/** Throws `ROUND_LOST` where another attempt, or an operator, has ended the round. */
export async function deliver(
  tools: TransferTools,
  source: Source,
  run: Run,
  contents: Contents,
  wanted: string,
): Promise<void> {
  const { ledger, handoffs, handoff, inbox } = tools;
  const { stage } = run;
  if (stage === undefined) throw new TypeError("there is no stage to deliver");
  try {
    await finishStage(tools, run, stage, contents);
    await ledger.stages.seal(stage);
    const folder = await ledger.stages.takeFolder(wanted);
    try {
      const { acknowledgement } = handoff;
      run.enter("delivering", { folder, verified: verifiedOf(contents), acknowledgement });
      const record = run.ending("delivered");
      await handoffs.note(record);
      if (!(await ledger.stages.endWith(stage, record)))
        throw new Fault("ROUND_LOST", { detail: record.trackingId });
      durableStep("delivery decided");
      run.isDecided = true;
      const placed = (await ledger.stages.place(record, stage)) ?? record;
      durableStep("delivery placed");
      await follow(tools, source, run, placed, folder);
    } finally {
      ledger.stages.giveBack(folder);
    }
  } catch (error) {
    throw faultOfDisk(error, join(inbox.root, wanted));
  }
}

/** A crash may have come between the end record of a round and the rename, in whichever process. */
export async function finishPlacing(tools: TransferTools, source: Source, run: Run): Promise<void> {
  const placed = await tools.ledger.stages.place(run.record);
  if (placed !== undefined) await follow(tools, source, run, placed);
}

/** What is left to do when a delivery is in the inbox, or a transfer in quarantine. Safe to be cut short. */
async function follow(
  { handoffs, ledger, passwords }: TransferTools,
  { mailbox }: Source,
  run: Run,
  record: TransferRecord,
  /** The folder that the end record names, where that is known. */
  wanted?: string,
): Promise<void> {
  // What an earlier round left in quarantine is delivered now, or kept anew.
  if (record.round > 1)
    await ledger.clearQuarantine(record, record.state === "quarantined" ? record.round : 0);
  run.ended(record);
  if (record.state === "delivered") await handoffs.placed(record, wanted);
  passwords.settled(mailbox, record.trackingId);
}

/** Adds manifest, sums and marker. Each file is on the disk then. */
async function finishStage(
  { handoff, ledger }: TransferTools,
  run: Run,
  { folder, isNew }: Stage,
  contents: Contents,
): Promise<void> {
  const { record } = run;
  const message = await findMessage(folder, contents);
  const texts: (readonly [name: string, text: string])[] = [
    [MANIFEST, formatManifest(record, ledger.nameOf(record), contents, message)],
    [SUMS, formatSums(contents)],
  ];
  if (handoff.marker !== undefined) texts.push([handoff.marker, ""]);
  await forEachLimit(texts, texts.length, ([name, text]) =>
    writeFinished(join(folder, name), text, handoff.fileMode),
  );
  // A new one was made with its mode, unless that would not have let us write.
  const hasMode = isNew && (handoff.folderMode & OWNER_BITS) === OWNER_BITS;
  if (!hasMode) await setFolderMode(folder, handoff.folderMode);
}

async function findMessage(folder: string, { message }: Contents): Promise<MessageFile | undefined> {
  if (message === undefined) return undefined;
  const { size } = await stat(join(folder, MESSAGE));
  return { name: MESSAGE, size, sha256: message };
}
