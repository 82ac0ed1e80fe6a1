/** Discovery: every active transfer of a mailbox is noted, and each that is not finished gets a job. */

import { restMs } from "../base/backoff.ts";
import { forEachLimit } from "../base/concurrency.ts";
import { startDeadline } from "../base/deadline.ts";
import { areaOf } from "../base/fault-codes.ts";
import { asFault, Fault, isRestAsked } from "../base/faults.ts";
import { NO_WAIT, type PollWait, type TransferJob } from "../model/job.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { findRecipient, type ListedTransfer, mailboxIdOf } from "../model/transfer.ts";
import type { Rejected, VerifiedAddress } from "../service/port.ts";
import { MAX_OPEN } from "./known-transfers.ts";
import { createModeFinder, MODE_ONLY } from "./modes.ts";
import { readStart } from "./since.ts";
import { jobOf, LIGHT, type MailboxState, type PollFailure, type PollTools } from "./state.ts";
import { rejectOrThrow, takeUp } from "./take-up.ts";

/** The longest pause between two failing polls, unless the poll interval is longer. */
const LONGEST_PAUSE_MS = 15 * 60_000;

/** How many new transfers one poll takes up, and how many reasons it reports for entries that it cannot use. */
const MAX_NEW = 1_000;
const MAX_REASONS = 2;

/** Polls in a row that do not list a transfer. One is not enough: entries can slip between pages while a list is read. */
const POLLS_UNTIL_VANISHED = 2;

export interface PollOutcome extends PollWait {
  readonly isGood: boolean;
}

/** A failure is reported, never thrown. `isProbe`: the service rests, so a light request comes first. */
export async function pollMailbox(
  tools: PollTools,
  state: MailboxState,
  signal: AbortSignal,
  isProbe = false,
): Promise<PollOutcome> {
  const { emit, clock, diskTrouble } = tools;
  const { health, mailbox } = state;
  const { name } = mailbox;
  // After a reload, the name may be spelled in another way.
  const diskKey = mailboxIdOf(name);
  const deadline = startDeadline(tools.deadline);
  const beganMs = clock.now();
  const pollFacts = () => ({ tookMs: clock.now() - beganMs, token: state.tokens.facts });
  try {
    const either = AbortSignal.any([signal, deadline.signal]);
    const onProgress = () => deadline.progress();
    const { listed, discovered, postponed, isWhole, ...waiting } = await state.tokens.use(async (address) => {
      if (isProbe) await state.service.pollReceived(address, LIGHT, either);
      return state.fields.read((fields) => discover(tools, state, address, fields, onProgress, either));
    }, either);
    if (isWhole) await reconcile(tools, state);
    if (postponed > 0)
      throw new Fault("TOO_MANY_TRANSFERS", { detail: `left for later polls: ${postponed}` });
    diskTrouble.clear(diskKey);
    reportRecovery(tools, name, health.succeed({ listed, discovered }));
    const counts = { listed, discovered, unusable: health.unusable };
    emit({ type: "poll-succeeded", mailbox: name, ...counts, ...waiting, ...pollFacts() });
    return { isGood: true, ...NO_WAIT };
  } catch (error) {
    const fault = faultOfPoll(error, signal, deadline.signal);
    if (signal.aborted || fault.code === "STOPPED") return { isGood: false, ...NO_WAIT };
    const { isFirst, failedForMs } = health.fail(fault, clock.now());
    const waitMs = waitAfter(fault, mailbox.pollMs, failedForMs);
    if (fault.code === "DISK_FULL") diskTrouble.add(diskKey, fault);
    else diskTrouble.clear(diskKey);
    emit({ type: "poll-failed", mailbox: name, fault, isFirst, waitMs, ...pollFacts() });
    return { isGood: false, waitMs, ...restAfter(fault) };
  } finally {
    deadline.close();
  }
}

/** `ended`: the failure that is over. */
export function reportRecovery(
  { emit, clock }: Pick<PollTools, "emit" | "clock">,
  mailbox: string,
  ended: PollFailure | undefined,
): void {
  if (ended === undefined) return;
  const { sinceMs, fault } = ended;
  emit({ type: "poll-recovered", mailbox, failedForMs: clock.now() - sinceMs, fault });
}

/**
 * After a failure of the service, the pause is as long as all failures and pauses so far, so it doubles each time. After a
 * failure on our side, such as a full disk, the mailbox is polled at its usual interval.
 */
function waitAfter(fault: Fault, pollMs: number, failedForMs: number): number {
  if (isRestAsked(fault)) return restMs(fault);
  const isOfService = fault.answeredBy !== undefined || areaOf(fault.code) === "service";
  if (!isOfService || fault.code === "TOO_MANY_TRANSFERS") return 0;
  const longestMs = Math.max(LONGEST_PAUSE_MS, pollMs);
  return Math.min(Math.max(failedForMs, pollMs), longestMs);
}

/** What a failure says about the service: it asks for a rest, or gives no answer of its own. */
function restAfter(fault: Fault): Pick<PollWait, "limitMs" | "isSilent"> {
  const { answeredBy, code, retryAfterMs } = fault;
  if (retryAfterMs !== undefined && isRestAsked(fault)) return { limitMs: retryAfterMs };
  const isAnswer = answeredBy === undefined || (answeredBy === "service" && code !== "SERVER_FAULT");
  return { isSilent: !isAnswer };
}

function faultOfPoll(error: unknown, signal: AbortSignal, deadline: AbortSignal): Fault {
  const fault = asFault(error);
  const isOverdue = fault.code === "STOPPED" && !signal.aborted && deadline.aborted;
  return isOverdue ? new Fault("POLL_TOO_LONG", { detail: String(deadline.reason), cause: error }) : fault;
}

interface Discovery {
  readonly listed: number;
  readonly discovered: number;
  /** Listed transfers that are left for later polls. */
  readonly postponed: number;
  /** The tracking-id of every entry is known. */
  readonly isWhole: boolean;
  /** Transfers that wait because their security mode is unknown. */
  readonly modeless: number;
  /** Transfers that may have been delivered before, and wait until an operator decides. */
  readonly doubtful: number;
}

/**
 * Jobs are added after the list was read, or broke off, so that the transfer that expires first goes first. New
 * transfers are taken up in the order of the list. Beyond the limits they are postponed until open ones have ended. The
 * poll then fails visibly, because a postponed transfer that expires is never downloaded.
 */
async function discover(
  tools: PollTools,
  state: MailboxState,
  address: VerifiedAddress,
  fields: string,
  onProgress: () => void,
  signal: AbortSignal,
): Promise<Discovery> {
  const { transfers, health, mailbox } = state;
  const jobs: TransferJob[] = [];
  const unusable = { entries: 0, reasons: new Map<string, Fault>() };
  const reject = (fault: Fault) => {
    unusable.entries++;
    if (unusable.reasons.size < MAX_REASONS) unusable.reasons.set(fault.message, fault);
  };
  let isWhole = true;
  const rejectEntry = ({ fault, trackingId }: Rejected) => {
    reject(fault);
    if (trackingId === undefined) isWhole = false;
    else transfers.noteListed(trackingId);
  };
  let [discovered, unsettled, begun, postponed, modeless, doubtful] = [0, 0, 0, 0, 0, 0];
  const tryBegin = () => {
    const isAllowed = begun < MAX_NEW && transfers.open.size < MAX_OPEN;
    if (isAllowed) begun++;
    else postponed++;
    return isAllowed;
  };
  const skipSettled = (trackingId: string) => {
    onProgress();
    const isSettled = transfers.isSettled(trackingId);
    if (isSettled) transfers.noteListed(trackingId);
    return isSettled;
  };
  const take = async (entry: ListedTransfer) => {
    onProgress();
    const { trackingId } = entry;
    const recipient = findRecipient(entry.recipients, mailbox.email);
    const taking = takeUp(listing, entry, recipient);
    const taken = await taking.catch((error: unknown) => rejectOrThrow(error, reject));
    if (taken.isSettled) transfers.settle(trackingId);
    else unsettled++;
    if (taken.isModeless && mailbox.rulesWithoutMode === undefined) modeless++;
    if (taken.isDoubtful) doubtful++;
    if (!taken.isInactive) transfers.noteListed(trackingId);
    transfers.keepLink(trackingId, recipient?.downloadUrl);
    if (taken.isNew) discovered++;
    if (taken.job !== undefined) jobs.push(taken.job);
  };
  const start = await readStart(tools, state, address, signal);
  const listing = { ...tools, state, start, tryBegin };
  // The whole list reports entries that cannot be read.
  const readAlone = () => state.service.listReceived(address, MODE_ONLY, () => {}, signal, skipSettled);
  const findModes = createModeFinder(tools.ledger, state, readAlone, signal);
  onProgress();
  let isRead = false;
  transfers.startListing();
  try {
    const query = { active: true, fields };
    for await (const page of state.service.listReceived(address, query, rejectEntry, signal, skipSettled)) {
      await forEachLimit(await findModes(page), tools.atOnce(), take, signal);
    }
    transfers.finishListing();
    isRead = true;
  } finally {
    const { entries } = unusable;
    const reasons = [...unusable.reasons.values()];
    // Only a list that was read to its end proves that no entry is unusable.
    const isNews = (isRead || entries > 0) && health.noteUnusable(entries, reasons);
    if (isNews) tools.emit({ type: "entries-rejected", mailbox: mailbox.name, entries, reasons });
    for (const job of jobs.toSorted((a, b) => a.expiresMs - b.expiresMs)) await tools.queue.add(job);
  }
  return { listed: unsettled + transfers.settledCount, discovered, postponed, isWhole, modeless, doubtful };
}

/** After a complete listing. The job of a vanished transfer asks the service for its state, and ends it. */
async function reconcile(tools: PollTools, { transfers, mailbox }: MailboxState): Promise<void> {
  for (const trackingId of transfers.open.keys()) {
    if (transfers.isListed(trackingId)) continue;
    // A damaged record counts as missing here: every start reports it.
    const record = await tools.ledger.find({ mailbox: mailbox.name, trackingId }).catch(() => undefined);
    if (record === undefined || hasEnded(record)) transfers.forget(trackingId);
    // Its delivery no longer depends on the service.
    else if (record.complete !== undefined) await tools.queue.add(jobOf(tools.ledger, record));
    else await countMissedPoll(tools, record);
  }
}

/** Counts in the record, so that polls of other processes, and of earlier runs from cron, count too. */
async function countMissedPoll({ ledger, queue }: PollTools, record: TransferRecord): Promise<void> {
  const missedPolls = Math.min((record.missedPolls ?? 0) + 1, POLLS_UNTIL_VANISHED);
  const vanished = missedPolls === POLLS_UNTIL_VANISHED;
  ledger.note({ ...record, missedPolls, ...(vanished ? { vanished } : {}) });
  if (!vanished) return;
  // Another process may take the job at once.
  await ledger.flush();
  await queue.runNow(jobOf(ledger, record));
}
