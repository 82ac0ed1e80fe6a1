/** Carries out orders as they are given, one after the other, and again what the disk refused. */
import { carryOut, type OrderTools } from "../mailbox/orders.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { listOrders, watchOrders } from "../receipts/orders.ts";

const LOOK_EVERY_MS = 30_000;

export interface Obedience {
  /** Resolves when all that were given before are carried out. */
  obey(): Promise<void>;
  close(): Promise<void>;
}

export async function startObeying(
  tools: OrderTools,
  mailboxes: ReadonlyMap<string, MailboxState>,
  work: string,
): Promise<Obedience> {
  let last = Promise.resolve();
  const obey = () => {
    last = last.then(() => obeyAll(tools, mailboxes, work)).catch(() => {});
    return last;
  };
  const watcher = await watchOrders(work, () => void obey());
  const timer = setInterval(() => void obey(), LOOK_EVERY_MS);
  return {
    obey,
    async close() {
      clearInterval(timer);
      await watcher.close();
      await last;
    },
  };
}

/** What only another process can do, or one that has its mailbox, is left for that one. */
async function obeyAll(
  tools: OrderTools,
  mailboxes: ReadonlyMap<string, MailboxState>,
  work: string,
): Promise<void> {
  for (const { order, remove } of await listOrders(work)) {
    const state = mailboxes.get(order.mailbox);
    if (state === undefined) continue;
    if (await carryOut(tools, state, order)) await remove();
  }
}
