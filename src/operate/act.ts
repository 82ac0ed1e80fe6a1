/** One act of an operator on one transfer: what is against it, and how it is given. */
import { exists } from "../base/durable.ts";
import { Secret } from "../base/secret.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { peekSteps } from "../handoff/peek.ts";
import { giveOrder } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { OnDamaged } from "../ledger/port.ts";
import { NOT_LISTED, objectionTo } from "../model/actions.ts";
import type { SpentAttempts } from "../model/attempts.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import type { KeyedFilter } from "../model/queries.ts";
import { isDelivered, isHeld, type TransferKey, type TransferRecord } from "../model/record.ts";
import { objectionToSupply } from "../passwords/guard.ts";
import { dropPassword } from "../passwords/stored.ts";
import { selectTransfers } from "./list.ts";

export interface ActTools {
  readonly work: string;
  /** The common inbox. */
  readonly inbox: string;
  readonly state: string;
  readonly mailboxes: readonly MailboxSettings[];
  /** Writes with the rights of the folder's owner. */
  asOwner<Value>(folder: string, write: () => Promise<Value>): Promise<Value>;
  /** Whether a daemon runs that may carry out orders. Asked after an order is given: a daemon that starts later finds it. */
  isRunning(): Promise<boolean>;
  /** Whether the service may still list a transfer. Missing: not known. */
  mayList?(transfer: TransferKey): Promise<boolean>;
  /** Makes the daemon look for orders at once; otherwise it sees them in its folder. */
  runOrders?(): Promise<void>;
}

/** A placeholder for a password that is not entered yet. */
const ANY_PASSWORD = new Secret("\0");

export interface ActObjection {
  /** `unknown`: there is no such transfer. `known`: this very password was refused before. */
  readonly kind: "unknown" | "impossible" | "known";
  /** The end of a sentence, for people. */
  readonly detail: string;
}

/** An order or a password on its way. */
export interface SubmittedAct {
  readonly act: TransferAct;
  readonly before: TransferRecord;
  /** Whether the order is over, or the password was tried. */
  isCarriedOut(): Promise<boolean>;
  /** Of an order: a record that includes it shows its effect. */
  readonly number?: number;
  readonly password?: Secret | undefined;
  /** The file of the password. */
  readonly dropped?: string | undefined;
}

/** Why the act is not possible; `undefined` if it is. `password`: the one to supply; missing before it is entered. */
export async function objectionToAct(
  tools: ActTools,
  act: TransferAct,
  record: TransferRecord | undefined,
  password = ANY_PASSWORD,
): Promise<ActObjection | undefined> {
  const impossible = (detail: string): ActObjection => ({ kind: "impossible", detail });
  if (record === undefined) return { kind: "unknown", detail: "there is no such transfer here" };
  const mailbox = mailboxOf(tools.mailboxes, record);
  if (mailbox === undefined && act !== "discard") {
    return impossible(
      `its mailbox ${record.mailbox} is not in the configuration, so it can only be discarded`,
    );
  }
  if (act === "password" || act === "grant") {
    const attempts = await spentOn(tools, record);
    if (act === "password")
      return objectionToSupply(record, attempts, mailbox?.passwordAttempts ?? 0, password);
    const isExhausted = record.state === "waiting" && attempts.spent >= attempts.allowed;
    return isExhausted ? undefined : impossible("it has attempts left, or does not wait for a password");
  }
  // The hand-off matters only for the retry of a delivered transfer.
  const retriesHandoff = act === "retry" && isDelivered(record);
  const steps = retriesHandoff ? await peekSteps(tools.work, nameOf(record), 1, record.round) : [];
  const isHandedOver = steps.every(({ state }) => state === "done");
  const isGone = act === "redeliver" && (await tools.mayList?.(record)) === false;
  const detail = objectionTo(act, record, isHandedOver) ?? (isGone ? NOT_LISTED : undefined);
  return detail === undefined ? undefined : impossible(detail);
}

/** Every transfer that matches, and for which the act is possible as far as that is known. */
export async function* selectActable(
  tools: ActTools,
  filter: KeyedFilter,
  act: TransferAct,
  onDamaged: OnDamaged,
  signal?: AbortSignal,
): AsyncGenerator<TransferRecord, void, undefined> {
  const isForPassword = act === "password" || act === "grant";
  const wanted = isForPassword ? { ...filter, state: filter.state ?? "waiting" } : filter;
  for await (const record of selectTransfers(peekLedger(tools), wanted, onDamaged, signal)) {
    // Delivered transfers may be very many: a retry skips them unless the filter names a state.
    if (act === "retry" && isDelivered(record) && filter.state === undefined) continue;
    // One that waits because of its security mode needs a password supplied for that very transfer.
    if (act === "password" && record.reason !== "password") continue;
    // Only attempts that an outage left without an answer are granted again. After a refusal, the sender has to be asked.
    if (act === "grant" && (await spentOn(tools, record)).unanswered === 0) continue;
    if ((await objectionToAct(tools, act, record)) === undefined) yield record;
  }
}

/** Gives the order; `objectionToAct` has found nothing against it. */
export async function submitAct(
  tools: ActTools,
  act: Exclude<TransferAct, "password">,
  before: TransferRecord,
  by: Actor,
): Promise<SubmittedAct> {
  const { mailbox, trackingId, round } = before;
  const key = { mailbox, trackingId, round, by };
  const order =
    act === "grant"
      ? ({ ...key, action: "retry", grants: await grantsWithOneMore(tools, before) } as const)
      : { ...key, action: act, isHeld: isHeld(before) };
  const { path, number } = await tools.asOwner(tools.work, () => giveOrder(tools.work, order));
  return { act, before, number, isCarriedOut: async () => !(await exists(path)) };
}

/**
 * Stores a password for the records of one transfer; `objectionToAct` has found nothing against it. `isCommon`: it is meant
 * for every mailbox that received the transfer. The order comes first: the journal lists every password that is used.
 */
export async function supplyPassword(
  { work, inbox, state, asOwner }: ActTools,
  records: readonly TransferRecord[],
  by: Actor,
  password: Secret,
  isCommon: boolean,
): Promise<SubmittedAct[]> {
  const [first] = records;
  if (first === undefined) return [];
  for (const { mailbox, trackingId, round } of records) {
    await asOwner(work, () => giveOrder(work, { action: "password", mailbox, trackingId, round, by }));
  }
  const { trackingId, mailbox } = first;
  const target = { trackingId, mailbox: isCommon ? undefined : mailbox };
  const dropped = await asOwner(state, () => dropPassword(state, target, password));
  const peek = peekLedger({ work, inbox });
  return records.map((before) => {
    const isTried = async () => {
      const now = await peek.find(before);
      return now?.attempts !== before.attempts || now.round !== before.round || now.state !== before.state;
    };
    // `undefined`: not stored, because a name in its path cannot be that of a file.
    const isCarriedOut = async () => dropped === undefined || !(await exists(dropped)) || (await isTried());
    return { act: "password", before, password, dropped, isCarriedOut };
  });
}

/** How many attempts beyond the budget are allowed after one more is granted. */
async function grantsWithOneMore(tools: ActTools, record: TransferRecord): Promise<number> {
  const budget = mailboxOf(tools.mailboxes, record)?.passwordAttempts ?? 0;
  const { spent, allowed } = await spentOn(tools, record);
  return Math.max(spent, allowed) - budget + 1;
}

export function spentOn(tools: ActTools, record: TransferRecord): Promise<SpentAttempts> {
  const budget = mailboxOf(tools.mailboxes, record)?.passwordAttempts ?? 0;
  return peekLedger(tools).attempts.spent(record.trackingId, nameOf(record), budget);
}
