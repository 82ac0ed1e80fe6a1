/**
 * The check of a complete transfer before its delivery. The folder is read-only while the check runs, and afterwards its
 * content must be the verified one: a check that runs as our user can change it nevertheless.
 */

import { join } from "node:path";
import { durableStep } from "../base/disk.ts";
import { setFolderMode } from "../base/durable.ts";
import { asFault, Fault } from "../base/faults.ts";
import { chmod, readdir } from "../base/files.ts";
import { sumFolder } from "../base/sums.ts";
import type { Stage } from "../ledger/port.ts";
import type { Handoff } from "../model/mailbox.ts";
import { type Contents, deliveryId, digestOf, filesIn, MANIFEST, verifiedOf } from "../model/manifest.ts";
import { type Prepared, writeDelivery } from "./deliver.ts";
import { clearStage, setFileModes } from "./reuse.ts";
import type { Run } from "./run.ts";

const WRITE_BITS = 0o222;

/**
 * Does nothing if no check is configured. Throws `CHECK_REFUSED`, `CHECK_CHANGED` and `CHECK_FAILED`. After a crash or a stop the
 * next attempt runs the check again.
 */
export async function checkContent(run: Run, prepared: Prepared): Promise<void> {
  const { tools, record, key, password, handoff, signal } = run;
  const { checker, ledger } = tools;
  const check = tools.check();
  // An operator has released the transfer although the check refused it.
  if (check === undefined || record.released?.reason === "CHECK_REFUSED") return;
  const { stage, contents, planned } = prepared;
  const { folder } = stage;
  if (record.state !== "checking") run.enter("checking", { complete: await digestOf(contents) });
  tools.freeSlot();
  const { mailbox, trackingId, transferId, sender, round } = record;
  const { recipients, securityMode, passwordMode } = record;
  const sent = { mailbox, trackingId, transferId, sender, recipients, securityMode, passwordMode };
  const facts = { id: deliveryId(key, round), ...sent };
  const secrets = password === undefined ? [] : [password];
  const isInside = planned === undefined || planned.placement.isManifestInside === true;
  const manifest = join(isInside ? folder : stage.placement, MANIFEST);
  await forbidWriting(folder, handoff);
  durableStep("folder read-only");
  const fault = await checker
    .run(check, { ...facts, verified: verifiedOf(contents), folder, manifest, secrets }, signal)
    .then(() => undefined)
    .catch(asFault);
  signal.throwIfAborted();
  durableStep("checked");
  const isSame = (await sumFolder(folder, signal)) === stage.proof;
  const refusal = fault?.code === "CHECK_REFUSED" || isSame ? fault : new Fault("CHECK_CHANGED");
  if (refusal?.verdict === "quarantine") await keepSentFiles(stage, contents);
  // Without its content, a released transfer is downloaded again.
  if (!isSame) run.contents = undefined;
  if (refusal !== undefined) throw refusal;
  await setFileModes(folder, await readdir(folder), handoff.fileMode);
  await setFolderMode(folder, handoff.folderMode);
  // The check may have changed the files that are not in the folder.
  if (planned !== undefined) await writeDelivery(run, prepared, planned);
  await ledger.stages.seal(stage);
}

async function forbidWriting(folder: string, { fileMode, folderMode }: Handoff): Promise<void> {
  for (const name of await readdir(folder)) await chmod(join(folder, name), (fileMode & ~WRITE_BITS) | 0o400);
  await setFolderMode(folder, (folderMode & ~WRITE_BITS) | 0o500);
}

/** Removes everything but the sender's files, for the quarantine, and makes them writable again. */
async function keepSentFiles(stage: Stage, contents: Contents): Promise<void> {
  const names = new Set(filesIn(contents).map(({ name }) => name));
  const entries = await readdir(stage.folder, { withFileTypes: true });
  const ours = new Set(entries.filter((entry) => entry.isFile()).map(({ name }) => name)).intersection(names);
  await clearStage(stage, (name) => ours.has(name));
  for (const name of ours) await chmod(join(stage.folder, name), 0o600);
}
