/** I7 nothing silent: the daemon is killed at every step of its disk between an event and its message, and started again. */
import { beforeAll, describe, expect, test } from "vitest";
import { oneIn } from "../../support/thorough.ts";
import {
  BOX,
  type Happening,
  makePlan,
  type Plan,
  type PlannedHappening,
  PROGRAMS,
} from "../../world/plan.ts";
import { runPlan } from "../../world/run.ts";

interface Story {
  /** What is reported. */
  readonly kind: string;
  readonly site?: Partial<Plan["site"]>;
  readonly happenings: readonly PlannedHappening[];
  /** From here on, the daemon is killed after some steps. */
  readonly killMs: number;
}

const SITE = {
  box: BOX,
  hasSecondBox: false,
  fetch: "files",
  routes: [],
  otherwise: "deliver",
  handoff: {},
  hasCheck: false,
  isShared: false,
  knowsPassword: true,
} as const;

const MOST_STEPS = 400;
/** Longer than it takes to start again and to send the message. */
const MESSAGE_MS = 3 * 60_000;

const stories: Readonly<Record<string, Story>> = {
  "a password that is needed": {
    kind: "password",
    site: { knowsPassword: false },
    happenings: [at(61, { kind: "arrive", transfer: 0 })],
    killMs: 61_000,
  },
  "a transfer in quarantine": {
    kind: "quarantined",
    happenings: [
      at(60, { kind: "damage", transfer: 0, ms: 120_000 }),
      at(61, { kind: "arrive", transfer: 0 }),
    ],
    killMs: 61_000,
  },
  "a transfer that is gone": {
    kind: "gone",
    site: { knowsPassword: false },
    happenings: [
      at(61, { kind: "arrive", transfer: 0 }),
      at(200, { kind: "vanish", transfer: 0, how: "deleted_by_revocation" }),
    ],
    killMs: 201_000,
  },
  "a hand-off that fails": {
    kind: "handoff",
    site: { handoff: { command: [PROGRAMS.command] } },
    happenings: [
      at(60, { kind: "command", exitCode: 1, ms: 600_000 }),
      at(61, { kind: "arrive", transfer: 0 }),
    ],
    killMs: 108_000,
  },
};

// The first world loads modules, which takes real time: its steps differ from those of later worlds.
beforeAll(async () => void (await runPlan(makePlan(1))));

describe.each(Object.entries(stories))("%s", (_, story) => {
  test.each([
    ["kill", oneIn(3)],
    ["power cut", oneIn(4)],
  ])("is reported after a %s at any step before the message", async (end, every) => {
    let steps = 0;
    for (; steps < MOST_STEPS; steps += every) {
      const { violations, log } = await runPlan(planOf(story, steps, end === "power cut"));
      const message = log.findIndex((line) => line.includes(`a notification: ${story.kind} `));
      // A power cut may take the note of a transfer that is not listed any longer: then nothing knows of it.
      const isForgotten = end === "power cut" && !log.some((line) => line.includes(`is ${story.kind}`));
      const silent = violations.filter((text) => /notified|status/.test(text));
      expect([steps, silent, message >= 0 || isForgotten]).toEqual([steps, [], true]);
      const death = log.findIndex((line) => /is killed|the power is cut/.test(line));
      if (message >= 0 && (message < death || death < 0)) break;
    }
    // The message needs some steps, and came at last without a kill.
    expect(steps).toBeGreaterThan(10);
    expect(steps).toBeLessThan(MOST_STEPS);
  });
});

function planOf({ site, happenings, killMs }: Story, afterSteps: number, isPowerCut: boolean): Plan {
  const kill: Happening = { kind: "kill", afterSteps, inFolder: undefined, isPowerCut, downMs: 20_000 };
  const plan = makePlan(1);
  const [first] = plan.transfers;
  if (first === undefined) throw new Error("no transfer");
  return {
    seed: plan.seed,
    unrestMs: killMs + MESSAGE_MS,
    site: { ...SITE, ...site },
    transfers: [{ ...first, recipients: [BOX], password: "Secret-common", message: undefined }],
    happenings: [...happenings, { atMs: killMs, what: kill }].toSorted((a, b) => a.atMs - b.atMs),
  };
}

function at(seconds: number, what: Happening): PlannedHappening {
  return { atMs: seconds * 1_000, what };
}
