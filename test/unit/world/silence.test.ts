/**
 * I7 nothing silent: whatever stops the work of a whole daemon is a trouble of its status in time, with its cause, and is
 * over when the cause is. In virtual time.
 */
import { expect, test } from "vitest";
import type { Status } from "../../../src/model/status.ts";
import { Random } from "../../world/ground/random.ts";
import { makeTransfer } from "../../world/plan/mail.ts";
import type { Happening, Plan } from "../../world/plan/plan.ts";
import { PLAIN, type Site } from "../../world/plan/site.ts";
import { runPlan } from "../../world/run.ts";
import { World } from "../../world/world.ts";

const MINUTE_MS = 60_000;
/** When the cause begins. */
const BEGIN_MS = 2 * MINUTE_MS;

/** In minutes. `seen`: how long after its beginning, at most one more than promised. `over`: how long after its end. */
type Times = readonly [seen: number, lasts: number, over: number];
type Way = readonly [
  times: Times,
  codes: readonly string[],
  does: readonly Happening[],
  site?: Partial<Site>,
];

const mood = (kind: "silent" | "away" | "foreign", minutes: number): Happening => ({
  kind: "weather",
  service: 0,
  weather: { mood: kind, share: 1 },
  ms: minutes * MINUTE_MS,
});

const ARRIVE: Happening = { kind: "arrive", transfer: 0 };
/** What is recorded once about a service is known before the cause begins. */
const EARLIER = { atMs: 10_000, what: { kind: "arrive", transfer: 1 } } as const;

const AWAY: Happening = { kind: "receiver", isAway: true, ms: 6 * MINUTE_MS };
const WEBHOOK = { url: "https://hooks.example/hand-over", secret: "Hook-0" };

const WAYS: Readonly<Record<string, Way>> = {
  // A request is given up after its time-out, and a poll makes several.
  "a service that never answers": [[4, 8, 6], ["SERVICE_TIMEOUT"], [mood("silent", 8)]],
  "a service that is away": [[2, 8, 6], ["SERVICE_UNREACHABLE"], [mood("away", 8)]],
  // With one status or another.
  "a service that answers with pages": [[3, 8, 6], ["BAD_ANSWER", "SERVER_FAULT"], [mood("foreign", 8)]],
  "a full disk": [
    [2, 6, 3],
    ["DISK_FULL", "disk"],
    [{ kind: "disk-full", ms: 6 * MINUTE_MS }, ARRIVE],
  ],
  "a hand-off whose command fails": [
    [2, 6, 6],
    ["handoff"],
    [{ kind: "command", exitCode: 1, ms: 6 * MINUTE_MS }, ARRIVE],
  ],
  "a hand-off whose receiver is away": [
    [2, 6, 12],
    ["handoff", "NOTIFY_WEBHOOK_FAILED"],
    [AWAY, ARRIVE],
    { handoff: { webhook: WEBHOOK } },
  ],
  "a check that gives no verdict": [
    [12, 17, 12],
    ["check"],
    [{ kind: "check", exitCode: 75, ms: 17 * MINUTE_MS, spoils: false }, ARRIVE],
    { hasCheck: true },
  ],
  "a process that stands still": [
    [6, 6, 2],
    ["TIMERS_LATE"],
    [{ kind: "freeze", ms: 5 * MINUTE_MS, afterSteps: 1 }],
  ],
  "a receiver of notifications that is away": [
    [3, 6, 12],
    ["NOTIFY_WEBHOOK_FAILED"],
    [AWAY, { kind: "damage", transfer: 0, ms: MINUTE_MS * 3 }, ARRIVE],
  ],
};

test.each(Object.entries(WAYS))(
  "%s is a trouble in time, and is over in time",
  async (_, [times, codes, does, site]) => {
    const seen: { readonly atMs: number; readonly codes: readonly string[] }[] = [];
    const world = new World(planOf(does, site));
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
    const [seenMs = 0, lastsMs = 0, overMs = 0] = times.map((minutes) => minutes * MINUTE_MS);
    expect(during(0, BEGIN_MS)).toEqual(new Set());
    // Nothing else is reported.
    expect(during(BEGIN_MS, BEGIN_MS + lastsMs + overMs)).toEqual(new Set(codes));
    const first = seen.find((each) => each.codes.length > 0);
    expect(first?.atMs).toBeLessThanOrEqual(BEGIN_MS + seenMs + 10_000);
    expect(during(BEGIN_MS + lastsMs + overMs, Number.POSITIVE_INFINITY)).toEqual(new Set());
  },
);

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
  const transfers = [0, 1].map((at) => {
    const made = makeTransfer(new Random(7), at, PLAIN, { archives: 0, oddNames: 0 });
    const { checksums: _, isPasswordInLink: __, ...transfer } = made;
    return { ...transfer, password: "Secret-common", message: undefined };
  });
  return {
    seed: 1,
    site: { ...PLAIN, ...site },
    transfers,
    happenings: [EARLIER, ...happenings.map((what) => ({ atMs: BEGIN_MS, what }))],
  };
}
