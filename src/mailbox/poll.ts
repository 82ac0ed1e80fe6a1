/** Discovery: every active transfer of a mailbox gets a receipt, and what is not finished gets a job. */
import { asFault, Fault } from "../base/faults.ts";
import { runUntilFailure } from "../base/parallel.ts";
import type { CollectJob } from "../model/job.ts";
import { DISCARDED, isFinal, RECEIPT_VERSION, type Receipt } from "../model/receipt.ts";
import { findRecipient, type ListedTransfer, passwordOfLink, type Recipient } from "../model/transfer.ts";
import type { PollQuery, VerifiedAddress } from "../service/port.ts";
import { reconcile } from "./reconcile.ts";
import type { MailboxState } from "./state.ts";
import { jobOf, type PollTools } from "./tools.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const FAR_FUTURE_MS = 8.64e15;

/** What discovery uses, and nothing else. */
const FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true },
  transfer: { expirationDate: true },
} as const satisfies PollQuery["fields"];

/** Returns whether the poll succeeded; a failure is reported, never thrown. */
export async function pollMailbox(
  tools: PollTools,
  state: MailboxState,
  signal: AbortSignal,
): Promise<boolean> {
  const { watch, clock, diskFull } = tools;
  const { name } = state.mailbox;
  try {
    const { unsettled, discovered } = await state.tokens.use(
      (address) => discover(tools, state, address, signal),
      signal,
    );
    await reconcile(tools, state, (trackingId) => unsettled.has(trackingId) || state.settled.has(trackingId));
    state.health.shaky = false;
    diskFull.isPast(name);
    if (state.failing !== undefined) {
      watch.recovered(name, clock.now() - state.failing.sinceMs, state.failing.fault);
    }
    state.failing = undefined;
    watch.polled(name, unsettled.size + state.settled.size, discovered);
    return true;
  } catch (error) {
    const fault = asFault(error);
    if (signal.aborted || fault.code === "STOPPED") return false;
    const first = state.failing === undefined;
    state.failing = { sinceMs: state.failing?.sinceMs ?? clock.now(), fault };
    if (fault.code === "DISK_FULL") diskFull.meets(name, fault);
    else diskFull.isPast(name);
    watch.pollFailed(name, fault, first);
    return false;
  }
}

/** Jobs are given out when the list was read, or broke off: what expires first goes first, wherever it stood. */
async function discover(
  tools: PollTools,
  state: MailboxState,
  address: VerifiedAddress,
  signal: AbortSignal,
): Promise<{ unsettled: ReadonlySet<string>; discovered: number }> {
  const unsettled = new Set<string>();
  state.polls++;
  const poll = state.polls;
  const links: MailboxState["links"] = new Map();
  const jobs: CollectJob[] = [];
  const complaints = new Set<string>();
  const reject = (fault: Fault) => {
    complaints.add(fault.message);
    if (!state.complaints.has(fault.message)) tools.watch.rejected(state.mailbox.name, fault);
  };
  let discovered = 0;
  try {
    const query = { active: true, fields: FIELDS };
    const isKnown = (trackingId: string) => {
      if (!state.settled.has(trackingId)) return false;
      state.settled.set(trackingId, poll);
      return true;
    };
    const take = async (entry: ListedTransfer) => {
      const recipient = findRecipient(entry.recipients, state.mailbox.email);
      if (recipient?.downloadUrl !== undefined) links.set(entry.trackingId, recipient.downloadUrl);
      const taking = takeUp(tools, state, entry, recipient);
      const taken = await taking.catch((error: unknown) => leaveAlone(error, reject));
      if (taken.settled) state.settled.set(entry.trackingId, poll);
      else unsettled.add(entry.trackingId);
      if (taken.discovered) discovered++;
      if (taken.job !== undefined) jobs.push(taken.job);
    };
    for await (const page of state.service.listReceived(address, query, reject, signal, isKnown)) {
      await runUntilFailure(tools.atOnce, page, take, signal);
    }
    // What the list no longer has is not remembered.
    for (const [trackingId, seen] of state.settled) if (seen !== poll) state.settled.delete(trackingId);
    state.complaints = complaints;
  } finally {
    state.links = links;
    for (const job of jobs.toSorted((a, b) => a.expiresMs - b.expiresMs)) await tools.queue.add(job);
  }
  return { unsettled, discovered };
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
  if (!(error instanceof Fault && ["RECEIPT_UNREADABLE", "BAD_ANSWER"].includes(error.code))) throw error;
  reject(error);
  return LEFT_ALONE;
}

/** One listed transfer: a receipt where there is none, a job where there is something to do. */
async function takeUp(
  tools: PollTools,
  state: MailboxState,
  entry: ListedTransfer,
  recipient: Recipient | undefined,
): Promise<Taken> {
  const { receipts, watch } = tools;
  const { name } = state.mailbox;
  const { trackingId } = entry;
  const known = await receipts.find({ mailbox: name, trackingId });
  if (known !== undefined && isFinal(known) && !mayComeBack(known)) return SETTLED;
  if (recipient?.transferId === undefined) {
    const detail = `${trackingId} names no recipient of the address ${state.mailbox.email}`;
    throw new Fault("BAD_ANSWER", { detail });
  }
  const expiresMs = entry.expires?.getTime() ?? FAR_FUTURE_MS;
  state.undelivered.set(trackingId, { expiresMs });
  const job = jobOf(receipts, name, trackingId, expiresMs, "listed");
  if (known === undefined || known.state === "gone") {
    const receipt = newReceipt(tools, state, entry, recipient, recipient.transferId, known);
    const isNew = await receipts.create(receipt, known);
    state.tried.set(trackingId, undefined);
    if (isNew) watch.discovered(receipt);
    return { settled: false, discovered: isNew, job };
  }
  warnOfExpiry(tools, state, known);
  return { settled: false, discovered: false, job: (await isReady(tools, state, known)) ? job : undefined };
}

/** The service may have been wrong about one that it took away; what an operator did not want stays away. */
function mayComeBack({ state, reason }: Receipt): boolean {
  return state === "gone" && reason !== DISCARDED;
}

/** A transfer that waits is left alone until its time has come, or somebody has supplied a password. */
async function isReady(
  { passwords, clock }: PollTools,
  { tried, mailbox }: MailboxState,
  { state, until, trackingId }: Receipt,
): Promise<boolean> {
  if (state !== "waiting") return true;
  if (until !== undefined) return clock.now() >= Date.parse(until);
  // Rules may have been added since it was tried last; what was refused is never sent again.
  const supplied = await passwords.supplied(mailbox, trackingId);
  const isTried = tried.has(trackingId) && (supplied === undefined || tried.get(trackingId) === supplied);
  tried.set(trackingId, supplied);
  return !isTried;
}

function warnOfExpiry({ watch, clock }: PollTools, state: MailboxState, receipt: Receipt): void {
  const { trackingId, expires } = receipt;
  if (expires === undefined || state.warned.has(trackingId)) return;
  if (Date.parse(expires) - clock.now() > DAY_MS) return;
  state.warned.add(trackingId);
  watch.expiresSoon(receipt);
}

function newReceipt(
  { clock }: PollTools,
  { mailbox }: MailboxState,
  entry: ListedTransfer,
  recipient: Recipient,
  transferId: string,
  /** What was spent on it before it was gone stays spent. */
  known: Receipt | undefined,
): Receipt {
  return {
    version: RECEIPT_VERSION,
    mailbox: mailbox.name,
    trackingId: entry.trackingId,
    transferId,
    sender: entry.sender ?? "",
    state: "discovered",
    reason: undefined,
    message: undefined,
    until: undefined,
    expires: entry.expires?.toISOString(),
    passwordInLink:
      recipient.downloadUrl !== undefined && passwordOfLink(recipient.downloadUrl) !== undefined,
    folder: undefined,
    released: false,
    fence: 0,
    attempts: 0,
    refusedPasswords: known?.refusedPasswords ?? 0,
    unansweredPasswords: known?.unansweredPasswords ?? 0,
    refusedFingerprints: known?.refusedFingerprints ?? [],
    at: { discovered: new Date(clock.now()).toISOString() },
  };
}
