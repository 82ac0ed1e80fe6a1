/** How long an accepted password is kept that a person supplied. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Secret } from "../../../src/base/secret.ts";
import { Candidates } from "../../../src/passwords/candidates.ts";
import { forgetExpired, openStored } from "../../../src/passwords/stored.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { mailboxSettings } from "../../support/settings.ts";

const DAY_MS = 24 * 60 * 60_000;
const NOW_MS = Date.parse("2026-03-01T00:00:00Z");
const mailbox = mailboxSettings({ url: "https://transfer.example.com", clientId: "x" });
const alone = { serviceOf: () => "service", open: async () => [], isElsewhere: async () => false };

test.each([
  ["the term at most", "9999-12-31T00:00:00Z", 30],
  ["the term, if the expiry is not known", undefined, 30],
  ["the life of the transfer", "2026-03-11T00:00:00Z", 10],
])("it is kept for %s", async (_case, expires, days) => {
  const state = await makeFolder();
  const path = join(state, "passwords", "t1");
  await mkdir(join(state, "passwords"), { mode: 0o700 });
  await writeFile(path, "hunter2");
  await openStored(state, NOW_MS);
  const candidates = new Candidates(state, alone, 30 * DAY_MS);
  const record = makeRecord({ mailbox: mailbox.name, trackingId: "t1", expires });
  const service = { id: "service", ownAnswers: () => 0 };
  const request = { mailbox, service, record, link: async () => undefined };
  await candidates.accepted(request, { source: "drop", password: new Secret("hunter2"), path }, NOW_MS);
  const isKept = async (atMs: number) => {
    await forgetExpired(state, atMs);
    return (await candidates.supplied(mailbox.name, "t1")) !== undefined;
  };
  expect(await isKept(NOW_MS + days * DAY_MS)).toBe(true);
  expect(await isKept(NOW_MS + days * DAY_MS + 1)).toBe(false);
});
