/**
 * The story of one transfer: claim → open → plan → fetch → verify → deliver. Each step is safe to run twice, and only
 * the last one is visible outside. However it ends, the receipt says so.
 */
import { chmod, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { faultOfDisk } from "../base/durable.ts";
import { asFault, Fault } from "../base/faults.ts";
import { setFolderMode } from "../base/folders.ts";
import { type CollectJob, DONE, type Next } from "../model/job.ts";
import { isFinal, type Receipt } from "../model/receipt.ts";
import { deliver, finishContent, resumeDelivery } from "./deliver.ts";
import { type FetchContext, fetchFiles } from "./fetch.ts";
import { fetchZip } from "./fetch-zip.ts";
import { verifiedOf } from "./manifest.ts";
import { fetchMessage } from "./message.ts";
import { type OpenedTransfer, openTransfer, waitsIdly } from "./open.ts";
import { type Plan, planTransfer } from "./plan.ts";
import { quietForMs } from "./quiet.ts";
import { entered, Record } from "./record.ts";
import { cannotClaim, endIfGone, hasRoom, settleFault } from "./settle.ts";
import type { CollectTools, Source, StagedSource } from "./tools.ts";

/** For what an operator vouches for. */
const UNLIMITED = { maxFiles: Number.POSITIVE_INFINITY, maxTransferBytes: Number.POSITIVE_INFINITY };

const AT_ONCE: Next = { kind: "again", afterMs: 0 };

export async function collectTransfer(
  tools: CollectTools,
  source: Source,
  job: CollectJob,
  signal: AbortSignal,
): Promise<Next> {
  // One that cannot be read is reported by polls and starts; nothing is begun on a guess.
  const found = await tools.receipts.find(job).catch(() => undefined);
  const isOver = found === undefined || isFinal(found);
  // One that is paused is left alone, but for what may have appeared in the inbox already. Polls find the rest again.
  if (isOver || (source.mailbox.paused && found.state !== "delivering")) {
    hasRoom(tools, job);
    return DONE;
  }
  const begins = found.state !== "delivering" && job.occasion !== "vanished";
  const quietMs = quietForMs(source.mailbox.quiet, job.expiresMs, tools.clock.now());
  // What a person wants now is not put off.
  if (begins && job.occasion !== "wanted" && quietMs !== undefined)
    return { kind: "again", afterMs: quietMs };
  // Intake pauses while there is no room: nothing is asked of the service, and nothing written.
  if (begins && !(await tools.inbox.hasRoom(job.key)))
    return { kind: "again", afterMs: tools.patience.diskMs };
  if (begins && (await waitsIdly(tools, source, found, signal))) return DONE;
  const record = new Record(tools, found);
  try {
    const claimed = await tools.receipts.claim(found, (receipt) => begin(receipt, job, tools.clock.now()));
    if (claimed === undefined) return DONE;
    return await work(tools, source, job, claimed, signal);
  } catch (error) {
    return cannotClaim(tools, record, asFault(error));
  }
}

/** Delivering is taken up where it was; one that vanished is asked after before anything else. */
function begin(receipt: Receipt, { occasion }: CollectJob, nowMs: number): Receipt {
  if (occasion === "vanished" || receipt.state === "delivering") return receipt;
  return entered(receipt, "collecting", nowMs, { attempts: receipt.attempts + 1 });
}

async function work(
  tools: CollectTools,
  source: Source,
  job: CollectJob,
  claimed: Receipt,
  signal: AbortSignal,
): Promise<Next> {
  const record = new Record(tools, claimed);
  if (claimed.state === "collecting") tools.watch.stateChanged(claimed);
  const stage = await tools.inbox.stage(job.key, claimed.fence, claimed.state === "delivering");
  try {
    const supplied = await tools.passwords.supplied(source.mailbox, job.trackingId);
    await collect(tools, { ...source, stage }, record, job.occasion === "vanished", signal);
    hasRoom(tools, record);
    return (await isSuppliedSince(tools, source, record, supplied)) ? AT_ONCE : DONE;
  } catch (error) {
    return await settleFault(tools, { ...source, stage }, record, asFault(error), signal);
  } finally {
    stage.release();
  }
}

/** Somebody supplied a password while others were tried: no new job was given out for it. */
async function isSuppliedSince(
  { passwords }: CollectTools,
  { mailbox }: Source,
  { receipt }: Record,
  before: string | undefined,
): Promise<boolean> {
  if (receipt.state !== "waiting") return false;
  const supplied = await passwords.supplied(mailbox, receipt.trackingId);
  return supplied !== undefined && supplied !== before;
}

async function collect(
  tools: CollectTools,
  source: StagedSource,
  record: Record,
  vanished: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { folder: begun, verified: proven, acknowledgement } = record.receipt;
  if (record.receipt.state === "delivering" && begun !== undefined) {
    return resumeDelivery(tools, source, record, { folder: begun, verified: proven, acknowledgement });
  }
  if (vanished) {
    if (await endIfGone(tools, source, record, signal)) return;
    await record.enter("collecting", { attempts: record.receipt.attempts + 1 });
  }
  const transfer = await openTransfer(tools, source, record, signal);
  if (transfer === undefined) return;
  const { mailbox, stage } = source;
  const limits = record.receipt.released ? UNLIMITED : tools.limits;
  const plan = planTransfer(transfer, mailbox, limits, tools.handoff, tools.inbox, stage.folder);
  const digests = await fetchContent(tools, source, record, transfer, plan, signal);
  const message = await fetchMessage(source.service, transfer.access, plan, tools.handoff.fileMode, signal);
  await finishContent(tools, record, plan, { digests, message, subject: transfer.subject });
  if (!record.receipt.released) demandVerification(plan, mailbox.verify);
  signal.throwIfAborted();
  const folder = layoutOf(tools, source, record.receipt, transfer);
  const verified = verifiedOf(plan);
  await deliver(tools, source, record, { folder, verified, acknowledgement: plan.acknowledgement });
}

/** Room first, then the bytes: by the planned way, or, where the ZIP is not what it should be, by single files. */
async function fetchContent(
  tools: CollectTools,
  { service }: Source,
  record: Record,
  { access }: OpenedTransfer,
  plan: Plan,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const here = await prepareContent(plan);
  const reservation = await tools.inbox.reserve(record.key, plan.neededBytes - here, plan.files.length);
  let done = 0;
  const progress = (bytes: number, receivedBytes: number) => {
    done += bytes;
    tools.watch.progressed(record.receipt, Math.min(done, plan.totalBytes), plan.totalBytes, receivedBytes);
  };
  const context: FetchContext = {
    service,
    access,
    parallel: tools.limits.filesPerTransfer,
    fileMode: tools.handoff.fileMode,
    onFound: (bytes) => progress(bytes, 0),
    onBytes(bytes) {
      reservation.use(bytes);
      progress(bytes, bytes);
    },
  };
  try {
    if (plan.way === "files") return await fetchFiles(context, plan, signal);
    return await fetchZip(context, plan, signal).catch((error: unknown) => {
      if (!(error instanceof Fault && error.code === "ARCHIVE_WRONG")) throw error;
      return fetchFiles(context, plan, signal);
    });
  } catch (error) {
    if (error instanceof Fault && error.code === "DISK_FULL") reservation.ranShort();
    throw error;
  } finally {
    reservation.release();
  }
}

/**
 * What an earlier run left is used again where it belongs to a file of this plan; anything else goes. It may already
 * have the modes of a finished folder, which need not let us write. Returns how many bytes need not be fetched.
 */
async function prepareContent({ content, files, way }: Plan): Promise<number> {
  try {
    const isNew = (await mkdir(content, { recursive: true, mode: 0o700 })) !== undefined;
    if (isNew) return 0;
    await setFolderMode(content, 0o700);
    const wanted = new Map(files.map((file) => [file.name, file.bytes]));
    let here = 0;
    for (const name of await readdir(content)) {
      const path = join(content, name);
      const bytes = way === "files" ? wanted.get(name) : undefined;
      if (bytes === undefined) {
        await rm(path, { recursive: true, force: true });
        continue;
      }
      await chmod(path, 0o600);
      here += Math.min((await stat(path)).size, bytes);
    }
    return here;
  } catch (error) {
    throw faultOfDisk(error, content);
  }
}

function demandVerification(plan: Plan, verify: "require" | "prefer"): void {
  const unproven = plan.files.find((file) => file.checksums.length === 0);
  if (verify === "prefer" || unproven === undefined) return;
  throw new Fault("UNVERIFIABLE", { detail: JSON.stringify(unproven.originalName) });
}

function layoutOf(
  { inbox }: CollectTools,
  { mailbox }: Source,
  receipt: Receipt,
  { subject }: OpenedTransfer,
): string {
  return inbox.formatLayout(mailbox.layout, {
    mailbox: mailbox.name,
    sender: receipt.sender,
    trackingId: receipt.trackingId,
    transferId: receipt.transferId,
    subject: subject ?? "",
    discovered: new Date(receipt.at.discovered ?? 0),
  });
}
