/** I3 no burnt transfers: several processes, each with another mailbox that received the same transfer. */
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { asFault, Fault } from "../../../src/base/faults.ts";
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

test("one that finds all attempts on their way needs no person: it waits for their verdict", async () => {
  const { workers, requestOf } = await open("R1ght!42", 1);
  const [first, second] = workers as [Worker, Worker];
  const answer = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const send = async () => {
    begun.resolve();
    await answer.promise;
  };
  const accepted = first.passwords.prove(requestOf(first, "t1", send), SIGNAL);
  await begun.promise;
  const other = requestOf(second, "t1", async () => {});
  await expect(second.passwords.prove(other, SIGNAL)).rejects.toMatchObject({ code: "PASSWORDS_HELD" });
  answer.resolve();
  await accepted;
  expect(await second.passwords.prove(other, SIGNAL)).toMatchObject({ kind: "accepted" });
});

type Worker = Awaited<ReturnType<typeof open>>["workers"][number];

/** Each mailbox has everything of its own but the disk. */
async function open(password: string, passwordAttempts = 2) {
  const folder = await makeFolder();
  const rule = { sender: undefined, trackingId: undefined, password: plainSecret(password) };
  const mailboxes = NAMES.map((name) =>
    mailboxSettings(
      { url: "https://transfer.example.com", clientId: "x" },
      { name, email: `${name}@example.com`, passwords: [rule, rule], passwordAttempts },
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
  const requestOf = <Value>(
    { mailbox }: (typeof workers)[number],
    trackingId: string,
    send: (password: Secret) => Promise<Value>,
  ) => ({
    mailbox,
    service: { id: mailbox.service.baseUrl.origin, ownAnswers: () => 1 },
    record: makeRecord({ mailbox: mailbox.name, trackingId }),
    link: async () => undefined,
    send,
    probe: async () => {},
    onRefused() {},
  });
  /** All of them at once; returns what was sent. */
  const race = async (trackingId: string): Promise<string[]> => {
    const sent: string[] = [];
    const attempts = workers.map(async (worker) => {
      const request = requestOf(worker, trackingId, async (password): Promise<never> => {
        sent.push(password.reveal());
        throw new Fault("PASSWORD_REFUSED", { answeredBy: "service" });
      });
      // One that waits for the verdict on the attempts of others comes again.
      for (;;) {
        const held = await worker.passwords.prove(request, SIGNAL).then(() => undefined, asFault);
        if (held?.code !== "PASSWORDS_HELD") return;
        await setTimeout(20);
      }
    });
    await Promise.all(attempts);
    return sent;
  };
  return { race, workers, requestOf };
}
