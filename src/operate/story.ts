/** The story of one transfer from the work folder: all that `inlet show` and its page in the console say. */

import { listOrders } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { type PeekedFolders, peekLedger } from "../ledger/peek.ts";
import { actionsFor, commandOf } from "../model/actions.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { CommandOptions } from "../model/order.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import type { ActEntry, Story } from "../model/views.ts";
import { readJournal } from "./history.ts";
import { budgetOf, formatTransfer, type MailboxFacts } from "./list.ts";

/** `undefined` for an unknown transfer. Its mailbox need not be configured. Throws `DISK_UNREADABLE` and `RECORD_UNREADABLE`. */
export async function readStory(
  settings: PeekedFolders & { readonly mailboxes: readonly MailboxFacts[] },
  key: TransferKey,
  options: CommandOptions = {},
): Promise<Story | undefined> {
  const mailbox = mailboxOf(settings.mailboxes, key);
  const description = await peekLedger(settings).describe(key, mailbox && budgetOf(mailbox));
  if (description === undefined) return undefined;
  const { record, rounds, staged, kept, files, passwords } = description;
  const actions = actionsFor(record, {
    isExhausted: record.password?.isExhausted === true,
    isHandedOver: rounds.at(-1)?.ended?.handoff?.progress !== "open",
    isConfigured: mailbox !== undefined,
  });
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
    acts: await actsOn(settings.work, record),
    orders: await ordersFor(settings.work, record),
    output: record.output ?? null,
    ...files,
    actions,
    commands: actions.map((act) => commandOf(act, record.trackingId, options)),
  };
}

/** Of more acts, only the newest are shown. */
const MAX_ACTS = 100;

/** Oldest first. */
async function actsOn(work: string, record: TransferRecord): Promise<ActEntry[]> {
  const { discovered } = record.at;
  const sinceMs = discovered === undefined ? undefined : Date.parse(discovered);
  const query = { transfer: record, sinceMs, limit: MAX_ACTS };
  // `inlet history` reports damaged lines.
  return (await readJournal(work, "acts", query)).entries.toReversed();
}

/** A password is the only order that stays elsewhere. */
async function ordersFor(work: string, record: TransferRecord): Promise<Story["orders"]> {
  const given = await listOrders(work);
  return given.flatMap(({ order }) => {
    if (order.trackingId === undefined || nameOf(order) !== nameOf(record)) return [];
    const act = "grants" in order && order.grants !== undefined ? "grant" : order.action;
    return [{ act, ...order.by, at: order.at }];
  });
}
