/** Carries out operators' orders as they arrive, one after the other, and retries failed ones. */
import { Coalesced } from "../base/concurrency.ts";
import { asFault } from "../base/faults.ts";
import { listOrders, watchOrders } from "../ledger/orders.ts";
import { carryOut, type OrderTools } from "../mailbox/orders.ts";
import type { MailboxState } from "../mailbox/state.ts";

const LOOK_EVERY_MS = 30_000;

export interface OrderRunner {
  /** Resolves when every order given before the call was tried. */
  run(): Promise<void>;
  close(): Promise<void>;
}

interface OrderRunnerTools extends OrderTools {
  readonly work: string;
}

export async function startOrderRunner(
  tools: OrderRunnerTools,
  mailboxes: ReadonlyMap<string, MailboxState>,
): Promise<OrderRunner> {
  const failing = new Set<string>();
  const runs = new Coalesced(() => runOrders(tools, mailboxes, failing).catch(() => {}));
  const watcher = await watchOrders(
    tools.work,
    () => void runs.run(),
    (fault) => tools.emit({ type: "folder-unwatchable", fault }),
  );
  const timer = setInterval(() => void runs.run(), LOOK_EVERY_MS);
  return {
    run: () => runs.run(),
    async close() {
      clearInterval(timer);
      await watcher.close();
      await runs.idle();
    },
  };
}

/**
 * A failed order does not delay the others. Orders for mailboxes that are not configured here are left alone.
 * `failing`: the ids of orders whose failure was reported.
 */
export async function runOrders(
  tools: OrderRunnerTools,
  mailboxes: ReadonlyMap<string, MailboxState>,
  failing: Set<string>,
): Promise<void> {
  const given = await listOrders(tools.work);
  for (const id of failing) if (!given.some((it) => it.id === id)) failing.delete(id);
  for (const { id, order, remove } of given) {
    const state = mailboxes.get(order.mailbox);
    if (state === undefined) continue;
    try {
      if (await carryOut(tools, state, order)) await remove();
      // An operator is at work on this mailbox, so it is polled at once.
      if (state.health.isFailing) tools.queue.pollNow([order.mailbox]).catch(() => {});
      failing.delete(id);
    } catch (error) {
      const fault = asFault(error);
      if (fault.code === "STOPPED") return;
      if (!failing.has(id)) tools.emit({ type: "order-failed", order, fault });
      failing.add(id);
    }
  }
}
