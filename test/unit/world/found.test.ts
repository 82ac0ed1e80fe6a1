/** Scenes that worlds have found, written down: unlike a seed, they stay the same when the program changes. */
import { describe, expect, test } from "vitest";
import { Random } from "../../world/ground/random.ts";
import { makeTransfer } from "../../world/plan/mail.ts";
import type { Happening, Plan } from "../../world/plan/plan.ts";
import type { SentTransfer } from "../../world/plan/sent.ts";
import {
  BOX,
  type Box,
  OTHER_INBOX,
  PLAIN,
  PLAIN_BOX,
  PROGRAMS,
  SECOND_BOX,
  type Site,
  THIRD_BOX,
} from "../../world/plan/site.ts";
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

test("nothing is left in quarantine of a transfer that was discarded while it was moved there", async () => {
  const discard = { kind: "order", action: "discard", transfer: 0, withPassword: false } as const;
  const next = { kind: "when", afterSteps: 0, pauseMs: 0 } as const;
  const slowMove = { ...next, inFolder: "quarantine", stallMs: 30_000, what: discard } as const;
  // Not at a step of its start.
  const slow = { ...next, inFolder: undefined, moment: "information", what: slowMove } as const;
  const damage = { kind: "damage", transfer: 0, ms: 60_000 } as const;
  const log = await runWell(planOf([at(0, damage), at(0, slow)], {}));
  expect(log.filter((line) => line.includes("ended as gone"))).toHaveLength(1);
});

test("a transfer is shown in quarantine although the disk failed right after it was moved there", async () => {
  const damage = { kind: "damage", transfer: 0, ms: 60_000 } as const;
  const fails = { kind: "sync-fails", afterSteps: 0, times: 1, inFolder: "quarantine" } as const;
  const next = { kind: "when", afterSteps: 0, pauseMs: 0, inFolder: undefined } as const;
  const log = await runWell(
    planOf([at(0, damage), at(0, { ...next, moment: "information", what: fails })], {}),
  );
  expect(log.some((line) => line.includes("the disk fails: sync /data/inbox/.inlet/quarantine"))).toBe(true);
});

test("a folder of an earlier round of another mailbox is no reason to ask", async () => {
  const redeliver = { kind: "order", action: "redeliver", transfer: 0, withPassword: false } as const;
  const layout = "all/{trackingId}";
  const site = { ...PLAIN, layout, boxes: [PLAIN_BOX, { ...PLAIN_BOX, email: SECOND_BOX }] };
  const happenings = [at(60_000, redeliver), at(100_000, { kind: "site", site } as const)];
  const log = await runWell(
    planOf(happenings, { recipients: [BOX, SECOND_BOX] }, { layout, boxes: [PLAIN_BOX] }),
  );
  expect(log.filter(isDelivery)).toHaveLength(3);
});

test("no folder is removed early because the clock was behind when it was delivered", async () => {
  const clock = at(0, { kind: "clock", byMs: -120 * MINUTE_MS, ms: 45_000 });
  const plan = planOf([clock], {}, { handoff: { keep: { notPickedUp: "5m" } } });
  const log = await runWell({ ...plan, unrestMs: 7 * MINUTE_MS });
  expect(log.some((line) => line.includes("folder-removed"))).toBe(true);
});

test("I7 nothing silent: a process shows what another one has made of its transfer", async () => {
  const damage = at(0, { kind: "damage", transfer: 0, ms: 100_000 });
  const pause = { kind: "freeze", afterSteps: 1, ms: 45_000, inFolder: "staging" } as const;
  let taken = 0;
  for (let seed = 1; seed <= 4; seed++) {
    // Of the process that status is asked of.
    const paused = at(0, {
      kind: "when",
      moment: "file",
      afterSteps: 0,
      pauseMs: 0,
      inFolder: undefined,
      what: pause,
    });
    const log = await runWell({ ...planOf([damage, paused], {}, { isShared: true }), seed });
    const daemons = log.flatMap((line) => /(daemon \d): .* is downloading/.exec(line)?.[1] ?? []);
    if (new Set(daemons).size > 1) taken++;
  }
  expect(taken).toBeGreaterThan(0);
});

describe("what a rule leaves out now leaves nothing in quarantine, and is shown as that", () => {
  const site = { ...PLAIN, boxes: [{ ...PLAIN_BOX, otherwise: "ignore" }] } as const;
  const run = async (meanwhile: Happening) => {
    const log = await runWell(
      planOf(
        [
          at(0, { kind: "damage", transfer: 0, ms: 10_000 }),
          at(20_000, { kind: "site", site }),
          at(30_000, meanwhile),
          at(30_000, { kind: "order", action: "retry", transfer: 0, withPassword: false }),
        ],
        {},
      ),
    );
    expect(log.filter((line) => line.includes("ended as gone"))).toHaveLength(1);
    return log;
  };

  test("although the disk fails right after its round has ended", async () => {
    const log = await run({ kind: "disk-fails", afterSteps: 0, times: 1, inFolder: "quarantine" });
    expect(log.some((line) => line.includes("the disk fails"))).toBe(true);
  });

  test.each([
    ["quarantine", 0],
    ...Array.from({ length: 5 }, (_, steps) => ["ledger", steps] as const),
  ] as const)("although a daemon is killed in %s after %i steps", async (inFolder, afterSteps) => {
    const log = await run({ kind: "kill", isPowerCut: false, downMs: 30_000, afterSteps, inFolder });
    expect(log.some((line) => line.includes("is killed"))).toBe(true);
  });
});

test("what a power cut brings back of a delivery that was picked up is in the way of nothing", async () => {
  const site = { handoff: { deliver: "files", manifest: "beside" } } as const;
  const happenings = [
    at(0, { kind: "greedy", ms: 50_000 }),
    at(60_000, { kind: "kill", afterSteps: 1, inFolder: undefined, isPowerCut: true, downMs: 10_000 }),
  ];
  for (let seed = 1; seed <= 8; seed++) {
    const log = await runWell({ ...planOf(happenings, {}, site), unrestMs: 20 * MINUTE_MS, seed });
    const cut = log.findIndex((line) => line.includes("the power is cut"));
    expect(log.slice(0, cut).some((line) => line.includes("folder-picked-up"))).toBe(true);
  }
});

test("nothing is left of a delivery that a crash has made unknown, and that the service lists no longer", async () => {
  const plan = planOf([], {}, { handoff: { command: [PROGRAMS.common] } });
  const happenings = [
    at(1_000, { kind: "kill", afterSteps: 0, inFolder: "outbox", isPowerCut: false, downMs: 200_000 }),
    at(2_000, { kind: "arrive", transfer: 0 }),
    at(100_000, { kind: "vanish", transfer: 0, how: "deleted_by_revocation" }),
  ];
  const log = await runWell({ ...plan, happenings });
  expect(log.some((line) => line.includes("is delivering"))).toBe(true);
  expect(log.some(isDelivery)).toBe(false);
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

const NAMES: readonly (readonly (string | undefined)[])[] = [
  ["orders"],
  [undefined, "orders"],
  ["orders", undefined],
  ["orders", "invoices", "orders"],
];

describe("I2 once: a mailbox keeps its records, whatever it is called", () => {
  const boxOf = (name: string | undefined): Box => ({ ...PLAIN_BOX, ...(name !== undefined && { name }) });

  test.each(NAMES.flatMap((names) => [true, false].map((isReload) => ({ names, isReload }))))(
    "$names, by a reload: $isReload",
    async ({ names, isReload }) => {
      const happenings = names.map((name, index) => changed({ boxes: [boxOf(name)] }, index + 1, isReload));
      expect((await runPlan(planOf(happenings, {}))).violations).toEqual([]);
    },
  );

  test.each([true, false])(
    "two swap their names while deliveries wait, by a reload: %j",
    async (isReload) => {
      const boxes = (one: string, other: string): Box[] => [
        { ...PLAIN_BOX, name: one },
        { ...PLAIN_BOX, name: other, email: SECOND_BOX },
      ];
      const happenings = [
        at(0, { kind: "command", exitCode: 1, ms: 50_000 }),
        changed({ boxes: boxes("two", "one") }, 1, isReload),
        changed({ boxes: boxes("one", "two") }, 2, isReload),
      ];
      const plan = planOf(happenings, { recipients: [BOX] }, { boxes: boxes("one", "two") });
      expect((await runPlan(plan)).violations).toEqual([]);
    },
  );

  test.each([true, false])("its inbox changes, by a reload: %j", async (isReload) => {
    const happenings = [changed({ boxes: [{ ...PLAIN_BOX, inbox: OTHER_INBOX }] }, 1, isReload)];
    expect((await runPlan(planOf(happenings, {}))).violations).toEqual([]);
  });
});

describe("a step after a delivery is run for its owner only", () => {
  const own: Box = { ...PLAIN_BOX, handoff: { command: [PROGRAMS[BOX]] } };
  const others: Box = { ...PLAIN_BOX, email: SECOND_BOX };
  const webhook = { url: "https://hooks.example/hand-over", secret: "Hook-0" };
  const handoff = { command: [PROGRAMS.common], webhook };

  test.each([
    { what: "the mailbox is removed", boxes: [others] },
    { what: "its address changes", boxes: [{ ...own, email: THIRD_BOX }, others] },
    { what: "its own hand-off is taken out", boxes: [PLAIN_BOX, others] },
  ])("$what while its delivery waits, and is back later", async ({ boxes }) => {
    const happenings = [
      at(0, { kind: "command", exitCode: 1, ms: 25_000 }),
      changed({ boxes, handoff }, 1, true),
      changed({ boxes: [own, others], handoff }, 10, true),
    ];
    const plan = planOf(happenings, { recipients: [BOX] }, { boxes: [own, others], handoff });
    expect((await runPlan({ ...plan, unrestMs: 12 * MINUTE_MS })).violations).toEqual([]);
  });
});

/** The configuration changes, 20 seconds after the start of its turn. */
function changed(site: Partial<Site>, turn: number, isReload: boolean) {
  const changedSite = { ...PLAIN, ...site };
  const restart: Happening = { kind: "stop", downMs: 1_000, inSite: changedSite };
  return at(turn * 20_000, isReload ? { kind: "site", site: changedSite } : restart);
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
