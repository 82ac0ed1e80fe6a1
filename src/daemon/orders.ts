/** Carries out orders as they are given, one after the other, and again what the disk or the queue refused. */
import { asFault } from "../base/faults.ts";
import { carryOut, type OrderTools } from "../mailbox/orders.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { type GivenOrder, listOrders, type OrderTaker, watchOrders } from "../receipts/orders.ts";
import type { DaemonWatch } from "./watching.ts";

const LOOK_EVERY_MS = 30_000;

export interface Obedience {
  /** Resolves when all that were given before are carried out, as far as they can be. */
  obey(): Promise<void>;
  close(): Promise<void>;
}

interface ObeyTools extends OrderTools {
  readonly work: string;
  readonly members: OrderTaker;
  readonly watch: OrderTools["watch"] & Pick<DaemonWatch, "orderFailed">;
}

export async function startObeying(
  tools: ObeyTools,
  mailboxes: ReadonlyMap<string, MailboxState>,
): Promise<Obedience> {
  const obeying = new Obeying(tools, mailboxes);
  let last = Promise.resolve();
  const obey = () => {
    last = last.then(() => obeying.look()).catch(() => {});
    return last;
  };
  const watcher = await watchOrders(tools.work, () => void obey());
  const timer = setInterval(() => {
    obeying.tryAll();
    void obey();
  }, LOOK_EVERY_MS);
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
export class Obeying {
  readonly #tools: ObeyTools;
  readonly #mailboxes: ReadonlyMap<string, MailboxState>;
  /** Those that we gave back: giving back is seen as one that was given, and would be taken again at once. */
  readonly #leftToOthers = new Set<string>();
  /** Those of which it was told that they fail. */
  #failing = new Set<string>();

  constructor(tools: ObeyTools, mailboxes: ReadonlyMap<string, MailboxState>) {
    this.#tools = tools;
    this.#mailboxes = mailboxes;
  }

  /** Whoever had to do the others may be gone. */
  tryAll(): void {
    this.#leftToOthers.clear();
  }

  /** What is wrong with one keeps no other back. */
  async look(): Promise<void> {
    const failing = new Set<string>();
    for (const given of await listOrders(this.#tools.work, this.#tools.members)) {
      const name = JSON.stringify(given.order);
      try {
        await this.#obey(given, name);
      } catch (error) {
        const fault = asFault(error);
        if (fault.code === "STOPPED") return;
        failing.add(name);
        if (!this.#failing.has(name)) this.#tools.watch.orderFailed(given.order, fault);
      }
    }
    this.#failing = failing;
  }

  async #obey(given: GivenOrder, name: string): Promise<void> {
    const state = this.#mailboxes.get(given.order.mailbox);
    if (state === undefined || this.#leftToOthers.has(name)) return;
    const taken = await given.take();
    if (taken === undefined) return;
    if (await carryOut(this.#tools, state, taken.order)) return taken.done();
    this.#leftToOthers.add(name);
    await taken.giveBack();
  }
}
