/**
 * I3 no burnt transfers: the attempts at a transfer belong to its tracking-id, however the address of its service is spelled.
 * I4 no leaks: a password that is supplied for a tracking-id goes to one service only.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { Secret } from "../../../src/base/secret.ts";
import type { MailboxSettings } from "../../../src/config/settings.ts";
import { coRecipientsAmong } from "../../../src/daemon/workspace.ts";
import { serviceIdOf } from "../../../src/model/mailbox.ts";
import { openPasswords } from "../../../src/passwords/passwords.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { MAILBOX, mailboxSettings, plainSecret } from "../../support/settings.ts";

const SPELLINGS = [
  "https://service.example/share",
  "https://service.example./share",
  "https://198.51.100.7/share",
  "https://service.example/s%68are",
];
const ORDERS = [SPELLINGS, SPELLINGS.toReversed()];
const RIGHT = "right";

test.each(ORDERS)("three spellings share the budget, from %s on, over restarts too", async (...spellings) => {
  for (const hasRestarts of [false, true]) {
    const service = await open();
    for (const [at, url] of spellings.entries()) {
      if (hasRestarts) await service.restart();
      await service.prove(boxAt(url, { passwords: rules(`wrong ${at}`), passwordAttempts: 3 }));
    }
    // The last one is reserved for a person.
    expect(service.sent).toEqual(["wrong 0", "wrong 1"]);
    for (const [at, url] of spellings.entries()) {
      if (hasRestarts) await service.restart();
      await service.drop(`supplied ${at}`);
      await service.prove(boxAt(url, { passwordAttempts: 3 }));
    }
    expect(service.sent).toEqual(["wrong 0", "wrong 1", "supplied 0"]);
  }
});

test.each(ORDERS)(
  "a refused password is not sent again at another spelling, from %s on",
  async (...spellings) => {
    const service = await open();
    const passwords = rules("wrong");
    for (const url of spellings) await service.prove(boxAt(url, { passwords, passwordAttempts: 9 }));
    await service.restart();
    for (const url of spellings) await service.prove(boxAt(url, { passwords, passwordAttempts: 9 }));
    expect(service.sent).toEqual(["wrong"]);
  },
);

test("mailboxes whose services are spelled differently try one at a time, and spend one budget", async () => {
  const service = await open();
  const boxes = SPELLINGS.map((url, at) =>
    boxAt(url, { name: `box-${at}`, passwords: rules("wrong", `wrong ${at}`), passwordAttempts: 3 }),
  );
  await Promise.all(boxes.map((box) => service.prove(box)));
  expect(service.sent).toEqual(["wrong", "wrong 0"]);
  expect(service.most).toBe(1);
});

test("an attempt whose verdict is unknown counts at every spelling, until a person grants one more", async () => {
  const service = await open();
  for (const url of SPELLINGS.slice(0, 3)) {
    await service.prove(boxAt(url, { passwords: rules("lost") })).catch(() => {});
  }
  expect(service.sent).toEqual(["lost", "lost"]);
  await service.grant();
  await service.drop(RIGHT);
  expect(await service.prove(boxAt(SPELLINGS[3] ?? ""))).toMatchObject({ kind: "accepted" });
});

test("what one service has accepted is sent to no other spelling by itself", async () => {
  const service = await open();
  const [first = "", second = ""] = SPELLINGS;
  await service.drop(RIGHT);
  expect(await service.prove(boxAt(first))).toMatchObject({ kind: "accepted" });
  expect(await service.prove(boxAt(second))).toMatchObject({ kind: "waiting" });
  await service.restart();
  expect(await service.prove(boxAt(second))).toMatchObject({ kind: "waiting" });
  expect(service.sent).toEqual([RIGHT]);
});

test.each(["open", "delivered"] as const)(
  "a password that is meant for a transfer of one service, which is %s, is not sent to another that lists the same tracking-id",
  async (state) => {
    const one = boxAt("https://one.example", { name: "one" });
    const other = boxAt("https://other.example", { name: "other" });
    const service = await open([one, other]);
    const record = makeRecord({ mailbox: one.name, trackingId: "t1" });
    await service.ledger().discover(record);
    if (state === "delivered") await service.ledger().end({ ...record, state });
    await service.drop(RIGHT);
    expect(await service.prove(other)).toMatchObject({
      kind: "waiting",
      message: expect.stringContaining("several services list"),
    });
    expect(service.sent).toEqual([]);
    await service.drop(RIGHT, other.name);
    expect(await service.prove(other)).toMatchObject({ kind: "accepted" });
  },
);

function rules(...texts: readonly string[]) {
  return texts.map((text) => ({ sender: undefined, trackingId: undefined, password: plainSecret(text) }));
}

function boxAt(url: string, more: Partial<MailboxSettings> = {}): MailboxSettings {
  return mailboxSettings({ url, clientId: "x" }, { passwords: [], ...more });
}

/** One service, which all addresses lead to. The verdict on "lost" gets lost. */
async function open(mailboxes: readonly MailboxSettings[] = []) {
  const folder = await makeFolder();
  const state = join(folder, "state");
  const world = { now: 0, most: 0, nowMs: 0 };
  const start = async () => {
    const ledger = await ledgerIn(folder);
    const passwords = await openPasswords({
      state,
      keepMs: undefined,
      // Nobody waits for the verdict on an attempt of an hour ago.
      clock: { now: () => (world.nowMs += 3_600_000) },
      attempts: ledger.attempts,
      nameOf: (key) => ledger.nameOf(key),
      coRecipients: coRecipientsAmong(() => mailboxes, ledger),
    });
    return { ledger, passwords };
  };
  let process = await start();
  const sent: string[] = [];
  const send = async (password: Secret): Promise<string> => {
    sent.push(password.reveal());
    world.most = Math.max(world.most, ++world.now);
    await new Promise(setImmediate);
    world.now--;
    if (password.reveal() === "lost") throw new Fault("CONNECTION_LOST", { answeredBy: "none" });
    if (password.reveal() !== RIGHT) throw new Fault("PASSWORD_REFUSED", { answeredBy: "service" });
    return "information";
  };
  return {
    sent,
    get most() {
      return world.most;
    },
    ledger: () => process.ledger,
    async restart() {
      process = await start();
    },
    async grant() {
      const { ledger } = process;
      const key = { mailbox: MAILBOX, trackingId: "t1" };
      const owner = { name: ledger.nameOf(key), round: 1, at: new Date().toISOString() };
      await ledger.attempts.grant("t1", owner, 1);
    },
    async drop(password: string, mailbox?: string) {
      const path = join(state, "passwords", mailbox ?? "", "t1");
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, password);
    },
    prove(mailbox: MailboxSettings) {
      const service = {
        id: serviceIdOf(mailbox.service.baseUrl),
        answers: 1,
        ownAnswers: () => service.answers,
      };
      const request = {
        mailbox,
        service,
        record: makeRecord({ mailbox: mailbox.name, trackingId: "t1" }),
        link: async () => undefined,
        send,
        probe: async () => void service.answers++,
        onRefused() {},
      };
      return process.passwords.prove(request, SIGNAL);
    },
  };
}
