/** Polls of a service that is slow, refuses, or changes its lists, with each engine. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { POLLS_AT_ONCE } from "../../src/model/job.ts";
import type { Status } from "../../src/model/status.ts";
import { readApi } from "../support/api.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { openMailbox, order } from "../support/one-mailbox.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, PASSWORD, pageSettings } from "../support/settings.ts";

const SOON = [0, 1, 2, 3, 4].map((at) => transferPlan({ trackingId: `t${at}` }));

test.each(["run", "once"] as const)(
  "I6 no contagion: a service with stalled lists and files does not delay another one (%s)",
  async (mode) => {
    const addresses = Array.from({ length: 2 * POLLS_AT_ONCE }, (_, at) => `m${at}@example.com`);
    const slow = await openTestSimulator({
      transfers: addresses.slice(0, 4).map((address) => transferPlan({ to: [address] })),
    });
    slow.addFault({ on: "file", times: "always", does: { kind: "stall" } });
    // Mailboxes without a transfer never get their list.
    slow.addFault({ on: "received", skip: 8, times: "always", does: { kind: "stall" } });
    const fine = await openTestSimulator({ transfers: SOON });
    const stalling = addresses.map((email) => mailboxSettings(slow, { name: email, email, pollMs: 600_000 }));
    const timeoutMs = 600_000;
    const patient = stalling.map((it) => ({ ...it, service: { ...it.service, timeoutMs } }));
    const settings = await daemonSettings([...patient, mailboxSettings(fine)]);
    const limits = { ...settings.limits, transfers: 2 };
    const daemon = startDaemon({ ...settings, limits }, { mode, graceMs: 0 });
    const delivered = () => daemon.changes.filter(({ state }) => state === "delivered");
    await expect.poll(() => delivered().length, { timeout: 60_000 }).toBe(SOON.length);
  },
);

describe("I8 bounded: a poll has a deadline", () => {
  test.each([
    ["as a whole, however steadily pages come", { stallMs: 60_000, totalMs: 700 }, 0.3],
    ["for the next page", { stallMs: 500, totalMs: 60_000 }, 2],
  ] as const)("%s; what was listed is taken up, and the mailbox shows why", async (_name, poll, seconds) => {
    const { simulator, settings } = await openMailbox({}, { transfers: SOON, maxPageSize: 1 });
    simulator.addFault({ on: "received", skip: 1, times: "always", does: { kind: "stall", seconds } });
    const daemon = startDaemon(settings, { poll });
    // The newest is on the first page.
    await expect.poll(() => daemon.stateOf("t4")).toBe("delivered");
    await expect.poll(() => daemon.reports).toEqual([`${MAILBOX}: POLL_TOO_LONG`]);
    simulator.clearFaults();
    await expect.poll(() => daemon.stateOf("t0")).toBe("delivered");
    // On a busy machine, a poll that nothing holds up may take too long as well.
    await expect.poll(() => daemon.reports.at(-1)).toBe(`${MAILBOX}: recovered`);
    expect(daemon.reports.slice(0, 2)).toEqual([`${MAILBOX}: POLL_TOO_LONG`, `${MAILBOX}: recovered`]);
  });
});

describe("a mailbox that cannot be polled", () => {
  test("is polled less and less often, and at its interval after the first success", async () => {
    const { simulator, settings } = await openMailbox({}, { transfers: [] });
    const daemon = startDaemon(settings);
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(2);
    const fault = simulator.addFault({
      on: "received",
      times: "always",
      does: { kind: "error", status: 503 },
    });
    const before = simulator.totals().received;
    await setTimeout(4_000);
    // At its interval of 0.1 s there would be 40 polls.
    expect(simulator.totals().received - before).toBeLessThan(10);
    expect(simulator.totals().received - before).toBeGreaterThan(0);
    simulator.removeFault(fault);
    await expect.poll(() => daemon.reports).toEqual([`${MAILBOX}: SERVER_FAULT`, `${MAILBOX}: recovered`]);
    const after = simulator.totals().received;
    await expect.poll(() => simulator.totals().received - after).toBeGreaterThan(4);
  });

  test("is not polled before the service's Retry-After, and shows its next poll", async () => {
    const { simulator, settings } = await openMailbox({}, {}, { http: pageSettings() });
    const does = { kind: "error", status: 429, retryAfter: "3600" } as const;
    simulator.addFault({ on: "received", does });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.reports).toEqual([`${MAILBOX}: RATE_LIMITED`]);
    const answer = await readApi(new URL("/api/status", await daemon.page));
    const [mailbox] = (answer as Status).mailboxes;
    expect(Date.parse(mailbox?.nextPoll ?? "") - Date.now()).toBeGreaterThan(3_500_000);
    expect(mailbox?.trouble).toMatchObject({ code: "RATE_LIMITED", since: expect.any(String) });
    await setTimeout(1_000);
    expect(simulator.totals().received).toBe(1);
    // A reload polls at once.
    await daemon.reload(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  });

  test("is not polled by a later process before the end of the rest that the service asked for", async () => {
    const other = "second@example.com";
    const { simulator, settings } = await openMailbox();
    const limit = { on: "received", does: { kind: "error", status: 429, retryAfter: "3600" } } as const;
    const fault = simulator.addFault({ ...limit, times: "always" });
    const first = await runOnce(settings);
    expect(first.reports).toEqual([`${MAILBOX}: RATE_LIMITED`]);
    const mailboxes = [MAILBOX, other].map((email) => mailboxSettings(simulator, { name: email, email }));
    const run = await runOnce({ ...settings, mailboxes });
    expect(run.reports.toSorted()).toEqual([`${MAILBOX}: SERVICE_RESTS`, `${other}: SERVICE_RESTS`]);
    expect((await run.outcome).failedPolls).toBe(2);
    const daemon = startDaemon({ ...settings, http: pageSettings() });
    const status = async () => (await readApi(new URL("/api/status", await daemon.page))) as Status;
    await expect.poll(async () => (await status()).troubles).toMatchObject([{ code: "SERVICE_RESTS" }]);
    expect(simulator.totals().received).toBe(1);
    simulator.removeFault(fault);
    await daemon.reload(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  });

  test("is polled at once when an operator gives an order for one of its transfers", async () => {
    const { simulator, settings } = await openMailbox({ passwords: [] });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("waiting");
    simulator.addFault({ on: "received", does: { kind: "error", status: 429, retryAfter: "3600" } });
    await expect.poll(() => daemon.reports).toEqual([`${MAILBOX}: RATE_LIMITED`]);
    await order(settings, "retry");
    await expect.poll(() => daemon.reports).toEqual([`${MAILBOX}: RATE_LIMITED`, `${MAILBOX}: recovered`]);
  });
});

test("a service that refuses the page after the last one is polled like any other, and vanished transfers are noticed", async () => {
  const { simulator, settings } = await openMailbox({ passwords: [] }, { transfers: SOON });
  simulator.addFault({ on: "received", fromPage: 2, times: "always", does: { kind: "html", status: 404 } });
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.stateOf("t1")).toBe("waiting");
  simulator.revoke("t1");
  await expect.poll(() => daemon.stateOf("t1")).toBe("gone");
  expect(daemon.changes.at(-1)).toMatchObject({ reason: "deleted_by_revocation" });
  expect(daemon.reports).toEqual([]);
});

describe("a known transfer", () => {
  test("is downloaded with the current transfer-id and expiry of the list", async () => {
    const { simulator, settings } = await openMailbox();
    const alter = (path: string, value: string) =>
      simulator.addFault({ on: "received", times: "always", does: { kind: "alter", path, value } });
    alter("data.0.status.recipients.0.id", "of-another-day");
    alter("data.0.transfer.expirationDate", "2099-01-01T00:00:00+00:00");
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("waiting");
    simulator.clearFaults();
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    const [transfer] = simulator.transfers();
    const end = daemon.changes.at(-1);
    expect(end?.transferId).toBe(transfer?.recipients[0]?.transferId);
    expect(end?.expires).not.toMatch(/^2099/);
  });

  test("is downloaded with its known transfer-id if the list no longer names the address", async () => {
    const { simulator, settings } = await openMailbox({ passwords: [] });
    expect((await runOnce(settings)).stateOf("t1")).toBe("waiting");
    const does = {
      kind: "alter",
      path: "data.0.status.recipients.0.mail",
      value: "x@proxy.invalid",
    } as const;
    simulator.addFault({ on: "received", times: "always", does });
    await writeFile(join(settings.state, "passwords/t1"), PASSWORD);
    const daemon = await runOnce(settings);
    expect(daemon.reports).toEqual([]);
    expect(daemon.stateOf("t1")).toBe("delivered");
  });
});

test("a transfer that is listed again has not vanished, and a vanished one ends as gone after two runs from cron", async () => {
  const { simulator, settings } = await openMailbox({ passwords: [] });
  expect((await runOnce(settings)).stateOf("t1")).toBe("waiting");
  for (let round = 0; round < 3; round++) {
    simulator.addFault({ on: "received", does: { kind: "alter", path: "data", value: [] } });
    expect((await runOnce(settings)).changes).toEqual([]);
    expect((await runOnce(settings)).changes.map(({ state }) => state)).not.toContain("gone");
  }
  simulator.revoke("t1");
  expect((await runOnce(settings)).stateOf("t1")).toBeUndefined();
  const { changes } = await runOnce(settings);
  expect(changes.at(-1)).toMatchObject({ state: "gone", reason: "deleted_by_revocation" });
  expect(changes.at(-1)).not.toHaveProperty("missedPolls");
});
