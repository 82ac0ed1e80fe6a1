/** Discovery: every active transfer of a mailbox is noted, and what is not finished gets a job. */
import { isDeepStrictEqual } from "node:util";
import { Deadline } from "../base/deadline.ts";
import { asFault, Fault } from "../base/faults.ts";
import { runUntilFailure } from "../base/parallel.ts";
import type { Secret } from "../base/secret.ts";
import { SERVICE_FAULTS } from "../base/service-faults.ts";
import type { CollectJob } from "../model/job.ts";
import { hasEnded, isWaitOver, mayComeBack, RECORD_VERSION, type TransferRecord } from "../model/record.ts";
import { findRecipient, type ListedTransfer, passwordOfLink, type Recipient } from "../model/transfer.ts";
import type { PollQuery, VerifiedAddress } from "../service/port.ts";
import { keepLink } from "./links.ts";
import { forget, reconcile } from "./reconcile.ts";
import { type MailboxState, MOST_OPEN } from "./state.ts";
import { jobOf, type PollTools } from "./tools.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const FAR_FUTURE_MS = 8.64e15;
/** Between two polls of a mailbox that fail, where its interval is shorter. */
const LONGEST_PAUSE_MS = 15 * 60_000;

/** How many new transfers one poll takes up, and how many reasons it gives for entries that it rejects. */
const MOST_NEW = 1_000;
const MOST_REASONS = 2;

/** What discovery needs; all of it is documented. */
const NEEDED_FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true },
  transfer: { expirationDate: true },
} as const satisfies PollQuery["fields"];

/** What it can use besides. A service may refuse to select what it does not know. */
export const WANTED_FIELDS = {
  ...NEEDED_FIELDS,
  transfer: {
    ...NEEDED_FIELDS.transfer,
    confidentialMessageFileId: true,
    securityMode: { config: { passwordMode: true } },
  },
} as const satisfies PollQuery["fields"];

export interface PollOutcome {
  readonly isGood: boolean;
  /** For how long the mailbox is not to be polled again; 0: its interval decides. */
  readonly waitMs: number;
}

/** A failure is reported, never thrown. */
export async function pollMailbox(
  tools: PollTools,
  state: MailboxState,
  signal: AbortSignal,
): Promise<PollOutcome> {
  const { watch, clock, diskFull } = tools;
  const { name } = state.mailbox;
  const deadline = new Deadline(tools.deadline);
  try {
    const either = AbortSignal.any([signal, deadline.signal]);
    const { unsettled, listed, discovered, postponed } = await state.tokens.use(
      (address) => discoverAll(tools, state, address, () => deadline.progress(), either),
      either,
    );
    await reconcile(tools, state, (trackingId) => unsettled.has(trackingId) || state.settled.has(trackingId));
    if (postponed > 0)
      throw new Fault("TOO_MANY_TRANSFERS", { detail: `left for later polls: ${postponed}` });
    diskFull.isPast(name);
    if (state.failing !== undefined) {
      watch.recovered(name, clock.now() - state.failing.sinceMs, state.failing.fault);
    }
    state.failing = undefined;
    watch.polled(name, listed, discovered);
    return { isGood: true, waitMs: 0 };
  } catch (error) {
    const fault = faultOfPoll(error, signal, deadline);
    if (signal.aborted || fault.code === "STOPPED") return { isGood: false, waitMs: 0 };
    const first = state.failing === undefined;
    const sinceMs = state.failing?.sinceMs ?? clock.now();
    state.failing = { sinceMs, fault };
    const waitMs = waitAfter(fault, state.mailbox.pollMs, clock.now() - sinceMs);
    if (fault.code === "DISK_FULL") diskFull.meets(name, fault);
    else diskFull.isPast(name);
    watch.pollFailed(name, fault, first, waitMs);
    return { isGood: false, waitMs };
  } finally {
    deadline.close();
  }
}

/**
 * A mailbox whose service fails is left alone for as long as it has failed so far, which doubles the pause each time.
 * What is wrong on this side, such as a full disk, is looked at again at every interval.
 */
function waitAfter(fault: Fault, pollMs: number, failedForMs: number): number {
  if (!Object.hasOwn(SERVICE_FAULTS, fault.code) || fault.code === "TOO_MANY_TRANSFERS") return 0;
  const longestMs = Math.max(LONGEST_PAUSE_MS, pollMs);
  const pauseMs = Math.min(Math.max(failedForMs, pollMs), longestMs);
  return Math.max(pauseMs, fault.retryAfterMs ?? 0);
}

function faultOfPoll(error: unknown, signal: AbortSignal, { reason }: Deadline): Fault {
  const fault = asFault(error);
  const isOverdue = fault.code === "STOPPED" && !signal.aborted && reason !== undefined;
  return isOverdue ? new Fault("POLL_TOO_LONG", { detail: reason, cause: error }) : fault;
}

/** How a service, or a firewall before it, may refuse fields that the interface does not name. */
const FIELD_REFUSALS: ReadonlySet<string> = new Set([
  "BAD_REQUEST",
  "NOT_FOUND",
  "NO_SUCH_ENDPOINT",
  "NOT_SUPPORTED",
  "ACCESS_REFUSED",
  "POLICY_REFUSED",
]);

/** A service that refuses the wanted fields, and gives the needed ones, is asked for these from then on. */
async function discoverAll(...parameters: Parameters<typeof discover>): ReturnType<typeof discover> {
  const [, state] = parameters;
  try {
    const discovery = await discover(...parameters);
    state.fields ??= "wanted";
    return discovery;
  } catch (error) {
    if (state.fields !== undefined || !FIELD_REFUSALS.has(asFault(error).code)) throw error;
    state.fields = "needed";
    return discover(...parameters).catch(() => {
      state.fields = undefined;
      throw error;
    });
  }
}

interface Discovery {
  /** Listed transfers that are open. */
  readonly unsettled: ReadonlySet<string>;
  readonly listed: number;
  readonly discovered: number;
  /** Listed transfers that are left for later polls. */
  readonly postponed: number;
}

/**
 * Jobs are given out when the list was read, or broke off: what expires first goes first, wherever it stood. New transfers
 * are taken up in the order of the list. Beyond the bounds they are postponed, until open ones have ended; one that expires
 * before that is never downloaded, which is why the poll fails visibly.
 */
async function discover(
  tools: PollTools,
  state: MailboxState,
  address: VerifiedAddress,
  onProgress: () => void,
  signal: AbortSignal,
): Promise<Discovery> {
  const unsettled = new Set<string>();
  state.polls++;
  const poll = state.polls;
  const links: MailboxState["links"] = new Map();
  const jobs: CollectJob[] = [];
  const rejected = { entries: 0, reasons: new Map<string, Fault>() };
  const reject = (fault: Fault) => {
    rejected.entries++;
    if (rejected.reasons.size < MOST_REASONS) rejected.reasons.set(fault.message, fault);
  };
  let discovered = 0;
  let others = 0;
  let begun = 0;
  let postponed = 0;
  const mayBegin = () => {
    const hasPlace = begun < MOST_NEW && state.undelivered.size < MOST_OPEN;
    if (hasPlace) begun++;
    else postponed++;
    return hasPlace;
  };
  try {
    const query = { active: true, fields: state.fields === "needed" ? NEEDED_FIELDS : WANTED_FIELDS };
    const isKnown = (trackingId: string) => {
      onProgress();
      if (!state.settled.has(trackingId)) return false;
      state.settled.set(trackingId, poll);
      return true;
    };
    const take = async (entry: ListedTransfer) => {
      onProgress();
      const recipient = findRecipient(entry.recipients, state.mailbox.email);
      const taking = takeUp(tools, state, entry, recipient, mayBegin);
      const taken = await taking.catch((error: unknown) => leaveAlone(error, reject));
      if (taken.settled) {
        state.settled.set(entry.trackingId, poll);
        forget(state, entry.trackingId);
      } else others++;
      if (state.undelivered.has(entry.trackingId)) {
        unsettled.add(entry.trackingId);
        keepLink(links, entry.trackingId, recipient?.downloadUrl);
      }
      if (taken.discovered) discovered++;
      if (taken.job !== undefined) jobs.push(taken.job);
    };
    for await (const page of state.service.listReceived(address, query, reject, signal, isKnown)) {
      await runUntilFailure(tools.atOnce, page, take, signal);
    }
    // What the list no longer has is not remembered.
    for (const [trackingId, seen] of state.settled) if (seen !== poll) state.settled.delete(trackingId);
    if (rejected.entries === 0) state.rejected = { entries: 0, summary: "" };
  } finally {
    state.links = links;
    reportRejected(tools, state, rejected.entries, [...rejected.reasons.values()]);
    for (const job of jobs.toSorted((a, b) => a.expiresMs - b.expiresMs)) await tools.queue.add(job);
  }
  return { unsettled, listed: others + state.settled.size, discovered, postponed };
}

/** Once per poll, and not again while polls have the same to say. */
function reportRejected(
  { watch }: PollTools,
  state: MailboxState,
  entries: number,
  reasons: readonly Fault[],
): void {
  if (entries === 0) return;
  const summary = [entries, ...reasons.map(({ message }) => message)].join("\n");
  if (summary !== state.rejected.summary) watch.rejected(state.mailbox.name, entries, reasons);
  state.rejected = { entries, summary };
}

/** What became of one entry of the list. */
interface Taken {
  /** Nothing is left to do, now or later. */
  readonly settled: boolean;
  readonly discovered: boolean;
  readonly job: CollectJob | undefined;
}

const SETTLED: Taken = { settled: true, discovered: false, job: undefined };
const LEFT_ALONE: Taken = { settled: false, discovered: false, job: undefined };

/** What is wrong with one transfer does not keep the others back; what is wrong with the disk concerns all. */
function leaveAlone(error: unknown, reject: (fault: Fault) => void): Taken {
  if (!(error instanceof Fault && ["RECORD_UNREADABLE", "BAD_ANSWER"].includes(error.code))) throw error;
  reject(error);
  return LEFT_ALONE;
}

/** One listed transfer: a note where there is none and one may begin, a job where there is something to do. */
async function takeUp(
  tools: PollTools,
  state: MailboxState,
  entry: ListedTransfer,
  recipient: Recipient | undefined,
  mayBegin: () => boolean,
): Promise<Taken> {
  const { ledger, watch } = tools;
  const { name } = state.mailbox;
  const { trackingId } = entry;
  const known = await ledger.find({ mailbox: name, trackingId });
  if (known !== undefined && hasEnded(known) && !mayComeBack(known)) return SETTLED;
  // A recipient whose address was replaced by a proxy address keeps its transfer-id.
  const transferId = recipient?.transferId ?? known?.transferId;
  if (transferId === undefined) {
    const detail = `${trackingId} names no recipient of the address ${state.mailbox.email}`;
    throw new Fault("BAD_ANSWER", { detail });
  }
  const isOpen = known !== undefined && !hasEnded(known);
  if (!isOpen && !mayBegin()) return LEFT_ALONE;
  const expiresMs = entry.expires?.getTime() ?? FAR_FUTURE_MS;
  state.undelivered.set(trackingId, { expiresMs });
  const job = jobOf(ledger, name, trackingId, expiresMs);
  if (known === undefined || hasEnded(known)) {
    const record = newRecord(tools, state, entry, recipient, transferId, known);
    const isNew = await (known === undefined
      ? ledger.discover(record)
      : ledger.begin(record, "listed again", "the service"));
    state.tried.set(trackingId, undefined);
    if (isNew) watch.discovered(record);
    return { settled: false, discovered: isNew, job };
  }
  const record = await learnChanges(tools, entry, recipient, known);
  warnOfExpiry(tools, state, record);
  return { settled: false, discovered: false, job: (await isReady(tools, state, record)) ? job : undefined };
}

/** What the list says now of a transfer that is open replaces what was noted. What it does not say stays. */
async function learnChanges(
  { ledger }: PollTools,
  { expires }: ListedTransfer,
  recipient: Recipient | undefined,
  known: TransferRecord,
): Promise<TransferRecord> {
  const { vanished, missedPolls, ...kept } = known;
  const record = {
    ...kept,
    transferId: recipient?.transferId ?? known.transferId,
    expires: expires?.toISOString() ?? known.expires,
    passwordInLink:
      recipient?.downloadUrl === undefined ? known.passwordInLink : hasPassword(recipient.downloadUrl),
  };
  if (isDeepStrictEqual(record, known)) return known;
  ledger.note(record);
  // Another process may take the job at once.
  await ledger.flush();
  return record;
}

/** A transfer that waits is left alone until its time has come, or somebody has supplied a password. */
async function isReady(
  { passwords, clock }: PollTools,
  { tried, mailbox }: MailboxState,
  { state, until, trackingId }: TransferRecord,
): Promise<boolean> {
  if (state !== "waiting") return true;
  if (until !== undefined) return isWaitOver(until, clock.now());
  // Rules may have been added since it was tried last; what was refused is never sent again.
  const supplied = await passwords.supplied(mailbox, trackingId);
  const isTried = tried.has(trackingId) && (supplied === undefined || tried.get(trackingId) === supplied);
  tried.set(trackingId, supplied);
  return !isTried;
}

function warnOfExpiry({ watch, clock }: PollTools, state: MailboxState, record: TransferRecord): void {
  const { trackingId, expires } = record;
  if (expires === undefined || state.warned.has(trackingId)) return;
  if (Date.parse(expires) - clock.now() > DAY_MS) return;
  state.warned.add(trackingId);
  watch.expiresSoon(record);
}

function hasPassword(link: Secret): boolean {
  return passwordOfLink(link) !== undefined;
}

/** `known`: how its last round ended. */
function newRecord(
  { clock }: PollTools,
  { mailbox }: MailboxState,
  entry: ListedTransfer,
  recipient: Recipient | undefined,
  transferId: string,
  known: TransferRecord | undefined,
): TransferRecord {
  const { downloadUrl } = recipient ?? {};
  const passwordInLink = downloadUrl !== undefined && hasPassword(downloadUrl);
  const { passwordMode, messageFile } = entry;
  return {
    version: RECORD_VERSION,
    mailbox: mailbox.name,
    trackingId: entry.trackingId,
    transferId,
    sender: entry.sender ?? "",
    state: "discovered",
    round: (known?.round ?? 0) + 1,
    reason: undefined,
    message: undefined,
    until: undefined,
    expires: entry.expires?.toISOString(),
    passwordInLink,
    hasNoPassword: !passwordInLink && passwordMode?.toUpperCase() === "NONE" ? true : undefined,
    // The service withholds both from anyone but the recipient: one that is there vouches for the other.
    hasMessage: messageFile === "none" && downloadUrl === undefined ? undefined : asBoolean(messageFile),
    folder: undefined,
    attempts: 0,
    at: { discovered: new Date(clock.now()).toISOString() },
  };
}

function asBoolean(messageFile: ListedTransfer["messageFile"]): boolean | undefined {
  return messageFile === undefined ? undefined : messageFile === "present";
}
