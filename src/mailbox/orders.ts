/**
 * Carries out what an operator wants done with one transfer. Doing it twice does the same as once, also when it was
 * settled again between the two: an order names the receipt that it was given for.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { faultOfDisk, syncFolder } from "../base/durable.ts";
import type { Outage } from "../base/outage.ts";
import type { Handoffs } from "../handoff/port.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Action, Order } from "../model/order.ts";
import { DISCARDED, isFinal, isSettledForPeople, type Receipt } from "../model/receipt.ts";
import type { Passwords } from "../passwords/port.ts";
import type { JobQueue } from "../queue/port.ts";
import type { Receipts } from "../receipts/port.ts";
import type { MailboxState } from "./state.ts";
import { jobOf } from "./tools.ts";

export interface OrderTools {
  readonly receipts: Receipts;
  readonly inbox: Inbox;
  readonly passwords: Passwords;
  readonly queue: JobQueue;
  readonly handoffs: Pick<Handoffs, "retry">;
  readonly clock: Clock;
  /** The disk being full: what is discarded needs no room any more. */
  readonly diskFull: Outage;
  /** Hears of changes, as from collecting. */
  readonly watch: {
    stateChanged(receipt: Receipt): void;
    /** An operator knows that it is gone. */
    acknowledged(receipt: Receipt): void;
  };
}

/**
 * Whether this is something that can be done with a transfer in its state; otherwise why not, for people.
 * `isHandedOver`: no command or webhook is left to try again.
 */
export function objectionTo(
  action: Action,
  receipt: Receipt | undefined,
  isHandedOver = true,
): string | undefined {
  if (receipt === undefined) return "there is no such transfer here";
  const { state } = receipt;
  if (action === "release") {
    return state === "quarantined" ? undefined : `it is ${state}, and only one in quarantine can be released`;
  }
  const isThere = state === "delivered" || state === "collected";
  if (action === "retry" && isThere && !isHandedOver) return undefined;
  if (action === "redeliver") {
    return isThere ? undefined : `it is ${state}, and only one that was delivered can be delivered again`;
  }
  if (action === "discard" && state === "gone" && !isSettledForPeople(receipt)) return undefined;
  const isOver = isFinal(receipt) && state !== "quarantined";
  if (isOver || state === "delivering") return `it is ${state}, and nothing is left to ${action}`;
  return undefined;
}

/**
 * False where only another process can do it. Throws what the disk or the queue say against it; then it is to be tried
 * again.
 */
export async function carryOut(tools: OrderTools, state: MailboxState, order: Order): Promise<boolean> {
  const receipt = await tools.receipts.find(order);
  if (receipt === undefined || objectionTo(order.action, receipt, false) !== undefined) return true;
  if (isBehind(order, receipt)) return true;
  const isDelivered = receipt.state === "delivered" || receipt.state === "collected";
  if (order.action === "retry" && isDelivered) return tools.handoffs.retry(order);
  if (order.action === "discard" && receipt.state === "gone") await acknowledge(tools, receipt);
  else if (order.action === "discard") await discard(tools, state, receipt);
  else await beginAgain(tools, state, order, receipt);
  return true;
}

/** It ended again since the order was given, and what was wanted is done. What is to be discarded is, whatever came between. */
function isBehind({ action, fence = -1 }: Order, receipt: Receipt): boolean {
  return action !== "discard" && isFinal(receipt) && fence >= 0 && fence !== receipt.fence;
}

async function beginAgain(
  tools: OrderTools,
  state: MailboxState,
  order: Order,
  receipt: Receipt,
): Promise<void> {
  const expiresMs = receipt.expires === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(receipt.expires);
  state.undelivered.set(order.trackingId, { expiresMs });
  state.settled.delete(order.trackingId);
  const job = jobOf(tools.receipts, order.mailbox, order.trackingId, expiresMs, "wanted");
  if (!isFinal(receipt)) return tools.queue.hurry(job);
  const again = startAgain(receipt, order.action === "release");
  if (await tools.receipts.create(again, receipt)) tools.watch.stateChanged(again);
  await tools.queue.hurry(job);
}

/** When it was discovered does not change: folders may be named after that day. */
function startAgain(receipt: Receipt, released: boolean): Receipt {
  const { at } = receipt;
  return {
    ...receipt,
    state: "discovered",
    reason: undefined,
    message: undefined,
    until: undefined,
    folder: undefined,
    verified: undefined,
    acknowledgement: undefined,
    released,
    acknowledged: undefined,
    at: { discovered: at.discovered ?? new Date(0).toISOString() },
  };
}

/** Why it is gone stays as it is: should the service list it again, it is collected. */
async function acknowledge({ receipts, watch }: OrderTools, receipt: Receipt): Promise<void> {
  const acknowledged = { ...receipt, acknowledged: true };
  await receipts.put(acknowledged, receipt);
  watch.acknowledged(acknowledged);
}

/**
 * Whoever works on it loses it: what is claimed from now on is not theirs any more. The receipt comes last: until it
 * says so, a crash leaves an order to be carried out again, and nothing that nobody would delete any more.
 */
async function discard(tools: OrderTools, state: MailboxState, receipt: Receipt): Promise<void> {
  const { receipts, inbox, passwords, clock, watch } = tools;
  const key = receipts.folderName(receipt);
  const previous = isFinal(receipt) ? receipt : await receipts.claim(receipt, (current) => current);
  if (previous === undefined) return;
  // It was delivered in the meantime, or nearly: whoever has the job now finds out.
  if (previous.state === "delivering")
    return tools.queue.hurry(jobOf(receipts, receipt.mailbox, receipt.trackingId, 0, "wanted"));
  const now = new Date(clock.now()).toISOString();
  const message = "An operator discarded it.";
  const gone = { ...previous, state: "gone", reason: DISCARDED, message, until: undefined } as const;
  const discarded: Receipt = { ...gone, at: { ...previous.at, gone: now } };
  await deleteKept(inbox, key);
  if (!isFinal(receipt)) await deleteStaged(inbox, key, previous.fence);
  await passwords.settled(state.mailbox, receipt.trackingId);
  await receipts.put(discarded, previous);
  watch.stateChanged(discarded);
  tools.diskFull.isPast(key);
  inbox.forget(key);
}

async function deleteStaged(inbox: Inbox, key: string, fence: number): Promise<void> {
  const stage = await inbox.stage(key, fence, false);
  try {
    await stage.clear();
  } finally {
    stage.release();
  }
}

async function deleteKept({ quarantine }: Inbox, key: string): Promise<void> {
  try {
    await rm(join(quarantine, key), { recursive: true, force: true });
    await syncFolder(quarantine);
  } catch (error) {
    throw faultOfDisk(error, join(quarantine, key));
  }
}
