/** Scenes that worlds have found, written down: unlike a seed, they stay the same when the program changes. */
import { describe, expect, test } from "vitest";
import { Random } from "../../world/ground/random.ts";
import { makeTransfer } from "../../world/plan/mail.ts";
import type { Happening, Plan } from "../../world/plan/plan.ts";
import type { SentTransfer } from "../../world/plan/sent.ts";
import { PLAIN, type Site } from "../../world/plan/site.ts";
import { runPlan } from "../../world/run.ts";

const MINUTE_MS = 60_000;

test("I8 bounded: a password that cannot be sent any more is not looked for again and again", async () => {
  // Both attempts are spent on pages of a proxy, and a third password lies there.
  const foreign = { mood: "foreign", share: 1, scope: "transfers" } as const;
  const password = { kind: "password", transfer: 0, isRight: false } as const;
  const happenings = [
    at(1_000, { kind: "weather", service: 0, weather: foreign, ms: 2 * MINUTE_MS }),
    at(40_000, password),
    at(44_000, password),
    at(48_000, { ...password, isRight: true }),
  ];
  const transfer = { securityMode: "QUICK", password: "Secret-agreed" };
  expect((await runPlan(planOf(happenings, transfer))).violations).toEqual([]);
});

describe("I1 whole or nothing: bytes that somebody has changed on the disk are never delivered", () => {
  const tamper = (where: "quarantine" | "staging") => at(50_000, { kind: "tamper", transfer: 0, where });
  const order = (action: "release" | "redeliver") =>
    at(80_000, { kind: "order", action, transfer: 0, withPassword: false });

  test.each([
    ["the transfer was damaged", { kind: "damage", transfer: 0, ms: 40_000 }],
    ["a check refused it", { kind: "check", exitCode: 1, ms: 40_000, spoils: false }],
  ] as const)("in quarantine, before a release, where %s", async (_, why) => {
    const site = { hasCheck: why.kind === "check" };
    const log = await runWell(planOf([at(0, why), tamper("quarantine"), order("release")], {}, site));
    expect(log.filter(isChange)).toHaveLength(1);
    expect(log.filter(isDelivery)).toHaveLength(1);
  });

  test.each([{}, { handoff: { deliver: "files", manifest: "beside" } }] as const)(
    "in a stage, wherever the ledger was when a daemon was killed; an operator has it delivered again, with %j",
    async (site) => {
      let decided = 0;
      for (let afterSteps = 1; afterSteps < 40; afterSteps++) {
        const kill = { kind: "kill", isPowerCut: false, downMs: 60_000 } as const;
        const killed = at(0, { ...kill, afterSteps, inFolder: "ledger" });
        const log = await runWell(planOf([killed, tamper("staging"), order("redeliver")], {}, site));
        const changed = log.findIndex(isChange);
        if (log.slice(0, Math.max(changed, 0)).some((line) => line.includes("ended as delivered"))) decided++;
        expect(log.some(isDelivery)).toBe(true);
      }
      // Between the end record and the move.
      expect(decided).toBeGreaterThan(0);
    },
  );
});

async function runWell(plan: Plan): Promise<readonly string[]> {
  const { violations, log } = await runPlan(plan, true);
  expect(violations).toEqual([]);
  return log;
}

function isChange(line: string): boolean {
  return line.includes("somebody changes bytes");
}

function isDelivery(line: string): boolean {
  return line.includes(" is delivered ");
}

function at(atMs: number, what: Happening) {
  return { atMs, what };
}

function planOf(happenings: Plan["happenings"], more: Partial<SentTransfer>, site: Partial<Site> = {}): Plan {
  const made = makeTransfer(new Random(7), 0, PLAIN, { archives: 0, oddNames: 0 });
  const { checksums: _, isPasswordInLink: __, ...transfer } = made;
  return {
    seed: 1,
    unrestMs: 3 * MINUTE_MS,
    isSmall: true,
    site: { ...PLAIN, ...site },
    transfers: [{ ...transfer, ...more }],
    happenings: [at(0, { kind: "arrive", transfer: 0 }), ...happenings],
  };
}
