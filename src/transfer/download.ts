/**
 * The story of one transfer: open → plan → fetch → verify → deliver. Each step is safe to run twice, and only the last
 * one is visible outside. The ledger records every outcome.
 */

import { asFault, Fault } from "../base/faults.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import { DONE, type Next } from "../model/job.ts";
import { bytesOf, type Contents } from "../model/manifest.ts";
import {
  expiryOf,
  hasEnded,
  QUIET,
  type TransferKey,
  type TransferRecord,
  waitLeftMs,
} from "../model/record.ts";
import { factsOf, factsOfContents, routeOf } from "../model/route.ts";
import { takeComplete, takeQuarantined } from "./complete.ts";
import { deliver, finishPlacing } from "./deliver.ts";
import { fetchContent } from "./fetch-content.ts";
import { fetchMessage } from "./message.ts";
import { type OpenedTransfer, openTransfer, refusePassword, waitsIdly } from "./open.ts";
import { layoutValues } from "./placement.ts";
import { planTransfer } from "./plan.ts";
import { quietUntil } from "./quiet.ts";
import { followRoutes, isStillHeld, listedFacts } from "./route.ts";
import { Run } from "./run.ts";
import { clearDiskWait, endIfGone, retryStuck, settleFault } from "./settle.ts";
import type { Source, TransferTools } from "./tools.ts";
import { unpackArchives } from "./unpack-archives.ts";

const LOOK_EVERY_MS = 5_000;

/** Why a run is aborted. */
const [LOST, GIVES_WAY] = ["its round has ended", "others wait"];

const AT_ONCE: Next = { kind: "again", afterMs: 0 };

export async function downloadTransfer(
  tools: TransferTools,
  source: Source,
  key: TransferKey,
  signal: AbortSignal,
): Promise<Next> {
  // Polls and starts report a damaged record. Nothing is downloaded without a record.
  const record = await tools.ledger.find(key).catch(() => undefined);
  if (record === undefined) {
    clearDiskWait(tools, tools.ledger.nameOf(key));
    return DONE;
  }
  const run = new Run(tools, record);
  try {
    if (hasEnded(record)) {
      await finishPlacing(tools, source, run);
      clearDiskWait(tools, run.key);
      return DONE;
    }
    // Once the mailbox is no longer paused, its next poll finds the transfer again.
    if (source.mailbox.paused) {
      clearDiskWait(tools, run.key);
      return DONE;
    }
    const putOff = await putOffMs(tools, source, run, signal);
    if (putOff === "idle") {
      // An operator's order ends here: a command that waits for its outcome sees that.
      const { wanted, ...rest } = record;
      if (wanted) tools.ledger.note(rest);
      return DONE;
    }
    if (putOff !== undefined) return { kind: "again", afterMs: putOff };
  } catch (error) {
    return retryStuck(tools, run, asFault(error));
  }
  return attempt(tools, source, run, signal);
}

/** How long the download waits; `idle`: until an operator acts; `undefined`: it starts now. */
async function putOffMs(
  tools: TransferTools,
  source: Source,
  run: Run,
  signal: AbortSignal,
): Promise<number | "idle" | undefined> {
  const { record, key } = run;
  const isComplete = record.complete !== undefined;
  if (record.vanished && !isComplete) return undefined;
  if (isStillHeld(record, source)) return "idle";
  const nowMs = tools.clock.now();
  const quietMs = quietUntil(source.mailbox.quiet, expiryOf(record), nowMs);
  if (quietMs !== undefined && !record.wanted && !isComplete) {
    waitQuietly(run, new Date(quietMs).toISOString());
    return quietMs - nowMs;
  }
  const leftMs = record.wanted ? undefined : waitLeftMs(record, nowMs);
  if (leftMs !== undefined || isComplete) return leftMs;
  // Without room on the disk, intake pauses: no request is made, and nothing is written.
  if (!(await tools.inbox.hasRoom(key))) return tools.patience.diskMs;
  return (await waitsIdly(tools, source, record, signal)) ? "idle" : undefined;
}

/** A transfer that waits for another reason keeps that reason, which may outlast the quiet hours. */
function waitQuietly(run: Run, until: string): void {
  const { state, reason, until: before } = run.record;
  const isNew = state === "waiting" ? reason === QUIET && until !== before : true;
  if (isNew) run.enter("waiting", { reason: QUIET, until });
}

async function attempt(tools: TransferTools, source: Source, run: Run, signal: AbortSignal): Promise<Next> {
  const { passwords, ledger } = tools;
  const { trackingId, state, reason } = run.record;
  const lackedPassword = state === "waiting" && reason === "password";
  const watch = watchRun(tools, run);
  try {
    const supplied = lackedPassword ? await passwords.supplied(source.mailbox, trackingId) : undefined;
    const next = await downloadAndDeliver(tools, source, run, AbortSignal.any([signal, watch.signal]));
    if (next !== undefined) return next;
    clearDiskWait(tools, run.key);
    return (await isSuppliedSince(tools, source, run, supplied)) ? AT_ONCE : DONE;
  } catch (error) {
    const fault = run.isDecided ? asFault(error) : faultOf(watch.signal, error);
    if (fault.code === "PASSWORD_REFUSED") await refusePassword(tools, source, run, signal).catch(() => {});
    return await settleFault(tools, source, run, fault, signal);
  } finally {
    watch.close();
    tools.large.giveBack(source.service.id, run.key);
    if (run.stage !== undefined) await ledger.stages.closeStage(run.stage).catch(() => {});
  }
}

/** Aborts a download whose round another process or an operator has ended, and a slow download while others wait. */
function watchRun(tools: TransferTools, run: Run): { readonly signal: AbortSignal; close(): void } {
  const { ledger, patience } = tools;
  const ending = new AbortController();
  const look = async () => {
    const { round, attempts } = run.record;
    const end = await ledger.readEnd(run.key, round).catch(() => undefined);
    if (run.isDecided) return;
    if (end !== undefined) ending.abort(LOST);
    const isTooSlow = await run.pace.judgePeriod(tools, attempts, expiryOf(run.record)).catch(() => false);
    if (isTooSlow) ending.abort(GIVES_WAY);
  };
  const timer = setInterval(() => void look(), Math.min(LOOK_EVERY_MS, patience.slowMs));
  return { signal: ending.signal, close: () => clearInterval(timer) };
}

function faultOf({ aborted, reason }: AbortSignal, error: unknown): Fault {
  if (!aborted) return asFault(error);
  return new Fault(reason === LOST ? "ROUND_LOST" : "GAVE_WAY");
}

/** Whether a password was supplied while others were tried. This job has to try it, because no other one will. */
async function isSuppliedSince(
  { passwords }: TransferTools,
  { mailbox }: Source,
  { record }: Run,
  before: string | undefined,
): Promise<boolean> {
  if (record.state !== "waiting") return false;
  const supplied = await passwords.supplied(mailbox, record.trackingId);
  return supplied !== undefined && supplied !== before;
}

/** Returns the job's next run if the transfer has to wait; `undefined` if this run has settled it. */
async function downloadAndDeliver(
  tools: TransferTools,
  source: Source,
  run: Run,
  signal: AbortSignal,
): Promise<Next | undefined> {
  const complete = await takeComplete(tools, source, run, signal);
  if (complete === undefined && run.record.vanished) {
    if (await endIfGone(tools, source, run, signal)) return undefined;
    // It is not gone, so a lock, or a pause that the service asked for, still applies.
    const { record } = run;
    const leftMs = record.wanted ? undefined : waitLeftMs(record, tools.clock.now());
    if (leftMs !== undefined) return { kind: "again", afterMs: leftMs };
  }
  const isNew = complete === undefined;
  if (isNew && !(await followRoutes(tools, source, run, listedFacts(run.record)))) return undefined;
  const sent = complete ?? (await download(tools, source, run, signal));
  if (sent === undefined) return undefined;
  signal.throwIfAborted();
  // Once more, for content of earlier attempts, and for the names of unpacked files. The first answer says how to unpack.
  const facts = (contents: Contents) => factsOfContents(run.record.sender, contents);
  if (!(await followRoutes(tools, source, run, facts(sent)))) return undefined;
  const contents = await unpackArchives(tools, run, sent, signal);
  if (contents !== sent && !(await followRoutes(tools, source, run, facts(contents)))) return undefined;
  const wanted = folderOf(tools, source, run.record, contents.subject);
  await deliver(tools, source, run, contents, wanted, signal);
  return undefined;
}

/** `undefined`: it is not delivered now, and the record says why. */
async function download(
  tools: TransferTools,
  source: Source,
  run: Run,
  signal: AbortSignal,
): Promise<Contents | undefined> {
  const wasWaiting = run.record.state === "waiting";
  run.enter("downloading", { attempts: run.record.attempts + 1 });
  // The `password` command reads the note once the supplied file is gone.
  if (wasWaiting) await tools.ledger.flush();
  const kept = await takeQuarantined(tools, run, signal);
  if (kept === undefined) return fetchContents(tools, source, run, signal);
  run.learn({ subject: kept.subject });
  return kept;
}

/** `undefined`: no password opens it, or a route holds or ignores it; the record says so. */
async function fetchContents(
  tools: TransferTools,
  source: Source,
  run: Run,
  signal: AbortSignal,
): Promise<Contents | undefined> {
  const transfer = await openTransfer(tools, source, run, signal);
  if (transfer === undefined) return undefined;
  const { mailbox, service } = source;
  const { released } = run.record;
  run.learn({ subject: transfer.subject });
  if (!(await followRoutes(tools, source, run, factsOf(run.record, transfer.files)))) return undefined;
  const plan = await planTransfer(transfer, mailbox, run.handoff, tools.inbox);
  run.learn({ files: plan.files.length, bytes: plan.totalBytes });
  run.stage = await tools.ledger.stages.openStage(run.record);
  const fetched = await fetchContent(tools, source, run, run.stage, transfer.access, plan, signal);
  const message = await fetchMessage(
    {
      service,
      access: transfer.access,
      folder: run.stage.folder,
      totalBytes: plan.totalBytes,
      fileMode: run.handoff.fileMode,
      run,
    },
    signal,
  );
  const contents: Contents = {
    subject: run.record.subject,
    message: message.kind,
    messageFile: message.kind === "present" ? message.file : undefined,
    files: fetched.files.map(({ name, originalName, bytes: size, checksums, sha256, isProven }) => {
      const { value: checksum, algorithm } = checksums[0] ?? {};
      return { name, originalName, size, checksum, algorithm, sha256, verified: isProven };
    }),
  };
  run.contents = contents;
  const isWithheld = message.kind === "refused" && run.record.hasMessage === true;
  const withheld = isWithheld ? message.fault : undefined;
  const unproven = doubtOf(contents, transfer.totalBytes, mailbox.verify);
  const doubt = transfer.doubt ?? fetched.doubt ?? withheld ?? unproven;
  if (doubt !== undefined && !released) throw doubt;
  if (message.kind === "refused")
    tools.emit({ type: "message-refused", record: run.record, fault: message.fault });
  return contents;
}

/** Why the contents may be incomplete or wrong although each file is as listed. */
function doubtOf(
  contents: Contents,
  announcedBytes: number,
  verify: "require" | "prefer",
): Fault | undefined {
  const { files, message } = contents;
  const listedBytes = bytesOf(contents);
  // A service may count the confidential message, whose size it announces nowhere.
  const mayBeMore = message !== "none";
  if (mayBeMore ? listedBytes > announcedBytes : listedBytes !== announcedBytes) {
    const detail = `the service announces ${announcedBytes} bytes in total and lists files of ${listedBytes} bytes`;
    return new Fault("SIZE_MISMATCH", { detail });
  }
  if (verify === "prefer") return undefined;
  const unproven = files.find((file) => !file.verified);
  if (unproven !== undefined) {
    return new Fault("UNVERIFIABLE", { detail: JSON.stringify(unproven.originalName) });
  }
  if (files.length > 0 || message === "present") return undefined;
  return new Fault("UNVERIFIABLE", { detail: "it holds neither a file nor a message" });
}

function folderOf(
  { inbox }: TransferTools,
  { mailbox }: Source,
  record: TransferRecord,
  subject: OpenedTransfer["subject"],
): string {
  const layout = routeOf(mailbox, record)?.layout ?? mailbox.layout;
  return inbox.formatLayout(layout, layoutValues(mailbox, record, subject));
}
