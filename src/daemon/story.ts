/** The story of one transfer from the work folder: all that `inlet show` and its page in the console say. */
import { readActs } from "../ledger/history.ts";
import { type PeekedFolders, peekLedger, type TransferDescription } from "../ledger/peek.ts";
import { objectionTo } from "../mailbox/orders.ts";
import { mailboxOf, serviceIdOf } from "../model/mailbox.ts";
import { ACTIONS, commandFor, type TransferAct } from "../model/order.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import type { ActEntry, Story } from "../model/views.ts";
import { formatTransfer, type MailboxFacts } from "./transfers.ts";

/** The options that its commands need. */
interface StoryOptions {
  readonly config?: string | undefined;
  readonly mailbox?: string | undefined;
}

/** `undefined` for an unknown transfer. Its mailbox need not be configured. Throws `DISK_UNREADABLE` and `RECORD_UNREADABLE`. */
export async function readStory(
  folders: PeekedFolders,
  key: TransferKey,
  mailboxes: readonly MailboxFacts[],
  options: StoryOptions = {},
): Promise<Story | undefined> {
  const mailbox = mailboxOf(mailboxes, key);
  const service = mailbox && {
    serviceId: serviceIdOf(mailbox.service.baseUrl),
    passwordAttempts: mailbox.passwordAttempts,
  };
  const description = await peekLedger(folders).describe(key, service);
  if (description === undefined) return undefined;
  return formatStory(description, mailbox, options, await actsOn(folders.work, description.record));
}

/** Of more acts, only the newest are shown. */
const MAX_ACTS = 100;

/** Oldest first. */
async function actsOn(work: string, record: TransferRecord): Promise<ActEntry[]> {
  const { discovered } = record.at;
  const sinceMs = discovered === undefined ? undefined : Date.parse(discovered);
  const query = { transfer: record, sinceMs, limit: MAX_ACTS };
  // `inlet history` reports damaged lines.
  return (await Array.fromAsync(readActs(work, query, () => {}))).toReversed();
}

function formatStory(
  description: TransferDescription,
  mailbox: MailboxFacts | undefined,
  options: StoryOptions,
  acts: readonly ActEntry[],
): Story {
  const { record, rounds, staged, kept, files, passwords } = description;
  const actions = listActions(description, mailbox !== undefined);
  return {
    ...formatTransfer(record, passwords?.spent),
    passwordAttempts: passwords?.allowed ?? null,
    attempts: record.attempts,
    acknowledged: record.acknowledged ?? false,
    routedBecause: record.routedBecause ?? null,
    allowedBy: record.allowedBy ?? null,
    rounds,
    staged,
    kept: kept ?? null,
    acts,
    output: record.output ?? null,
    ...files,
    actions,
    commands: commandsFor({ trackingId: record.trackingId, actions }, options),
  };
}

/**
 * The actions that apply to the transfer in its state. Without its mailbox, it can only be discarded. Where a password is
 * missing, a retry does not help.
 */
function listActions({ record, rounds }: TransferDescription, isConfigured: boolean): TransferAct[] {
  const isHandedOver = rounds.at(-1)?.ended?.handoff?.progress !== "open";
  const needsPassword = record.state === "waiting" && record.reason === "password";
  const actions = ACTIONS.filter(
    (action) =>
      (isConfigured || action === "discard") && objectionTo(action, record, isHandedOver) === undefined,
  );
  if (!needsPassword || !isConfigured) return actions;
  const supply = record.password?.isExhausted === true ? "grant" : "password";
  return [supply, ...actions.filter((action) => action !== "retry")];
}

/** The commands for a transfer's acts. */
export function commandsFor(
  { trackingId, actions }: Pick<Story, "trackingId" | "actions">,
  options: StoryOptions,
): string[] {
  return actions.map((action) =>
    action === "grant"
      ? commandFor("password", trackingId, { ...options, onceMore: true })
      : commandFor(action, trackingId, options),
  );
}
