/** Scenes that worlds have found, written down: unlike a seed, they stay the same when the program changes. */
import { expect, test } from "vitest";
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
