/** Quiet hours: transfers are discovered, but downloaded only if they expire too soon. */
import { expect, test } from "vitest";
import { makeTimetable, WEEK_MS } from "../../src/base/timetable.ts";
import { daemonSettings, readTree, runOnce } from "../support/daemon.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings } from "../support/settings.ts";

const HOUR_MS = 3_600_000;
/** The epoch began on a Thursday. */
const THURSDAY_MS = 3 * 24 * HOUR_MS;

test("only transfers that expire too soon are downloaded in quiet hours", async () => {
  const simulator = await openTestSimulator({
    transfers: [
      transferPlan({ trackingId: "patient", expiresInSeconds: 30 * 24 * 3600 }),
      transferPlan({ trackingId: "urgent", expiresInSeconds: 24 * 3600 }),
    ],
  });
  // Quiet hours end in three and a half days, for an hour.
  const loudMs = Date.now() + 3.5 * 24 * HOUR_MS;
  const untilMs = (loudMs + THURSDAY_MS) % WEEK_MS;
  const loud = { fromMs: untilMs, untilMs: untilMs + HOUR_MS };
  const quiet = makeTimetable("UTC", [
    { fromMs: Math.max(0, loud.untilMs - WEEK_MS), untilMs: loud.fromMs },
    ...(loud.untilMs < WEEK_MS ? [{ fromMs: loud.untilMs, untilMs: WEEK_MS }] : []),
  ]);
  const settings = await daemonSettings([mailboxSettings(simulator, { quiet })]);
  const { stateOf, changes } = await runOnce(settings);
  const waits = changes.filter(({ state }) => state === "waiting");
  expect(waits).toMatchObject([{ reason: "quiet", until: new Date(loudMs).toISOString() }]);
  expect([stateOf("patient"), stateOf("urgent")]).toEqual(["waiting", "delivered"]);
  expect(Object.keys(await readTree(settings.inbox)).some((path) => path.includes("patient"))).toBe(false);
  // The next run finds it unchanged.
  const again = await runOnce(settings);
  expect(again.changes).toEqual([]);
  const loudSettings = { ...settings, mailboxes: [mailboxSettings(simulator)] };
  const { stateOf: stateLater } = await runOnce(loudSettings);
  expect(stateLater("patient")).toBe("delivered");
});
