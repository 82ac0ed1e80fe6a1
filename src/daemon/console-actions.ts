/** The actions of the console: the same as those of the commands, and carried out in the same way. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { Secret, type SecretSource } from "../base/secret.ts";
import { hasOpenSteps } from "../handoff/peek.ts";
import { giveOrder } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { TransferKey } from "../ledger/port.ts";
import { objectionTo } from "../mailbox/orders.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { isDelivered } from "../model/record.ts";
import type { Actions } from "../observe/actions.ts";
import { Sessions } from "../observe/sessions.ts";
import { dropPassword } from "../passwords/dropped.ts";
import { objectionToSupply } from "../passwords/guard.ts";
import type { LiveSettings } from "./live-settings.ts";

/** The source of the token may be a command, so it is read no more often than this. */
const READ_EVERY_MS = 2_000;

/** `undefined` where the console is read-only. */
export async function openActions(
  live: LiveSettings,
  clock: Clock,
  stop: AbortSignal,
  runOrders: () => Promise<void>,
): Promise<Actions | undefined> {
  const { http, work, state, inbox } = live.now;
  if (http?.actions !== true) return undefined;
  const ledger = peekLedger(work);
  const findMailbox = (mailbox: string) => live.now.mailboxes.find(({ name }) => name === mailbox);
  const findOurs = async (key: TransferKey) => findMailbox(key.mailbox) && (await ledger.find(key));
  const address = JSON.stringify([hostname(), http.listen, inbox]);
  const cookie = createHash("sha256").update(address).digest("hex").slice(0, 12);
  const sessions = new Sessions({ token: await http.token?.read(stop), cookie, clock });
  return {
    sessions,
    renew: createTokenReader(
      () => live.now.http?.token,
      (read) => sessions.renew(read),
      clock,
      stop,
    ),
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
      const own = findMailbox(mailbox);
      const record = own && (await ledger.find({ mailbox, trackingId }));
      if (own === undefined || record === undefined) {
        return { text: "No such transfer waits for a password.", refused: 404 };
      }
      const serviceId = serviceIdOf(own.service.baseUrl);
      const spent = await ledger.attempts.spent(
        { serviceId, trackingId },
        nameOf(record),
        own.passwordAttempts,
      );
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

interface Reading {
  readonly source: SecretSource;
  readonly atMs: number;
  readonly isRead: Promise<boolean>;
}

/**
 * Returns a function that reads the token again from its present source, unless that was done a moment ago. It resolves to
 * false where the token cannot be read: then a known one no longer counts.
 */
function createTokenReader(
  source: () => SecretSource | undefined,
  onRead: (token: Secret) => void,
  clock: Clock,
  stop: AbortSignal,
): () => Promise<boolean> {
  let last: Reading | undefined;
  return async () => {
    const now = source();
    if (now === undefined) return true;
    const atMs = clock.now();
    if (last?.source !== now || Math.abs(atMs - last.atMs) >= READ_EVERY_MS) {
      const isRead = now.read(stop).then(
        (token) => {
          onRead(token);
          return true;
        },
        () => false,
      );
      last = { source: now, atMs, isRead };
    }
    return last.isRead;
  };
}
