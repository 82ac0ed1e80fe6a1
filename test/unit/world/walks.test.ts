/**
 * I1 whole or nothing, I2 once: one transfer of each kind, and a kill, a power cut, a failure or a pause at each step of the disk.
 */
import { describe, expect, test } from "vitest";
import { oneIn } from "../../support/thorough.ts";
import type { Happening } from "../../world/plan/plan.ts";
import { SITES, walk } from "../../world/walk.ts";

/** The first kind is walked in small steps. The others differ in their last steps, and share most of the first. */
const [first = ""] = Object.keys(SITES);

describe.each(Object.entries(SITES))("%s", (name, site) => {
  const every = oneIn(name === first ? 3 : 8);

  test("is delivered once, whole, and handed over, whenever the daemon is killed", async () => {
    const kill = { kind: "kill", inFolder: undefined, isPowerCut: false, downMs: 5_000 } as const;
    expect(await walk(site, (afterSteps) => [{ ...kill, afterSteps }], every)).toEqual([]);
  });

  test("is delivered once, whole, and handed over, whenever the power is cut", async () => {
    const cut = { kind: "kill", inFolder: undefined, isPowerCut: true, downMs: 5_000 } as const;
    expect(await walk(site, (afterSteps) => [{ ...cut, afterSteps }], every, 1)).toEqual([]);
  });

  test("is delivered once, whole, and handed over, whichever call of the disk fails", async () => {
    const fail = (afterSteps: number) =>
      [{ kind: "disk-fails", afterSteps, times: 1 + (afterSteps % 3) }] as const;
    expect(await walk(site, fail, every + 1)).toEqual([]);
  });

  test("is delivered once, whichever step a daemon pauses at while a second one works on the same folder", async () => {
    expect(await walk(site, pauseBesideSecond, oneIn(every + 1), 2)).toEqual([]);
  });
});

test.each<readonly [string, Happening]>([
  ["revoked", { kind: "vanish", transfer: 0, how: "deleted_by_revocation" }],
  ["discarded", { kind: "order", action: "discard", transfer: 0, withPassword: false }],
])("a transfer that is %s while a daemon pauses is not delivered after its end", async (_, end) => {
  const disturb = (afterSteps: number) => [...pauseBesideSecond(afterSteps), end];
  expect(await walk({}, disturb, oneIn(5))).toEqual([]);
});

function pauseBesideSecond(afterSteps: number): Happening[] {
  return [
    { kind: "freeze", ms: 8 * 60_000, afterSteps },
    { kind: "second", ms: 15 * 60_000 },
  ];
}
