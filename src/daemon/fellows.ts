/** Which mailboxes may have received the same transfer: those of one service. */
import type { MailboxSettings } from "../config/settings.ts";
import { isFinal, type Receipt } from "../model/receipt.ts";
import type { Fellows } from "../passwords/port.ts";
import type { Receipts } from "../receipts/port.ts";

/** `mailboxes`: those that there are now. */
export function fellowsAmong(
  mailboxes: () => readonly MailboxSettings[],
  receipts: Pick<Receipts, "find" | "spentOn">,
): Fellows {
  const serviceOf = (mailbox: string) =>
    mailboxes().find(({ name }) => name === mailbox)?.service.baseUrl.origin ?? "";
  /** Of a mailbox that is not configured any more nobody knows the service: it counts. */
  const isFellow = (mailbox: string, other: string) => {
    const [own, theirs] = [serviceOf(mailbox), serviceOf(other)];
    return other !== mailbox && (own === theirs || own === "" || theirs === "");
  };
  return {
    serviceOf,
    spentOn: async (mailbox, trackingId) =>
      (await receipts.spentOn({ mailbox, trackingId })).filter((receipt) =>
        isFellow(mailbox, receipt.mailbox),
      ),
    async unsettled(mailbox, trackingId) {
      const service = serviceOf(mailbox);
      const others = mailboxes().filter(
        ({ name, service: own }) => name !== mailbox && own.baseUrl.origin === service,
      );
      const found = others.map(async ({ name, passwordAttempts }) => ({
        receipt: await receipts.find({ mailbox: name, trackingId }).catch(() => undefined),
        passwordAttempts,
      }));
      return (await Promise.all(found)).filter(isOpen);
    },
  };
}

function isOpen<Found extends { readonly receipt: Receipt | undefined }>(
  found: Found,
): found is Found & { readonly receipt: Receipt } {
  return found.receipt !== undefined && !isFinal(found.receipt);
}
