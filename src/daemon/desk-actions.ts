/** What visitors of the page can do: the same as the commands, by the same means. */
import type { Clock } from "../base/clock.ts";
import { Secret, type SecretSource } from "../base/secret.ts";
import type { Settings } from "../config/settings.ts";
import { hasOpenSteps } from "../handoff/outbox.ts";
import { objectionTo } from "../mailbox/orders.ts";
import type { Actions } from "../observe/actions.ts";
import { Sessions } from "../observe/sessions.ts";
import { dropPassword } from "../passwords/dropped.ts";
import { giveOrder } from "../receipts/orders.ts";
import { nameOf } from "../receipts/places.ts";
import { peekReceipts } from "../receipts/reading.ts";
import { createTokenReader } from "./desk-token.ts";

/** `undefined` where the page is for reading only. */
export async function openActions(
  { http, work, state }: Settings,
  /** Which mailboxes there are now. */
  mailboxes: () => readonly string[],
  clock: Clock,
  stop: AbortSignal,
  obey: () => Promise<void>,
  /** Where the token comes from now. */
  token: () => SecretSource | undefined,
): Promise<Actions | undefined> {
  if (http?.actions !== true) return undefined;
  const { find } = peekReceipts(work);
  const isOurs = (mailbox: string) => mailboxes().includes(mailbox);
  const sessions = new Sessions({ token: await http.token?.read(stop), clock });
  return {
    sessions,
    renew: createTokenReader(token, (read) => sessions.renew(read), clock, stop),
    async order(order) {
      const receipt = isOurs(order.mailbox) ? await find(order) : undefined;
      const isHandedOver = !(await hasOpenSteps(work, nameOf(order)));
      const objection = objectionTo(order.action, receipt, isHandedOver);
      if (objection !== undefined) return `Nothing was done with ${order.trackingId}: ${objection}.`;
      await giveOrder(work, { ...order, fence: receipt?.fence });
      await obey();
      return `${order.trackingId} is now ${(await find(order))?.state ?? "unknown"}.`;
    },
    async password(mailbox, trackingId, password) {
      const receipt = isOurs(mailbox) ? await find({ mailbox, trackingId }) : undefined;
      if (receipt === undefined || password === "") return "No such transfer waits for a password.";
      const path = await dropPassword(state, trackingId, new Secret(password));
      return path === undefined
        ? "Its tracking-id cannot be the name of a file: use a rule."
        : `The password of ${trackingId} is being tried.`;
    },
  };
}
