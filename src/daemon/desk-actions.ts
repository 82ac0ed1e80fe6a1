/** What visitors of the page can do: the same as the commands, by the same means. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { Secret, type SecretSource } from "../base/secret.ts";
import type { MailboxSettings, Settings } from "../config/settings.ts";
import { hasOpenSteps } from "../handoff/peek.ts";
import { giveOrder } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { TransferKey } from "../ledger/port.ts";
import { objectionTo } from "../mailbox/orders.ts";
import { isDelivered } from "../model/record.ts";
import type { Actions } from "../observe/actions.ts";
import { Sessions } from "../observe/sessions.ts";
import { dropPassword } from "../passwords/dropped.ts";
import { objectionToSupply } from "../passwords/supply.ts";
import { createTokenReader } from "./desk-token.ts";

/** `undefined` where the page is for reading only. */
export async function openActions(
  { http, work, state, inbox }: Settings,
  /** Which mailboxes there are now. */
  mailboxes: () => readonly MailboxSettings[],
  clock: Clock,
  stop: AbortSignal,
  runOrders: () => Promise<void>,
  /** Where the token comes from now. */
  token: () => SecretSource | undefined,
): Promise<Actions | undefined> {
  if (http?.actions !== true) return undefined;
  const ledger = peekLedger(work);
  const isOurs = (mailbox: string) => mailboxes().some(({ name }) => name === mailbox);
  const findOurs = async (key: TransferKey) => (isOurs(key.mailbox) ? await ledger.find(key) : undefined);
  const place = JSON.stringify([hostname(), http.listen, inbox]);
  const cookie = createHash("sha256").update(place).digest("hex").slice(0, 12);
  const sessions = new Sessions({ token: await http.token?.read(stop), cookie, clock });
  return {
    sessions,
    renew: createTokenReader(token, (read) => sessions.renew(read), clock, stop),
    async order(order) {
      const { action, trackingId } = order;
      const record = await findOurs(order);
      const isHandedOver = !(await hasOpenSteps(work, nameOf(order)));
      const objection = objectionTo(action, record, isHandedOver);
      if (objection !== undefined) {
        const text = `Nothing was done with ${trackingId}: ${objection}.`;
        return { text, refused: record === undefined ? 404 : 409 };
      }
      await giveOrder(work, { ...order, round: record?.round ?? 1, by: "console" });
      await runOrders();
      if (action === "retry" && record !== undefined && isDelivered(record)) {
        return { text: `What follows the delivery of ${trackingId} is being tried again.` };
      }
      const after = await ledger.find(order);
      return {
        text:
          after?.acknowledged === true && action === "discard"
            ? `${trackingId} is gone, and no longer shown.`
            : `${trackingId} is now ${after?.state ?? "unknown"}.`,
      };
    },
    async password(mailbox, trackingId, password) {
      const own = mailboxes().find(({ name }) => name === mailbox);
      const record = own && (await ledger.find({ mailbox, trackingId }));
      if (own === undefined || record === undefined) {
        return { text: "No such transfer waits for a password.", refused: 404 };
      }
      const { origin } = own.service.baseUrl;
      const spent = await ledger.attempts.spent({ origin, trackingId }, nameOf(record), own.passwordAttempts);
      const given = new Secret(password);
      const objection = await objectionToSupply(record, spent, own.passwordAttempts, given);
      if (objection !== undefined) {
        return { text: `Nothing was done with ${trackingId}: ${objection.detail}.`, refused: 409 };
      }
      await dropPassword(state, { trackingId, mailbox }, given);
      return { text: `The password of ${trackingId} is being tried.` };
    },
  };
}
