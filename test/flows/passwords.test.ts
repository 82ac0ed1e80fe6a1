/** Wrong passwords destroy transfers: which passwords are sent, how often, and the results of a refusal. */

import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Secret } from "../../src/base/secret.ts";
import type { MailboxSettings } from "../../src/config/settings.ts";
import type { AskedTransfer, PasswordCommand, PasswordRule } from "../../src/model/mailbox.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { ledgerIn } from "../support/ledger.ts";
import { drop, openMailbox, openTransfer, order, rules } from "../support/one-mailbox.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings, PASSWORD } from "../support/settings.ts";

const QUARTER_MS = 15 * 60_000;

describe("I3 no burnt transfers", () => {
  test("a rule's wrong password is sent once, before any file, across polls and restarts, and the wait is reported once", async () => {
    const files = Array.from({ length: 10 }, (_, at) => ({ name: `${at}`, text: "x" }));
    const { simulator, settings } = await openTransfer({ files }, { passwords: rules("Wr0ng!42") });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("waiting");
    const polls = simulator.totals().received;
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 6);
    await daemon.stop();
    const again = await runOnce(settings);
    expect([...daemon.changes, ...again.changes].map(({ state }) => state)).toEqual([
      "discovered",
      "downloading",
      "waiting",
    ]);
    expect(simulator.refusedPasswords("t1")).toEqual(["Wr0ng!42"]);
    expect(simulator.totals().file).toBe(0);
  });

  test("rules never spend the whole budget: the last attempt is for a supplied password", async () => {
    const passwords = rules("wrong 1", "wrong 2", "wrong 3", "wrong 4");
    const { simulator, settings } = await openMailbox({ passwords, passwordAttempts: 3 });
    for (let round = 0; round < 3; round++) await runOnce(settings);
    expect(simulator.refusedPasswords("t1")).toEqual(["wrong 1", "wrong 2"]);
    await drop(settings, "t1", "wrong 5");
    await runOnce(settings);
    await drop(settings, "t1");
    const last = await runOnce(settings);
    expect(simulator.refusedPasswords("t1")).toEqual(["wrong 1", "wrong 2", "wrong 5"]);
    expect(last.changes.at(-1)).toMatchObject({
      state: "waiting",
      reason: "password",
      message: expect.stringContaining("3 passwords were refused, which is all that passwordAttempts allows"),
    });
  });

  test("a lock is waited out, with at most one request after a restart", async () => {
    const { simulator, settings } = await openMailbox(
      { passwords: rules("Wr0ng!42") },
      { wrongPasswords: { limit: 1, reaction: "lock", lockSeconds: 3600 } },
    );
    const daemon = startDaemon(settings, { lockedMs: 3_000 });
    await expect.poll(() => daemon.changes.at(-1)?.reason).toBe("locked");
    await daemon.stop();
    const asked = simulator.totals().info;
    await runOnce(settings, { lockedMs: 60_000 });
    expect(simulator.totals().info).toBeLessThanOrEqual(asked + 1);
    simulator.advance(3601);
    const right = { ...settings, mailboxes: [mailboxSettings(simulator, { passwordAttempts: 3 })] };
    await expect.poll(async () => (await runOnce(right)).stateOf("t1")).toBe("delivered");
    expect(simulator.refusedPasswords("t1")).toEqual(["Wr0ng!42"]);
  });
});

describe("I3 no burnt transfers: a transfer that several mailboxes received", () => {
  const NAMES = ["a@example.com", "b@example.com", "c@example.com"];

  test("costs no more attempts than one mailbox may spend, whatever their rules", async () => {
    const { simulator, settings } = await openSeveral({ passwordAttempts: 3 }, (name) =>
      rules(`wrong 1 of ${name}`, `wrong 2 of ${name}`),
    );
    for (let round = 0; round < 3; round++) await runOnce(settings);
    expect(simulator.refusedPasswords("t1")).toHaveLength(2);
    await drop(settings, "t1", "wrong by hand");
    const last = await runOnce(settings);
    expect(simulator.refusedPasswords("t1")).toHaveLength(3);
    expect(
      last.changes.filter(({ state }) => state === "waiting").map(({ message }) => message),
    ).toContainEqual(
      expect.stringContaining("3 passwords were refused, over all mailboxes that received it, which is all"),
    );
  });

  test("opens for all of them with one supplied password, and a refused one is not repeated", async () => {
    const { simulator, settings } = await openSeveral({ passwords: [], pollMs: 3_600_000 });
    const daemon = startDaemon(settings);
    const waiting = () => daemon.changes.filter(({ state }) => state === "waiting");
    await expect.poll(() => new Set(waiting().map(({ mailbox }) => mailbox)).size).toBe(NAMES.length);
    const drops = () => readdir(join(settings.state, "passwords"));
    for (const text of ["not quite\n", "not quite"]) {
      await drop(settings, "t1", text);
      await expect.poll(() => simulator.refusedPasswords("t1")).toEqual(["not quite"]);
      await expect.poll(drops).toEqual([]);
    }
    await drop(settings, "t1", `${PASSWORD}\r\n`);
    await expect
      .poll(() =>
        daemon.changes
          .filter(({ state }) => state === "delivered")
          .map(({ mailbox }) => mailbox)
          .toSorted(),
      )
      .toEqual(NAMES);
    expect(simulator.refusedPasswords("t1")).toEqual(["not quite"]);
    expect(await drops()).toEqual([]);
    expect(await readdir(join(settings.state, "accepted"))).toHaveLength(1);
  });

  test("that was gone and came back keeps its spent attempts", async () => {
    const { simulator, settings } = await openSeveral({ passwords: rules("Wr0ng!42") });
    await runOnce(settings);
    const ledger = await ledgerIn(settings.inbox, { work: settings.work });
    for (const record of await Array.fromAsync(ledger.open(() => {}))) {
      await ledger.end({ ...record, state: "gone", reason: "not_listed" });
    }
    await ledger.flush();
    await runOnce(settings);
    expect(simulator.refusedPasswords("t1")).toEqual(["Wr0ng!42"]);
  });

  /** Three mailboxes of one service that received the same transfer. */
  async function openSeveral(mailbox: Partial<MailboxSettings>, rulesOf?: (name: string) => PasswordRule[]) {
    const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1", to: NAMES })] });
    const mailboxes = NAMES.map((name) => {
      const own = rulesOf === undefined ? {} : { passwords: rulesOf(name) };
      return mailboxSettings(simulator, { ...mailbox, ...own, name, email: name });
    });
    return { simulator, settings: await daemonSettings(mailboxes) };
  }
});

describe("passwords are found", () => {
  test.each([false, true])(
    "in the link of a transfer without its own password (with a session: %s)",
    async (sessionLinks) => {
      const plan = transferPlan({ trackingId: "t1", passwordMode: "NONE", password: "in the link &%+" });
      const { settings } = await openMailbox({ passwords: [] }, { sessionLinks, transfers: [plan] });
      expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    },
  );
});

describe("supplied passwords", () => {
  test("that were accepted are used again for redeliver", async () => {
    const { simulator, settings } = await openMailbox({ passwords: [] });
    await drop(settings, "t1");
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    await order(settings, "redeliver");
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    expect(simulator.refusedPasswords("t1")).toEqual([]);
  });

  test("that are late or useless are removed: at the end of a run from cron, at a start, and when no attempt is left", async () => {
    const { simulator, settings } = await openMailbox(
      { passwordAttempts: 1 },
      {
        transfers: [
          transferPlan({ trackingId: "t1" }),
          transferPlan({ trackingId: "t2", password: "Unknown-Secret:7" }),
        ],
      },
    );
    const drops = join(settings.state, "passwords");
    simulator.addFault({ on: "files", times: "always", does: { kind: "error", status: 503 } });
    const daemon = startDaemon(settings);
    await expect.poll(() => simulator.totals().files).toBeGreaterThan(0);
    await expect.poll(() => daemon.stateOf("t2")).toBe("waiting");
    await drop(settings, "t1", "wrong and late");
    await drop(settings, "t2", "one too many");
    simulator.clearFaults();
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    await expect.poll(() => readdir(drops)).toEqual(["t1"]);
    await expect
      .poll(() => daemon.changes.findLast(({ trackingId }) => trackingId === "t2"))
      .toMatchObject({
        state: "waiting",
        password: { isExhausted: true },
        message: expect.stringMatching(
          /all that passwordAttempts allows.*The supplied password was not sent\./,
        ),
      });
    await daemon.stop();
    await drop(settings, "not-yet", "of one that is still to come");
    await runOnce(settings);
    expect(await readdir(drops)).toEqual(["not-yet"]);
    expect(simulator.refusedPasswords("t1")).toEqual([]);
  });

  test("that cannot be used are reported once, and start no repeated attempts", async () => {
    const { simulator, settings } = await openMailbox({ passwords: [] });
    await mkdir(join(settings.state, "passwords", "t1"), { recursive: true });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.changes.at(-1)?.message).toContain("cannot be used");
    const [changes, polls] = [daemon.changes.length, simulator.totals().received];
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 6);
    expect(daemon.changes).toHaveLength(changes);
  });
});

test("a password command is asked about its transfer, and again while it knows none", async () => {
  const asked: AskedTransfer[] = [];
  const answers = [undefined, undefined, "Wr0ng!42", "Wr0ng!42", PASSWORD];
  const password: PasswordCommand = {
    described: "command vault",
    program: "vault",
    async ask(transfer) {
      asked.push(transfer);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      return answer === undefined ? undefined : new Secret(answer);
    },
  };
  const passwords = [{ sender: undefined, trackingId: undefined, password }];
  const { simulator, settings } = await openTransfer(
    { from: "anna@supplier.example", subject: "Offer" },
    { passwords, passwordAttempts: 3 },
  );
  let aheadMs = 0;
  const daemon = startDaemon(settings, { clock: { now: () => Date.now() + aheadMs } });
  await expect.poll(() => daemon.stateOf("t1")).toBe("waiting");
  expect(asked[0]).toEqual({
    mailbox: settings.mailboxes[0]?.name,
    sender: "anna@supplier.example",
    trackingId: "t1",
    subject: "Offer",
  });
  expect(simulator.refusedPasswords("t1")).toEqual([]);
  expect(daemon.changes.at(-1)).toMatchObject({ state: "waiting", subject: "Offer" });
  // No further question while polls go on, until a quarter of an hour is over.
  const polls = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 4);
  const before = asked.length;
  while (daemon.stateOf("t1") !== "delivered" && aheadMs < 20 * QUARTER_MS) {
    const questions = asked.length;
    aheadMs += QUARTER_MS;
    await expect.poll(() => asked.length > questions || daemon.stateOf("t1") === "delivered").toBe(true);
  }
  expect(before).toBeLessThanOrEqual(3);
  expect(daemon.stateOf("t1")).toBe("delivered");
  expect(simulator.refusedPasswords("t1")).toEqual(["Wr0ng!42"]);
});

describe("a transfer whose sender chose no password, and whose link carries none", () => {
  test("is opened without one", async () => {
    const { settings } = await openTransfer(
      { passwordMode: "NONE" },
      { passwords: [] },
      { noPassword: "open" },
    );
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  });

  test("is requested once without one, and then needs attention", async () => {
    const { simulator, settings } = await openTransfer(
      { passwordMode: "NONE" },
      { passwords: [] },
      { noPassword: "withheld" },
    );
    for (let round = 0; round < 3; round++) {
      const { changes } = await runOnce(settings);
      if (round === 0) expect(changes.at(-1)).toMatchObject({ state: "waiting", reason: "password" });
    }
    expect(simulator.totals().info).toBe(1);
    await drop(settings, "t1");
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  });
});
