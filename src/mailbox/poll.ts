/** Discovery: every active transfer of a mailbox is noted, and what is not finished gets a job. */
import { forEachLimit } from "../base/concurrency.ts";
import { Deadline } from "../base/deadline.ts";
import { SERVICE_FAULTS } from "../base/fault-codes.ts";
import { asFault, Fault } from "../base/faults.ts";
import type { TransferJob } from "../model/job.ts";
import { findRecipient, type ListedTransfer } from "../model/transfer.ts";
import type { PollQuery, Rejected, VerifiedAddress } from "../service/port.ts";
import { keepLink } from "./links.ts";
import { forget, reconcile } from "./reconcile.ts";
import { type MailboxState, MOST_OPEN } from "./state.ts";
import { leaveAlone, takeUp } from "./take-up.ts";
import type { PollTools } from "./tools.ts";

/** Between two polls of a mailbox that fail, where its interval is shorter. */
const LONGEST_PAUSE_MS = 15 * 60_000;

/** A service that refused fields of the list may give them by now. */
const FIELDS_AGAIN_MS = 60 * 60_000;

/** How many new transfers one poll takes up, and how many reasons it gives for entries that it rejects. */
const MOST_NEW = 1_000;
const MOST_REASONS = 2;

/** What discovery needs; all of it is documented. */
const NEEDED_FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true, state: true },
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
  const { emit, clock, diskFull } = tools;
  const { name } = state.mailbox;
  const deadline = new Deadline(tools.deadline);
  const beganMs = clock.now();
  const pollFacts = () => ({
    tookMs: clock.now() - beganMs,
    tokenValidUntilMs: state.tokens.validUntilMs,
  });
  try {
    const either = AbortSignal.any([signal, deadline.signal]);
    const { unsettled, listed, discovered, postponed, isWhole } = await state.tokens.use(
      (address) => discoverAll(tools, state, address, () => deadline.progress(), either),
      either,
    );
    const isListed = (trackingId: string) => unsettled.has(trackingId) || state.settled.has(trackingId);
    if (isWhole) await reconcile(tools, state, isListed);
    if (postponed > 0)
      throw new Fault("TOO_MANY_TRANSFERS", { detail: `left for later polls: ${postponed}` });
    diskFull.clear(name);
    if (state.failing !== undefined) {
      const { sinceMs, fault } = state.failing;
      emit({ type: "poll-recovered", mailbox: name, failedForMs: clock.now() - sinceMs, fault });
    }
    state.failing = undefined;
    emit({
      type: "poll-succeeded",
      mailbox: name,
      listed,
      discovered,
      unusable: state.rejected.entries,
      ...pollFacts(),
    });
    return { isGood: true, waitMs: 0 };
  } catch (error) {
    const fault = faultOfPoll(error, signal, deadline);
    if (signal.aborted || fault.code === "STOPPED") return { isGood: false, waitMs: 0 };
    const isFirst = state.failing === undefined;
    const sinceMs = state.failing?.sinceMs ?? clock.now();
    state.failing = { sinceMs, fault };
    const waitMs = waitAfter(fault, state.mailbox.pollMs, clock.now() - sinceMs);
    if (fault.code === "DISK_FULL") diskFull.add(name, fault);
    else diskFull.clear(name);
    emit({ type: "poll-failed", mailbox: name, fault, isFirst, waitMs, ...pollFacts() });
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
  const isOfService = fault.word !== undefined || Object.hasOwn(SERVICE_FAULTS, fault.code);
  if (!isOfService || fault.code === "TOO_MANY_TRANSFERS") return 0;
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

/** What the fields have nothing to do with. */
const OTHER_REFUSALS: ReadonlySet<string> = new Set(["STOPPED", "TOKEN_REFUSED", "RATE_LIMITED"]);

/**
 * A service that fails with the wanted fields, and gives the needed ones, is asked for these: for an hour where it refused the
 * others itself. Anything else may be a passing failure of a proxy, and without the wanted fields a message can be missed: the
 * wanted ones are asked for once more first.
 */
async function discoverAll(...parameters: Parameters<typeof discover>): ReturnType<typeof discover> {
  const [, state] = parameters;
  if (performance.now() - state.fieldsRefusedMs > FIELDS_AGAIN_MS) state.fields = "wanted";
  const askOnce = async (fields: MailboxState["fields"]) => {
    state.fields = fields;
    const discovery = await discover(...parameters);
    if (fields === "wanted") state.givesWanted = true;
    return discovery;
  };
  try {
    return await askOnce(state.fields).catch((error: unknown) => {
      const isPassing = isAboutFields(state, asFault(error)) && asFault(error).word !== "service";
      if (!isPassing) throw error;
      return askOnce("wanted");
    });
  } catch (error) {
    const fault = asFault(error);
    if (!isAboutFields(state, fault)) throw error;
    try {
      const discovery = await askOnce("needed");
      if (fault.word === "service") state.fieldsRefusedMs = performance.now();
      else state.fields = "wanted";
      return discovery;
    } catch {
      state.fields = "wanted";
      throw error;
    }
  }
}

/** A service that never gave the wanted fields may fail with them in any way. */
function isAboutFields({ fields, givesWanted }: MailboxState, { code, word }: Fault): boolean {
  if (fields === "needed" || OTHER_REFUSALS.has(code)) return false;
  if (FIELD_REFUSALS.has(code)) return true;
  return !givesWanted && word !== undefined && word !== "unsent";
}

interface Discovery {
  /** Listed transfers that are open. */
  readonly unsettled: ReadonlySet<string>;
  readonly listed: number;
  readonly discovered: number;
  /** Listed transfers that are left for later polls. */
  readonly postponed: number;
  /** The tracking-id of every entry is known. */
  readonly isWhole: boolean;
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
  const jobs: TransferJob[] = [];
  const rejected = { entries: 0, reasons: new Map<string, Fault>() };
  const reject = (fault: Fault) => {
    rejected.entries++;
    if (rejected.reasons.size < MOST_REASONS) rejected.reasons.set(fault.message, fault);
  };
  let isWhole = true;
  const rejectEntry = ({ fault, trackingId }: Rejected) => {
    reject(fault);
    if (trackingId === undefined) isWhole = false;
    else if (state.undelivered.has(trackingId)) unsettled.add(trackingId);
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
    for await (const page of state.service.listReceived(address, query, rejectEntry, signal, isKnown)) {
      await forEachLimit(page, tools.atOnce, take, signal);
    }
    // What the list no longer has is not remembered.
    for (const [trackingId, seen] of state.settled) if (seen !== poll) state.settled.delete(trackingId);
    if (rejected.entries === 0) state.rejected = { entries: 0, summary: "" };
  } finally {
    state.links = links;
    reportRejected(tools, state, rejected.entries, [...rejected.reasons.values()]);
    for (const job of jobs.toSorted((a, b) => a.expiresMs - b.expiresMs)) await tools.queue.add(job);
  }
  return { unsettled, listed: others + state.settled.size, discovered, postponed, isWhole };
}

/** Once per poll, and not again while polls have the same to say. */
function reportRejected(
  { emit }: PollTools,
  state: MailboxState,
  entries: number,
  reasons: readonly Fault[],
): void {
  if (entries === 0) return;
  const summary = [entries, ...reasons.map(({ message }) => message)].join("\n");
  if (summary !== state.rejected.summary) {
    emit({ type: "entries-rejected", mailbox: state.mailbox.name, entries, reasons });
  }
  state.rejected = { entries, summary };
}
