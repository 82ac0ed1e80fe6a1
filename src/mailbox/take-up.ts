/** Takes up one entry of the list: a new transfer is noted, a changed one updated, and an unfinished one gets a job. */
import { isDeepStrictEqual } from "node:util";
import { Fault } from "../base/faults.ts";
import { DAY_MS } from "../base/timetable.ts";
import type { TransferJob } from "../model/job.ts";
import type { Route } from "../model/mailbox.ts";
import { formatLayout, type LayoutValues } from "../model/names.ts";
import {
  ADOPTED,
  DOUBT,
  hasEnded,
  IGNORED,
  isDoubtful,
  isHeld,
  mayComeBack,
  modeOf,
  modeText,
  RECORD_VERSION,
  type TransferKey,
  type TransferRecord,
  waitLeftMs,
  withoutMissing,
  withRightUntil,
  withState,
} from "../model/record.ts";
import {
  type ListedTransfer,
  mailboxIdOf,
  passwordOfLink,
  type Recipient,
  TRANSFER_STATES,
} from "../model/transfer.ts";
import { MAX_OPEN } from "./known-transfers.ts";
import type { Start } from "./since.ts";
import { jobOf, type MailboxState, type PollTools } from "./state.ts";

/** How often a password command is asked again: it may learn the password later. */
const ASK_COMMAND_EVERY_MS = 15 * 60_000;

/** Pause before a transfer that was gone twice is begun again. */
const COME_BACK_MS = 60_000;

const LISTED_TOO_EARLY =
  "It was listed before the start of its mailbox (since), so it is left out. To download it, use inlet retry.";

const MAY_BE_DELIVERED =
  "It may have been delivered before, and its record is missing. inlet adopt leaves it out, and inlet anew delivers it, perhaps once more.";

/** Beyond this many open transfers, those that may have been delivered before are not noted: new ones need the room. */
const MAX_DOUBTFUL = MAX_OPEN / 2;

/** A layout may name the day of the discovery, and the delivery may be older. */
const LAYOUT_DAYS = 8;

/** What all entries of one list need. */
export interface Listing extends PollTools {
  readonly state: MailboxState;
  readonly start: Start;
  /** Counts one more transfer that begins; false if it has to wait for a later poll. */
  tryBegin(): boolean;
}

/** One entry of the list, with its transfer as far as it is known. */
interface Entry {
  readonly listed: ListedTransfer;
  /** Missing if the service lists us under another address. */
  readonly recipient: Recipient | undefined;
  readonly transferId: string;
  /** The record of its last round. */
  readonly known: TransferRecord | undefined;
}

/** The outcome for one entry of the list. */
interface Taken {
  /** Nothing is left to do, now or later. */
  readonly isSettled?: true;
  /** It is not active, and counts as if the service had not listed it. */
  readonly isInactive?: true;
  readonly isNew?: boolean;
  /** No list has given its security mode. */
  readonly isModeless?: boolean;
  /** It may have been delivered before, and waits until an operator decides. */
  readonly isDoubtful?: true;
  readonly job?: TransferJob;
}

const SETTLED: Taken = { isSettled: true };
const LEFT_ALONE: Taken = {};
const DOUBTFUL: Taken = { isDoubtful: true };

/**
 * Passes a failure of one transfer to `reject`, so that the poll continues with the others. Any other failure, such as one
 * of the disk, concerns all, and is thrown.
 */
export function rejectOrThrow(error: unknown, reject: (fault: Fault) => void): Taken {
  if (!(error instanceof Fault && ["RECORD_UNREADABLE", "BAD_ANSWER"].includes(error.code))) throw error;
  reject(error);
  return LEFT_ALONE;
}

export async function takeUp(
  listing: Listing,
  listed: ListedTransfer,
  recipient: Recipient | undefined,
): Promise<Taken> {
  const { mailbox, transfers } = listing.state;
  const { trackingId } = listed;
  const known = await listing.ledger.find({ mailbox: mailbox.name, trackingId });
  const isOpen = known !== undefined && !hasEnded(known);
  const meaning = TRANSFER_STATES[listed.state];
  if (meaning !== "open") {
    // As it counts as not listed, its job will ask for its state, and end it.
    if (isOpen) transfers.noteOpen(trackingId);
    return { ...(meaning === "gone" && !isOpen ? SETTLED : LEFT_ALONE), isInactive: true };
  }
  if (known !== undefined && !isOpen && staysEnded(known, listing.clock.now())) {
    return mayComeBack(known) ? LEFT_ALONE : SETTLED;
  }
  // The service may replace the address of a deleted user: a known transfer keeps its transfer-id.
  const transferId = recipient?.transferId ?? known?.transferId;
  if (transferId === undefined) {
    const detail = `${trackingId} has no recipient with the address ${mailbox.email}`;
    throw new Fault("BAD_ANSWER", { detail });
  }
  const entry = { listed, recipient, transferId, known };
  if (!isOpen) return beginRound(listing, entry);
  transfers.noteOpen(trackingId);
  const record = await learnChanges(listing, entry, known);
  warnOfExpiry(listing, record);
  if (isDoubtful(record)) return DOUBTFUL;
  const mode = modeOf(record).is;
  const taken = { isModeless: mode === "unknown" && record.complete === undefined };
  const isDue = await claimAttempt(listing, record, known);
  return isDue ? { ...taken, job: jobOf(listing.ledger, record) } : taken;
}

/** Begins the next round of a transfer, or records that it is older than the start of its mailbox, or may be delivered. */
async function beginRound(listing: Listing, entry: Entry): Promise<Taken> {
  const { ledger, emit, state, clock, start } = listing;
  const { known } = entry;
  const { trackingId } = entry.listed;
  const isTooEarly = known === undefined && start.isTooEarly(trackingId);
  const verdict = known === undefined ? start.verdictOn(trackingId) : undefined;
  const isIgnored = isTooEarly || verdict === "adopt";
  const isNewHere = known === undefined && !isIgnored && verdict !== "anew";
  if (isNewHere && (verdict === "ask" || (await isInTheWay(listing, entry))))
    return noteDoubtful(listing, entry);
  if (!isIgnored && !listing.tryBegin()) return LEFT_ALONE;
  const record = newRecord(listing, entry);
  if (isIgnored) {
    const facts = { reason: IGNORED, message: isTooEarly ? LISTED_TOO_EARLY : ADOPTED };
    const ended = withState(record, "gone", clock.now(), facts);
    if (await ledger.end(ended)) emit({ type: "transfer-changed", record: ended });
    return SETTLED;
  }
  state.transfers.noteOpen(trackingId);
  const isNew = await (known === undefined
    ? ledger.discover(record)
    : ledger.begin(record, "listed again", "the service"));
  // The job looks for the password with these settings: later polls need not.
  state.transfers.claimPasswordSearch(trackingId, state.mailbox, undefined);
  if (isNew) emit({ type: "transfer-discovered", record });
  return { isNew, job: jobOf(ledger, record) };
}

/** It waits until an operator decides. */
async function noteDoubtful(listing: Listing, entry: Entry): Promise<Taken> {
  const { ledger, emit, state, clock } = listing;
  const { transfers } = state;
  if (transfers.open.size >= MAX_DOUBTFUL) return DOUBTFUL;
  const facts = { reason: DOUBT, message: MAY_BE_DELIVERED };
  const record = withState(newRecord(listing, entry), "waiting", clock.now(), facts);
  transfers.noteOpen(record.trackingId);
  if (await ledger.discover(record)) emit({ type: "transfer-discovered", record });
  return DOUBTFUL;
}

/**
 * Whether a folder with something in it lies where the layout puts this transfer, and no record names the folder. It is a stranger's, or a delivery
 * whose record is missing. A layout that gives one path to several transfers says nothing.
 */
async function isInTheWay(listing: Listing, { listed, transferId }: Entry): Promise<boolean> {
  const { clock, inbox, ledger, mailboxes, state } = listing;
  const { name, layout: common, inbox: own, routing } = state.mailbox;
  const { trackingId, sender = "", subject = "" } = listed;
  const targets: Pick<Route, "layout" | "inbox">[] = [{}, ...(routing?.routes ?? [])];
  for (const { layout = common, inbox: root = own } of targets) {
    if (!/\{(trackingId|transferId)\}/.test(layout)) continue;
    const days = /\{(year|month|day)\}/.test(layout) ? LAYOUT_DAYS : 1;
    for (let day = 0; day < days; day++) {
      const discovered = new Date(clock.now() - day * DAY_MS);
      const values: LayoutValues = { mailbox: name, sender, trackingId, transferId, subject, discovered };
      const folder = formatLayout(layout, values);
      if (!(await inbox.hasDelivery(folder, root))) continue;
      const others = [...mailboxes.states.keys()].filter((other) => other !== mailboxIdOf(name));
      const found = others.map((mailbox) => hasNamed(ledger, { mailbox, trackingId }, folder));
      return !(await Promise.all(found)).includes(true);
    }
  }
  return false;
}

/** Whether the record of any round of a transfer names this folder. */
async function hasNamed(ledger: Listing["ledger"], key: TransferKey, folder: string): Promise<boolean> {
  const record = await ledger.find(key);
  if (record?.folder === folder) return true;
  for (let round = (record?.round ?? 0) - 1; round > 0; round--)
    if ((await ledger.readEnd(ledger.nameOf(key), round))?.folder === folder) return true;
  return false;
}

/**
 * Whether a transfer that has ended stays so, for now. A service may list a transfer that it does not give out: the transfer
 * would end and begin at each poll. It comes back at once the first time, and then after a pause that doubles with each
 * round.
 */
export function staysEnded(known: TransferRecord, nowMs: number): boolean {
  if (!mayComeBack(known)) return true;
  const { round, at } = known;
  if (round === 1 || at.gone === undefined) return false;
  const pauseMs = Math.min(COME_BACK_MS * 2 ** (round - 2), DAY_MS);
  const leftMs = Date.parse(at.gone) + pauseMs - nowMs;
  // More than the whole pause is left only if the clock was set back.
  return leftMs > 0 && leftMs <= pauseMs;
}

/** The list replaces the noted facts of an open transfer. Facts that the list does not give stay. */
async function learnChanges(
  { ledger, clock }: Listing,
  entry: Entry,
  known: TransferRecord,
): Promise<TransferRecord> {
  // It is listed: earlier polls that did not list it no longer count.
  const { vanished, missedPolls, securityMode, ...kept } = known;
  const { passwordInLink = known.passwordInLink, ...facts } = factsOf(entry);
  const listed = { ...kept, transferId: entry.transferId, passwordInLink, ...withoutMissing(facts) };
  const record = withRightUntil(listed, clock.now());
  if (isDeepStrictEqual(withoutMissing(record), withoutMissing(known))) return known;
  ledger.note(record);
  // Another process may take the job at once.
  await ledger.flush();
  return record;
}

/** Whether a job is due: a waiting transfer has none until its time has come, or something that it waits for is known. */
async function claimAttempt(
  { passwords, clock, state }: Listing,
  record: TransferRecord,
  known: TransferRecord,
): Promise<boolean> {
  const { until, trackingId } = record;
  const { transfers, mailbox } = state;
  if (record.state !== "waiting" || modeOf(record).is !== modeOf(known).is) return true;
  // Its routes may have waited for the recipients.
  if (isHeld(record) && !isDeepStrictEqual(record.recipients, known.recipients)) return true;
  if (until !== undefined) return waitLeftMs(record, clock.now()) === undefined;
  // Rules may have been added since the last attempt. A refused password is never sent again.
  const supplied = await passwords.supplied(mailbox, trackingId);
  const asksCommand = mailbox.passwords.some(({ password }) => "ask" in password);
  // Changes with each supplied password, and with each interval in which the command is asked again.
  const mark = asksCommand ? `${supplied} ${Math.floor(clock.now() / ASK_COMMAND_EVERY_MS)}` : supplied;
  return transfers.claimPasswordSearch(trackingId, mailbox, mark);
}

function warnOfExpiry({ emit, clock, state }: Listing, record: TransferRecord): void {
  const { trackingId, expires, complete } = record;
  if (complete !== undefined || expires === undefined || Date.parse(expires) - clock.now() > DAY_MS) return;
  if (state.transfers.warnOnce(trackingId)) emit({ type: "transfer-expiring", record });
}

/** The record of a transfer's first round, or of the round after the known one, which has ended. */
function newRecord({ clock, state }: Listing, entry: Entry): TransferRecord {
  const { listed, transferId, known } = entry;
  const facts = factsOf(entry);
  return {
    version: RECORD_VERSION,
    mailbox: state.mailbox.name,
    trackingId: listed.trackingId,
    transferId,
    sender: listed.sender ?? "",
    state: "discovered",
    round: (known?.round ?? 0) + 1,
    ...facts,
    passwordInLink: facts.passwordInLink ?? false,
    attempts: 0,
    at: { discovered: new Date(clock.now()).toISOString() },
  };
}

/** Facts of the list; each is missing if the list does not give it. Protection and recipients stay as first listed. */
function factsOf({ listed, recipient, known }: Entry) {
  const { expires, passwordMode, securityMode: mode, message, subject } = listed;
  const recipients = { ...listed.addressees, ...known?.recipients };
  const link = recipient?.downloadUrl;
  const passwordInLink = link && passwordOfLink(link) !== undefined;
  // The service shows the link and the message only to their recipient, so "none" counts only with a link.
  const isMessageKnown = message.is === "given" || (message.is === "none" && link !== undefined);
  return {
    expires: expires?.toISOString(),
    passwordInLink,
    hasNoPassword: !passwordInLink && passwordMode?.toUpperCase() === "NONE" ? true : undefined,
    securityMode: known?.securityMode || modeText(mode),
    passwordMode: known?.passwordMode ?? passwordMode,
    recipients: Object.keys(recipients).length > 0 ? recipients : undefined,
    hasMessage: isMessageKnown ? message.is === "given" : undefined,
    messageFileId: message.is === "given" ? message.value : undefined,
    subject: subject?.trim() || undefined,
  };
}
