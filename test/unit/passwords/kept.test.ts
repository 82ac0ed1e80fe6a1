/** How long an accepted password is remembered, and an attempt without a verdict. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { Secret } from "../../../src/base/secret.ts";
import { openPasswords } from "../../../src/passwords/passwords.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { openPair, SIGNAL } from "../../support/service.ts";
import { mailboxSettings, PASSWORD, plainSecret } from "../../support/settings.ts";

const DAY_MS = 24 * 60 * 60_000;
const START_MS = Date.parse("2026-03-01T00:00:00Z");
const mailbox = mailboxSettings({ url: "https://transfer.example.com", clientId: "x" });

test.each([
  ["the term at most", "9999-12-31T00:00:00Z", 30],
  ["the term, if the expiry is not known", undefined, 30],
  ["the life of the transfer", "2026-03-11T00:00:00Z", 10],
])("one that a person supplied is kept for %s", async (_case, expires, days) => {
  const { passwords, world, state } = await open();
  await writeFile(join(state, "passwords", "t1"), "hunter2");
  expect(await passwords.prove(requestOf({ expires }), SIGNAL)).toMatchObject({ kind: "accepted" });
  const isKept = async (atMs: number) => {
    world.nowMs = atMs;
    await passwords.forgetExpired();
    return (await passwords.supplied(mailbox, "t1")) !== undefined;
  };
  expect(await isKept(START_MS + days * DAY_MS)).toBe(true);
  expect(await isKept(START_MS + days * DAY_MS + 1)).toBe(false);
});

test("I3 no burnt transfers: one that was accepted is no guess, and is sent again without a free attempt", async () => {
  const { passwords, world } = await open();
  expect(await passwords.prove(requestOf({}, withRules("hunter2")), SIGNAL)).toMatchObject({
    kind: "accepted",
  });
  world.hasFreeAttempt = false;
  for (const name of [mailbox.name, "second"]) {
    const proof = await passwords.prove(requestOf({}, { ...mailbox, name }), SIGNAL);
    expect(proof).toMatchObject({ kind: "accepted" });
  }
});

test("I3 no burnt transfers: one that is refused after it was accepted costs an attempt", async () => {
  const { passwords, spent } = await open();
  await passwords.refusedLater(requestOf({}));
  expect(await spent()).toBe(1);
});

test("I3 no burnt transfers: a search that spends the last attempt says so", async () => {
  const { passwords } = await open();
  const rule = { sender: undefined, trackingId: undefined, password: plainSecret("wrong") };
  const send = () => Promise.reject(new Fault("PASSWORD_REFUSED", { answeredBy: "service" }));
  const request = { ...requestOf({}, { ...mailbox, passwords: [rule], passwordAttempts: 1 }), send };
  const obstacle = { spent: 1, isExhausted: true };
  expect(await passwords.prove(request, SIGNAL)).toMatchObject({ kind: "waiting", obstacle });
});

test.each([204, 200])(
  "I3 no burnt transfers: an empty answer with status %i is no word of the service, and the attempt stays spent",
  async (status) => {
    const { passwords, spent } = await open();
    const { service, simulator, access } = await openPair();
    simulator.addFault({ on: "info", does: { kind: "body", text: "", status } });
    const send = async (password: Secret) => {
      await service.information({ ...access, password }, SIGNAL);
      return "information";
    };
    const request = { ...requestOf({}, withRules(PASSWORD)), send };
    await expect(passwords.prove(request, SIGNAL)).rejects.toMatchObject({ answeredBy: "intermediary" });
    expect(await spent()).toBe(1);
  },
);

test.each([
  ["costs nothing if it comes first", [], 0],
  ["stays spent after a refusal, because both may have led to the lock", ["wrong"], 2],
])("I3 no burnt transfers: an attempt at a locked transfer %s", async (_case, refused, wanted) => {
  const { passwords, spent } = await open();
  const own = { ...withRules(...refused, PASSWORD), passwordAttempts: 3 };
  const send = async (password: Secret) => {
    const code = password.reveal() === PASSWORD ? "TRANSFER_LOCKED" : "PASSWORD_REFUSED";
    throw new Fault(code, { answeredBy: "service" });
  };
  const request = { ...requestOf({}, own), send };
  await expect(passwords.prove(request, SIGNAL)).rejects.toMatchObject({ code: "TRANSFER_LOCKED" });
  expect(await spent()).toBe(wanted);
});

/** The mailbox with these passwords for every transfer. */
function withRules(...texts: readonly string[]) {
  const rule = { sender: undefined, trackingId: undefined };
  return { ...mailbox, passwords: texts.map((text) => ({ ...rule, password: plainSecret(text) })) };
}

async function open() {
  const folder = await makeFolder();
  const state = join(folder, "state");
  const world = { nowMs: START_MS, hasFreeAttempt: true };
  const { attempts } = await ledgerIn(folder);
  const passwords = await openPasswords({
    state,
    clock: { now: () => world.nowMs },
    attempts: {
      spent: (...args) => attempts.spent(...args),
      grant: (...args) => attempts.grant(...args),
      take: async (...args) => (world.hasFreeAttempt ? attempts.take(...args) : undefined),
    },
    coRecipients: {
      serviceOf: () => "service",
      openBudgets: async () => [],
      isElsewhere: async () => false,
    },
    keepMs: 30 * DAY_MS,
    nameOf: ({ trackingId }) => trackingId,
  });
  const spent = async () => (await attempts.spent("t1", "t1", 2)).spent;
  return { passwords, world, state, spent };
}

function requestOf({ expires }: { readonly expires?: string | undefined }, own = mailbox) {
  return {
    mailbox: own,
    service: { id: "service", ownAnswers: () => 1 },
    record: makeRecord({ mailbox: own.name, trackingId: "t1", expires }),
    link: async () => undefined,
    send: async () => "information",
    probe: async () => {},
    onRefused() {},
  };
}
