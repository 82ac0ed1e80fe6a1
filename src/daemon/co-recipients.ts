/** Finds the open records of a transfer for other mailboxes: those of the same service, and those of other services. */

import type { MailboxSettings } from "../config/settings.ts";
import type { Ledger } from "../ledger/port.ts";
import { mailboxOf, serviceIdOf } from "../model/mailbox.ts";
import { hasEnded } from "../model/record.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import type { CoRecipients } from "../passwords/port.ts";

/** `mailboxes`: as configured now. */
export function coRecipientsAmong(
  mailboxes: () => readonly MailboxSettings[],
  ledger: Pick<Ledger, "find">,
): CoRecipients {
  const serviceOf = (mailbox: string) => {
    const found = mailboxOf(mailboxes(), { mailbox });
    return found === undefined ? "" : idOf(found);
  };
  return {
    serviceOf,
    async open(mailbox, trackingId) {
      const service = serviceOf(mailbox);
      const isOther = ({ name }: MailboxSettings) => mailboxIdOf(name) !== mailboxIdOf(mailbox);
      const others = mailboxes().filter((other) => isOther(other) && idOf(other) === service);
      const found = others.map(async ({ name, passwordAttempts }) => {
        const record = await ledger.find({ mailbox: name, trackingId });
        return record === undefined || hasEnded(record) ? [] : [{ record, passwordAttempts }];
      });
      return (await Promise.all(found)).flat();
    },
    async isElsewhere(mailbox, trackingId) {
      const service = serviceOf(mailbox);
      const others = mailboxes().filter((other) => idOf(other) !== service);
      const found = others.map(({ name }) => ledger.find({ mailbox: name, trackingId }));
      return (await Promise.all(found)).some((record) => record !== undefined && !hasEnded(record));
    },
  };
}

function idOf({ service }: MailboxSettings): string {
  return serviceIdOf(service.baseUrl);
}
