/**
 * The story of one transfer: open → reuse or fetch → verify → unpack → check → deliver. Each step is safe to run twice, and
 * only the last one is visible outside. The ledger records every outcome.
 */
import { asFault, Fault } from "../base/faults.ts";
import { clearInterval, setInterval, type Timer } from "../base/timers.ts";
import { DONE, type Next } from "../model/job.ts";
import type { Proven } from "../model/manifest.ts";
import {
  expiryOf,
  hasEnded,
  isDoubtful,
  isForBrowser,
  QUIET,
  type TransferKey,
  type TransferRecord,
  waitLeftMs,
  waitsForPassword,
  withRightUntil,
} from "../model/record.ts";
import { factsOf, factsOfContents } from "../model/route.ts";
import { checkContent } from "./check.ts";
import { deliver, finishPlacing, prepareDelivery, quarantine } from "./deliver.ts";
import { fetchContents } from "./fetch-content.ts";
import { openTransfer, refusePassword, waitsIdly } from "./open-transfer.ts";
import { findQuarantined, takeComplete, takeQuarantined } from "./reuse.ts";
import { askRoutes, isStillHeld } from "./route.ts";
import { goOn, type Outcome, Run, type Source, type Step, type TransferTools } from "./run.ts";
import { askState, clearDiskWait, outcomeOf, retryStuck } from "./settle.ts";
import { quietUntil } from "./turns.ts";
import { unpackArchives } from "./unpack-archives.ts";

const LOOK_EVERY_MS = 5_000;
const QUIET_LOOK_MS = 10 * 60_000;
/** A slow transfer that expires within this time does not give way to others. */
const SOON_MS = 24 * 60 * 60_000;

const AT_ONCE: Next = { kind: "again", afterMs: 0 };

export async function downloadTransfer(
  tools: TransferTools,
  source: Source,
  key: TransferKey,
  signal: AbortSignal,
): Promise<Next> {
  let record: TransferRecord | undefined;
  try {
    record = await tools.ledger.find(key);
  } catch (error) {
    // Polls and starts report a damaged record, and nothing is downloaded without one. A disk may answer later.
    if (asFault(error).code !== "RECORD_UNREADABLE") return { kind: "again", afterMs: tools.patience.diskMs };
  }
  if (record === undefined) {
    clearDiskWait(tools, tools.ledger.nameOf(key));
    return DONE;
  }
  const run = new Run(tools, source, record, signal);
  try {
    return (await nextUnlessDue(run)) ?? (await attempt(run));
  } catch (error) {
    return retryStuck(run, asFault(error));
  }
}

/** What follows if no attempt is due; `undefined` if one is. */
async function nextUnlessDue(run: Run): Promise<Next | undefined> {
  const { tools, source, record } = run;
  // Whoever saw that it was stuck has to learn how it goes on.
  const wasStuck = tools.stuck.delete(run.key);
  if (hasEnded(record)) await finishPlacing(run, wasStuck);
  else if (wasStuck) tools.emit({ type: "transfer-changed", record });
  // Once the mailbox is no longer paused, its next poll finds the transfer again.
  if (hasEnded(record) || source.mailbox.paused) {
    clearDiskWait(tools, run.key);
    return DONE;
  }
  const putOff = await putOffMs(run);
  if (putOff !== "idle") return putOff === undefined ? undefined : { kind: "again", afterMs: putOff };
  // It waits for a person, and no longer for room.
  clearDiskWait(tools, run.key);
  // An operator's order ends here: a command that waits for its outcome sees that.
  const { wanted, ...rest } = record;
  if (wanted) tools.ledger.note(rest);
  return DONE;
}

/** How long the download waits; `idle`: until an operator acts; `undefined`: it starts now. */
async function putOffMs(run: Run): Promise<number | "idle" | undefined> {
  const { tools, source, record, key } = run;
  const isComplete = record.complete !== undefined;
  if (record.vanished && !isComplete) return undefined;
  if (isStillHeld(run) || isDoubtful(record) || isForBrowser(record)) return "idle";
  const nowMs = tools.clock.now();
  const quietMs = quietUntil(source.mailbox.quiet, expiryOf(record), nowMs);
  if (quietMs !== undefined && !record.wanted && !isComplete) {
    waitQuietly(run, new Date(quietMs).toISOString());
    // The clock may be set meanwhile.
    return Math.min(quietMs - nowMs, QUIET_LOOK_MS);
  }
  const leftMs = record.wanted ? undefined : waitLeftMs(record, nowMs);
  const right = withRightUntil(record, nowMs);
  if (right !== record) tools.ledger.note(right);
  if (leftMs !== undefined || isComplete) return leftMs;
  // Without room on the disk, intake pauses: no request is made, and nothing is written.
  if (!(await tools.inbox.hasRoom(key))) return tools.patience.diskMs;
  return (await waitsIdly(run)) ? "idle" : undefined;
}

/** A transfer that waits for another reason keeps that reason, which may outlast the quiet hours. */
function waitQuietly(run: Run, until: string): void {
  const { state, reason, until: before } = run.record;
  const isNew = state === "waiting" ? reason === QUIET && until !== before : true;
  if (isNew) run.enter("waiting", { reason: QUIET, until });
}

async function attempt(run: Run): Promise<Next> {
  const { tools, source, record } = run;
  const { passwords } = tools;
  const lackedPassword = waitsForPassword(record);
  const watch = watchRun(run);
  try {
    const supplied = lackedPassword ? await passwords.supplied(source.mailbox, record.trackingId) : undefined;
    const outcome = await advance(run).catch((error: unknown) => settle(run, error));
    const next = await conclude(run, outcome);
    return next === DONE && (await isSuppliedSince(run, supplied)) ? AT_ONCE : next;
  } catch (error) {
    const fault = asFault(error);
    // The disk gives no answer, or also refuses the record: the next run finds the transfer unchanged. It does not trust the
    // stage, whose sync may have failed.
    if (fault.code === "DISK_REFUSED") await run.dropStage().catch(() => {});
    return conclude(run, fault.code === "ROUND_LOST" ? { kind: "lost" } : { kind: "stuck", fault });
  } finally {
    clearInterval(watch);
    tools.large.giveBack(source.service.id, run.key);
    // The next attempt opens another stage, and copies from this one.
    await run.closeStage().catch(() => {});
  }
}

/** Ends a run whose round another process or an operator has ended, and a slow download while others wait. */
function watchRun(run: Run): Timer {
  const { ledger, patience, clock, othersWait } = run.tools;
  const look = async () => {
    const { round, attempts } = run.record;
    // A damaged record is reported elsewhere.
    const end = await ledger.readEnd(run.key, round).catch(() => undefined);
    if (run.isDecided) return;
    if (end !== undefined) run.end("ROUND_LOST");
    if (!run.pace.judgePeriod(patience.slowMs, attempts)) return;
    const isUrgent = expiryOf(run.record) - clock.now() <= SOON_MS;
    // Judged again after the next period.
    if (!isUrgent && (await othersWait().catch(() => false))) run.end("GAVE_WAY");
  };
  return setInterval(() => void look(), Math.min(LOOK_EVERY_MS, patience.slowMs));
}

async function settle(run: Run, error: unknown): Promise<Outcome> {
  const { endedBy, isDecided } = run;
  const own = asFault(error);
  const fault = endedBy === undefined || isDecided ? own : new Fault(endedBy);
  // A refusal that cannot be counted is counted by the next one.
  if (fault.code === "PASSWORD_REFUSED") await refusePassword(run).catch(() => {});
  return outcomeOf(run, fault);
}

/** Whether a password was supplied while others were tried. This job has to try it, because no other one will. */
async function isSuppliedSince(run: Run, before: string | undefined): Promise<boolean> {
  const { tools, source, record } = run;
  if (record.state !== "waiting") return false;
  const supplied = await tools.passwords.supplied(source.mailbox, record.trackingId);
  return supplied !== undefined && supplied !== before;
}

/** The steps, one after the other, until one of them ends the attempt. */
async function advance(run: Run): Promise<Outcome> {
  const found = await findContents(run);
  if (found.kind !== "continue") return found;
  run.signal.throwIfAborted();
  const unpacked = await unpack(run, found.value);
  if (unpacked.kind !== "continue") return unpacked;
  const prepared = await prepareDelivery(run, unpacked.value);
  await checkContent(run, prepared);
  run.signal.throwIfAborted();
  return deliver(run, prepared);
}

/** Complete content: of an earlier attempt, from the quarantine, or from the service. */
async function findContents(run: Run): Promise<Step<Proven>> {
  const complete = await takeComplete(run);
  if (complete !== undefined) return goOn(complete);
  if (run.record.vanished && (await findQuarantined(run)) === undefined) {
    const gone = await askVanished(run);
    if (gone !== undefined) return gone;
  }
  const held = await askRoutes(run, factsOf(run.record));
  if (held !== undefined) return held;
  const wasWaiting = run.record.state === "waiting";
  run.enter("downloading", { attempts: run.record.attempts + 1 });
  // The `password` command reads the note once the supplied file is gone.
  if (wasWaiting) await run.tools.ledger.flush();
  const kept = await takeQuarantined(run);
  if (kept !== undefined) {
    run.learn({ subject: kept.subject });
    return goOn(kept);
  }
  const opened = await openTransfer(run);
  return opened.kind === "continue" ? goOn(await fetchContents(run, opened.value)) : opened;
}

/** What follows if the transfer is gone. If it is not, what it waits for still applies. */
async function askVanished(run: Run): Promise<Outcome | undefined> {
  const gone = await askState(run);
  if (gone !== undefined) return gone;
  if (isForBrowser(run.record)) return { kind: "wait", next: DONE };
  const leftMs = run.record.wanted ? undefined : waitLeftMs(run.record, run.tools.clock.now());
  return leftMs === undefined ? undefined : { kind: "wait", next: { kind: "again", afterMs: leftMs } };
}

/**
 * Routes are asked once more, for content of earlier attempts, and for the names of unpacked files. The first answer says
 * how to unpack.
 */
async function unpack(run: Run, sent: Proven): Promise<Step<Proven>> {
  const ask = (contents: Proven) => askRoutes(run, factsOfContents(run.record, contents));
  const heldAsSent = await ask(sent);
  if (heldAsSent !== undefined) return heldAsSent;
  const contents = await unpackArchives(run, sent);
  const held = contents === sent ? undefined : await ask(contents);
  return held ?? goOn(contents);
}

/** What follows an attempt. Throws the faults of the disk, and `ROUND_LOST`. */
export async function conclude(run: Run, outcome: Outcome): Promise<Next> {
  const { tools } = run;
  switch (outcome.kind) {
    case "stuck":
      return retryStuck(run, outcome.fault);
    case "stopped":
      tools.emit({ type: "transfer-left", record: run.record });
      return DONE;
    case "wait":
      // `outcomeOf` has decided whether a fault is a wait for the disk.
      if (outcome.fault === undefined) clearDiskWait(tools, run.key);
      if (outcome.facts !== undefined) run.enter("waiting", outcome.facts, outcome.fault);
      return outcome.next;
    case "quarantine":
      await quarantine(run, outcome.fault);
      break;
    case "gone":
      await endWithout(run, outcome);
      break;
    case "lost":
      tools.emit({ type: "transfer-lost", record: run.record });
      // Recovery removes what the disk keeps.
      await run.dropStage().catch(() => {});
      break;
    case "delivered":
  }
  clearDiskWait(tools, run.key);
  return DONE;
}

/** Ends the round as `gone`. Throws `ROUND_LOST`. */
async function endWithout(run: Run, gone: Outcome & { kind: "gone" }): Promise<void> {
  const { ledger } = run.tools;
  const { reason, message } = gone;
  const end = run.recordIn("gone", { reason, message });
  if (!(await ledger.end(end))) throw new Fault("ROUND_LOST", { detail: end.trackingId });
  run.noteEnd(end);
  // Recovery removes what the disk keeps.
  await run.dropStage().catch(() => {});
}
