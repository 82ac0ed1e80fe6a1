/** How long an accepted password is kept that a person supplied. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openPasswords } from "../../../src/passwords/passwords.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { mailboxSettings } from "../../support/settings.ts";

const DAY_MS = 24 * 60 * 60_000;
const START_MS = Date.parse("2026-03-01T00:00:00Z");
const mailbox = mailboxSettings({ url: "https://transfer.example.com", clientId: "x" });
const alone = { serviceOf: () => "service", openBudgets: async () => [], isElsewhere: async () => false };

test.each([
  ["the term at most", "9999-12-31T00:00:00Z", 30],
  ["the term, if the expiry is not known", undefined, 30],
  ["the life of the transfer", "2026-03-11T00:00:00Z", 10],
])("it is kept for %s", async (_case, expires, days) => {
  const folder = await makeFolder();
  const state = join(folder, "state");
  let nowMs = START_MS;
  const passwords = await openPasswords({
    state,
    clock: { now: () => nowMs },
    attempts: (await ledgerIn(folder)).attempts,
    coRecipients: alone,
    keepMs: 30 * DAY_MS,
    nameOf: ({ trackingId }) => trackingId,
  });
  await writeFile(join(state, "passwords", "t1"), "hunter2");
  const request = {
    mailbox,
    service: { id: "service", ownAnswers: () => 1 },
    record: makeRecord({ mailbox: mailbox.name, trackingId: "t1", expires }),
    link: async () => undefined,
    send: async () => "information",
    probe: async () => {},
    onRefused() {},
  };
  expect(await passwords.prove(request, SIGNAL)).toMatchObject({ kind: "accepted" });
  const isKept = async (atMs: number) => {
    nowMs = atMs;
    await passwords.forgetExpired();
    return (await passwords.supplied(mailbox, "t1")) !== undefined;
  };
  expect(await isKept(START_MS + days * DAY_MS)).toBe(true);
  expect(await isKept(START_MS + days * DAY_MS + 1)).toBe(false);
});
