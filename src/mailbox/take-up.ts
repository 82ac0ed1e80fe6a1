/** Takes up one entry of the list: a new transfer is noted, a changed one updated, and an unfinished one gets a job. */
import { isDeepStrictEqual } from "node:util";
import { Fault } from "../base/faults.ts";
import type { TransferJob } from "../model/job.ts";
import {
  expiryOf,
  hasEnded,
  IGNORED,
  mayComeBack,
  RECORD_VERSION,
  type TransferRecord,
  UNKNOWN_EXPIRY_MS,
  waitLeftMs,
  withoutMissing,
  withState,
} from "../model/record.ts";
import { type ListedTransfer, passwordOfLink, type Recipient, TRANSFER_STATES } from "../model/transfer.ts";
import type { IsTooEarly } from "./since.ts";
import type { MailboxState } from "./state.ts";
import { jobOf, type PollTools } from "./tools.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** How often a password command is asked again: it may learn the password later. */
const ASK_COMMAND_EVERY_MS = 15 * 60_000;

/** Pause before a transfer that was gone twice is begun again. */
const COME_BACK_MS = 60_000;

/** The outcome for one entry of the list. */
interface Taken {
  /** Nothing is left to do, now or later. */
  readonly isSettled?: true;
  /** It is not active, and counts as if the service had not listed it. */
  readonly isInactive?: true;
  readonly isNew?: boolean;
  readonly job?: TransferJob;
}

const SETTLED: Taken = { isSettled: true };
const LEFT_ALONE: Taken = {};

/**
 * Passes a failure of one transfer to `reject`, so that the poll continues with the others. Any other failure, such as one
 * of the disk, concerns all, and is thrown.
 */
export function leaveAlone(error: unknown, reject: (fault: Fault) => void): Taken {
  if (!(error instanceof Fault && ["RECORD_UNREADABLE", "BAD_ANSWER"].includes(error.code))) throw error;
  reject(error);
  return LEFT_ALONE;
}

/** `tryBegin`: counts one more transfer that begins; false if it has to wait for a later poll. */
export async function takeUp(
  tools: PollTools,
  state: MailboxState,
  entry: ListedTransfer,
  recipient: Recipient | undefined,
  tryBegin: () => boolean,
  isTooEarly: IsTooEarly,
): Promise<Taken> {
  const { ledger, emit } = tools;
  const { name } = state.mailbox;
  const { trackingId } = entry;
  const known = await ledger.find({ mailbox: name, trackingId });
  const skipped = trySkip(state, entry, known, tools.clock.now());
  if (skipped !== undefined) return skipped;
  // The service may replace the address of a deleted user: a known transfer keeps its transfer-id.
  const transferId = recipient?.transferId ?? known?.transferId;
  if (transferId === undefined) {
    const detail = `${trackingId} has no recipient with the address ${state.mailbox.email}`;
    throw new Fault("BAD_ANSWER", { detail });
  }
  if (known === undefined && isTooEarly(trackingId)) {
    await ignore(tools, newRecord(tools, state, entry, recipient, transferId, undefined));
    return SETTLED;
  }
  const isOpen = known !== undefined && !hasEnded(known);
  if (!isOpen && !tryBegin()) return LEFT_ALONE;
  const expiresMs = entry.expires?.getTime() ?? UNKNOWN_EXPIRY_MS;
  state.transfers.noteOpen(trackingId, expiresMs);
  const job = jobOf(ledger, name, trackingId, expiresMs);
  if (!isOpen) {
    const record = newRecord(tools, state, entry, recipient, transferId, known);
    const isNew = await (known === undefined
      ? ledger.discover(record)
      : ledger.begin(record, "listed again", "the service"));
    // The job looks for the password with these settings: later polls need not.
    state.transfers.claimPasswordSearch(trackingId, state.mailbox, undefined);
    if (isNew) emit({ type: "transfer-discovered", record });
    return { isNew, job };
  }
  const record = await learnChanges(tools, entry, recipient, known);
  warnOfExpiry(tools, state, record);
  return (await claimAttempt(tools, state, record)) ? { job } : LEFT_ALONE;
}

/** Records a transfer that is older than the start of its mailbox. */
async function ignore({ ledger, clock, emit }: PollTools, record: TransferRecord): Promise<void> {
  const message =
    "It was listed before the start of its mailbox (since), so it is left out. To download it, use inlet retry.";
  const ended = withState(record, "gone", clock.now(), { reason: IGNORED, message });
  if (await ledger.end(ended)) emit({ type: "transfer-changed", record: ended });
}

/** The outcome for an entry that is not active, or whose transfer stays ended. `undefined` if it is taken up. */
function trySkip(
  { transfers }: MailboxState,
  entry: ListedTransfer,
  known: TransferRecord | undefined,
  nowMs: number,
): Taken | undefined {
  const isOpen = known !== undefined && !hasEnded(known);
  const meaning = TRANSFER_STATES[entry.state];
  if (meaning === "open") {
    if (known === undefined || isOpen || !staysEnded(known, nowMs)) return undefined;
    return mayComeBack(known) ? LEFT_ALONE : SETTLED;
  }
  if (isOpen) transfers.noteOpen(entry.trackingId, expiryOf(known));
  return { ...(meaning === "gone" && !isOpen ? SETTLED : LEFT_ALONE), isInactive: true };
}

/** Whether a transfer that has ended stays so, for now. */
export function staysEnded(known: TransferRecord, nowMs: number): boolean {
  return !mayComeBack(known) || !isTimeToComeBack(known, nowMs);
}

/**
 * A service may list a transfer that it does not give out: the transfer would end and begin at each poll. It comes back at
 * once the first time, and then after a pause that doubles with each round.
 */
function isTimeToComeBack({ round, at }: TransferRecord, nowMs: number): boolean {
  if (round === 1 || at.gone === undefined) return true;
  const pauseMs = Math.min(COME_BACK_MS * 2 ** (round - 2), DAY_MS);
  const leftMs = Date.parse(at.gone) + pauseMs - nowMs;
  // More than the whole pause is left only if the clock was set back.
  return !(leftMs > 0 && leftMs <= pauseMs);
}

/** The list replaces the noted facts of an open transfer. Facts that the list does not give stay. */
async function learnChanges(
  { ledger }: PollTools,
  entry: ListedTransfer,
  recipient: Recipient | undefined,
  known: TransferRecord,
): Promise<TransferRecord> {
  const { vanished, missedPolls, ...kept } = known;
  const transferId = recipient?.transferId ?? known.transferId;
  const { passwordInLink = known.passwordInLink, ...facts } = factsOf(entry, recipient, known);
  const record = { ...kept, transferId, passwordInLink, ...withoutMissing(facts) };
  if (isDeepStrictEqual(withoutMissing(record), withoutMissing(known))) return known;
  ledger.note(record);
  // Another process may take the job at once.
  await ledger.flush();
  return record;
}

/** Whether a job is due: a waiting transfer has none until its time has come, or a password was supplied. */
async function claimAttempt(
  { passwords, clock }: PollTools,
  { transfers, mailbox }: MailboxState,
  record: TransferRecord,
): Promise<boolean> {
  const { state, until, trackingId } = record;
  if (state !== "waiting") return true;
  if (until !== undefined) return waitLeftMs(record, clock.now()) === undefined;
  // Rules may have been added since the last attempt. A refused password is never sent again.
  const supplied = await passwords.supplied(mailbox, trackingId);
  const asksCommand = mailbox.passwords.some(({ password }) => "ask" in password);
  // Changes with each supplied password, and with each interval in which the command is asked again.
  const mark = asksCommand ? `${supplied} ${Math.floor(clock.now() / ASK_COMMAND_EVERY_MS)}` : supplied;
  return transfers.claimPasswordSearch(trackingId, mailbox, mark);
}

function warnOfExpiry({ emit, clock }: PollTools, state: MailboxState, record: TransferRecord): void {
  const { trackingId, expires, complete } = record;
  if (complete !== undefined || expires === undefined || Date.parse(expires) - clock.now() > DAY_MS) return;
  if (state.transfers.warnOnce(trackingId)) emit({ type: "transfer-expiring", record });
}

/** `known`: the record of its last round, which has ended. */
function newRecord(
  { clock }: PollTools,
  { mailbox }: MailboxState,
  entry: ListedTransfer,
  recipient: Recipient | undefined,
  transferId: string,
  known: TransferRecord | undefined,
): TransferRecord {
  const facts = factsOf(entry, recipient, known);
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
    ...facts,
    passwordInLink: facts.passwordInLink ?? false,
    folder: undefined,
    attempts: 0,
    at: { discovered: new Date(clock.now()).toISOString() },
  };
}

/** Facts of the list; each is missing if the list does not give it. All but the security mode may change. */
function factsOf(
  { expires, passwordMode, securityMode, messageFile, messageFileId, subject }: ListedTransfer,
  recipient: Recipient | undefined,
  known: TransferRecord | undefined,
) {
  const link = recipient?.downloadUrl;
  const passwordInLink = link && passwordOfLink(link) !== undefined;
  // The service shows the link and the message only to their recipient, so "none" counts only with a link.
  const isMessageKnown = messageFile === "present" || (messageFile === "none" && link !== undefined);
  return {
    expires: expires?.toISOString(),
    passwordInLink,
    hasNoPassword: !passwordInLink && passwordMode?.toUpperCase() === "NONE" ? true : undefined,
    securityMode: known?.securityMode ?? securityMode,
    hasMessage: isMessageKnown ? messageFile === "present" : undefined,
    messageFileId,
    subject: subject?.trim() || undefined,
  };
}
