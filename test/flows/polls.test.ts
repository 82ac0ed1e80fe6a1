/** Polls of a service that is slow, refuses, or changes what it said: the same with each queue. */
import { describe, expect, test } from "vitest";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";

const SOON = [0, 1, 2, 3, 4].map((at) => transferPlan({ trackingId: `t${at}` }));

describe("I8 bounded: a poll has a deadline", () => {
  test.each([
    ["as a whole, however steadily pages come", { stallMs: 60_000, totalMs: 700 }, 0.3],
    ["for the next page", { stallMs: 500, totalMs: 60_000 }, 2],
  ] as const)("%s; what was listed is taken up, and the mailbox shows why", async (_name, poll, seconds) => {
    const simulator = await openTestSimulator({ transfers: SOON, maxPageSize: 1 });
    simulator.addFault({ on: "received", skip: 1, times: "always", does: { kind: "stall", seconds } });
    const settings = await daemonSettings([mailboxSettings(simulator)]);
    const daemon = startDaemon(settings, { poll });
    // The newest is on the first page.
    await expect.poll(() => daemon.stateOf("t4")).toBe("delivered");
    await expect.poll(() => daemon.told).toEqual([`${MAILBOX}: POLL_TOO_LONG`]);
    simulator.clearFaults();
    await expect.poll(() => daemon.stateOf("t0")).toBe("delivered");
    await expect.poll(() => daemon.told).toEqual([`${MAILBOX}: POLL_TOO_LONG`, `${MAILBOX}: recovered`]);
  });
});
