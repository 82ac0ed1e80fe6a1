/** A run that ends by itself waits for services that need a short pause, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { finishJobs } from "../../../src/daemon/unfinished.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { mailboxIdOf } from "../../../src/model/transfer.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";

const PAUSED: Partial<TransferRecord> = { state: "waiting", reason: "retry", code: "RATE_LIMITED" };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("runs a transfer again after the pause", async () => {
  const { ran, seconds } = await finish(PAUSED, 30);
  expect(ran).toBe(1);
  expect(seconds).toBe(30);
});

test.each([
  ["for long", PAUSED, 600],
  ["for another reason", { ...PAUSED, code: "TRANSFER_LOCKED" }, 30],
  ["in a mailbox that is not polled", { ...PAUSED, mailbox: "other" }, 30],
  ["since an earlier run", PAUSED, -1],
])("does not wait for a transfer that waits %s", async (_why, facts, untilSeconds) => {
  expect(await finish(facts, untilSeconds)).toEqual({ ran: 0, seconds: 0 });
});

test("waits for ten minutes at most, however often a service asks for a pause", async () => {
  const { ran, seconds } = await finish(PAUSED, 50, Number.POSITIVE_INFINITY);
  expect(ran).toBe(12);
  expect(seconds).toBe(600);
});

test("a stop ends the wait", async () => {
  expect(await finish(PAUSED, 30, 1, AbortSignal.abort())).toEqual({ ran: 0, seconds: 0 });
});

/** `untilSeconds`: until when the transfer waits after its first run. `times`: how often the service refuses it. */
async function finish(facts: Partial<TransferRecord>, untilSeconds: number, times = 1, stop = SIGNAL) {
  const beganMs = Date.now();
  const waiting = () =>
    makeRecord({ ...facts, until: new Date(Date.now() + untilSeconds * 1_000).toISOString() });
  let open = [waiting()];
  let ran = 0;
  const queue = {
    idle: async () => {},
    runNow: async () => {
      ran++;
      open = ran < times ? [waiting()] : [];
    },
  };
  const ledger = { flush: async () => {}, nameOf: () => "key", open: () => open };
  const parts = { queue, ledger, clock: systemClock } as unknown as Parameters<typeof finishJobs>[0];
  const finished = finishJobs(parts, new Set([mailboxIdOf("m")]), stop).then(() => Date.now() - beganMs);
  await vi.advanceTimersByTimeAsync(3_600_000);
  return { ran, seconds: (await finished) / 1_000 };
}
