/**
 * I7 nothing silent: whatever stops the work of a whole daemon is a trouble of its status in time, with its cause, and is
 * over when the cause is. In virtual time.
 */
import { expect, test } from "vitest";
import type { Status } from "../../../src/model/status.ts";
import { type Happening, makeTransfer, PLAIN, type Plan, type Site } from "../../world/plan.ts";
import { Random } from "../../world/random.ts";
import { runPlan } from "../../world/run.ts";
import { World } from "../../world/world.ts";

const MINUTE_MS = 60_000;
/** When the cause begins, and for how long it lasts. */
const BEGIN_MS = 2 * MINUTE_MS;

interface Way {
  readonly site?: Partial<Site>;
  readonly does: readonly Happening[];
  /** How long after its beginning it is seen: at most a minute after what was promised. */
  readonly seenMs: number;
  readonly codes: readonly string[];
  readonly lastsMs: number;
  /** How long after its end all is well. */
  readonly overMs: number;
}

const mood = (kind: "silent" | "away" | "failing" | "foreign", ms: number): Happening => ({
  kind: "service",
  mood: kind,
  ms,
});

const ARRIVE: Happening = { kind: "arrive", transfer: 0 };

const WAYS: Readonly<Record<string, Way>> = {
  // The interval of polls is a minute, so three minutes were promised. A poll that hangs is given up after ten.
  "a poll that never ends": {
    does: [mood("silent", 8 * MINUTE_MS)],
    seenMs: 4 * MINUTE_MS,
    codes: ["POLL_OVERDUE", "POLL_TOO_LONG"],
    lastsMs: 8 * MINUTE_MS,
    overMs: 6 * MINUTE_MS,
  },
  "a service that is away": {
    does: [mood("away", 8 * MINUTE_MS)],
    seenMs: 2 * MINUTE_MS,
    codes: ["SERVICE_UNREACHABLE"],
    lastsMs: 8 * MINUTE_MS,
    overMs: 6 * MINUTE_MS,
  },
  "a service that answers with pages": {
    does: [mood("foreign", 8 * MINUTE_MS)],
    seenMs: 3 * MINUTE_MS,
    codes: ["BAD_ANSWER"],
    lastsMs: 8 * MINUTE_MS,
    overMs: 6 * MINUTE_MS,
  },
  "a full disk": {
    does: [{ kind: "disk-full", ms: 6 * MINUTE_MS }, ARRIVE],
    seenMs: 2 * MINUTE_MS,
    codes: ["DISK_FULL", "disk"],
    lastsMs: 6 * MINUTE_MS,
    overMs: 3 * MINUTE_MS,
  },
  "a hand-off whose command fails": {
    does: [{ kind: "command", exitCode: 1, ms: 6 * MINUTE_MS }, ARRIVE],
    seenMs: 2 * MINUTE_MS,
    codes: ["handoff"],
    lastsMs: 6 * MINUTE_MS,
    overMs: 6 * MINUTE_MS,
  },
  "a hand-off whose receiver is away": {
    site: { handoff: { webhook: { url: "https://hooks.example/hand-over", secret: "Hook-0" } } },
    does: [{ kind: "receiver", isAway: true, ms: 6 * MINUTE_MS }, ARRIVE],
    seenMs: 2 * MINUTE_MS,
    codes: ["handoff", "NOTIFY_WEBHOOK_FAILED"],
    lastsMs: 6 * MINUTE_MS,
    overMs: 12 * MINUTE_MS,
  },
  "a check that gives no verdict": {
    site: { hasCheck: true },
    // An odd number of minutes: it leaves the files alone.
    does: [{ kind: "check", exitCode: 75, ms: 17 * MINUTE_MS }, ARRIVE],
    seenMs: 12 * MINUTE_MS,
    codes: ["check"],
    lastsMs: 17 * MINUTE_MS,
    overMs: 12 * MINUTE_MS,
  },
  "a process that stands still": {
    does: [{ kind: "freeze", ms: 5 * MINUTE_MS, afterSteps: 1 }],
    seenMs: 6 * MINUTE_MS,
    codes: ["TIMERS_LATE"],
    lastsMs: 6 * MINUTE_MS,
    overMs: 2 * MINUTE_MS,
  },
  "a receiver of notifications that is away": {
    does: [
      { kind: "receiver", isAway: true, ms: 6 * MINUTE_MS },
      { kind: "damage", transfer: 0, ms: MINUTE_MS * 3 },
      ARRIVE,
    ],
    seenMs: 3 * MINUTE_MS,
    codes: ["NOTIFY_WEBHOOK_FAILED"],
    lastsMs: 6 * MINUTE_MS,
    overMs: 12 * MINUTE_MS,
  },
};

test.each(Object.entries(WAYS))("%s is a trouble in time, and is over in time", async (_, way) => {
  const seen: { readonly atMs: number; readonly codes: readonly string[] }[] = [];
  const world = new World(planOf(way.does, way.site));
  const look = () => {
    const codes = codesOf(world.daemon?.vitals?.status());
    if (codes !== undefined) seen.push({ atMs: world.schedule.nowMs - startMs, codes });
    world.schedule.after(5_000, look);
  };
  const startMs = world.schedule.nowMs;
  world.schedule.after(30_000, look);
  await world.run();
  await world.close();
  expect(world.observer.violations).toEqual([]);
  const during = (fromMs: number, untilMs: number) =>
    new Set(seen.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs).flatMap(({ codes }) => codes));
  const { seenMs, lastsMs, overMs, codes } = way;
  expect(during(0, BEGIN_MS)).toEqual(new Set());
  // Nothing else is reported.
  expect(during(BEGIN_MS, BEGIN_MS + lastsMs + overMs)).toEqual(new Set(codes));
  const first = seen.find((each) => each.codes.length > 0);
  expect(first?.atMs).toBeLessThanOrEqual(BEGIN_MS + seenMs + 10_000);
  expect(during(BEGIN_MS + lastsMs + overMs, Number.POSITIVE_INFINITY)).toEqual(new Set());
});

test("a plain world has no trouble at any time", async () => {
  expect((await runPlan(planOf([ARRIVE]))).violations).toEqual([]);
});

/** Of its troubles, and the reasons of transfers that wait for their end. */
function codesOf(status: Status | undefined): readonly string[] | undefined {
  return (
    status && [
      ...status.troubles.map(({ code }) => code),
      ...status.attention.flatMap(({ state, reason = "" }) => (state === "quarantined" ? [] : [reason])),
    ]
  );
}

function planOf(happenings: readonly Happening[], site: Partial<Site> = {}): Plan {
  const transfer = makeTransfer(new Random(7), 0, PLAIN, { archives: 0 });
  return {
    seed: 1,
    site: { ...PLAIN, ...site },
    transfers: [{ ...transfer, password: "Secret-common", message: undefined }],
    happenings: happenings.map((what) => ({ atMs: BEGIN_MS, what })),
  };
}
