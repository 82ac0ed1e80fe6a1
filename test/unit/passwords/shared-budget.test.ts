/** I3 no burnt transfers: several processes, each with another mailbox that received the same transfer. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import type { Secret } from "../../../src/base/secret.ts";
import { coRecipientsAmong } from "../../../src/daemon/workspace.ts";
import { openPasswords } from "../../../src/passwords/passwords.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { mailboxSettings, plainSecret } from "../../support/settings.ts";

const NAMES = ["a", "b", "c", "d"];

test("the same wrong password is sent once", async () => {
  const { race } = await open("Wr0ng!42");
  for (let round = 0; round < 3; round++) expect(await race(`t${round}`)).toEqual(["Wr0ng!42"]);
});

/** Each mailbox has everything of its own but the disk. */
async function open(password: string) {
  const folder = await makeFolder();
  const rule = { sender: undefined, trackingId: undefined, password: plainSecret(password) };
  const mailboxes = NAMES.map((name) =>
    mailboxSettings(
      { url: "https://transfer.example.com", clientId: "x" },
      { name, email: `${name}@example.com`, passwords: [rule, rule] },
    ),
  );
  const workers = await Promise.all(
    mailboxes.map(async (mailbox) => {
      const ledger = await ledgerIn(folder, { writer: mailbox.name });
      const passwords = await openPasswords({
        state: join(folder, "state"),
        keepMs: undefined,
        clock: systemClock,
        attempts: ledger.attempts,
        nameOf: (key) => ledger.nameOf(key),
        coRecipients: coRecipientsAmong(() => mailboxes, ledger),
      });
      return { mailbox, passwords };
    }),
  );
  /** All of them at once; returns what was sent. */
  const race = async (trackingId: string): Promise<string[]> => {
    const sent: string[] = [];
    const attempts = workers.map(({ mailbox, passwords }) => {
      const send = async (password: Secret): Promise<never> => {
        sent.push(password.reveal());
        throw new Fault("PASSWORD_REFUSED", { answeredBy: "service" });
      };
      const request = {
        mailbox,
        service: { id: mailbox.service.baseUrl.origin, ownAnswers: () => 1 },
        record: makeRecord({ mailbox: mailbox.name, trackingId }),
        link: async () => undefined,
        send,
        probe: async () => {},
        onRefused() {},
      };
      return passwords.prove(request, SIGNAL);
    });
    await Promise.all(attempts);
    return sent;
  };
  return { race };
}
