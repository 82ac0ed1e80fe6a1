/** I7 nothing silent: the daemon is killed at every step of its disk between an event and its message, and started again. */
import { beforeAll, describe, expect, test } from "vitest";
import { oneIn } from "../../support/thorough.ts";
import { Random } from "../../world/ground/random.ts";
import { makeTransfer } from "../../world/plan/mail.ts";
import type { Happening, Plan, PlannedHappening } from "../../world/plan/plan.ts";
import { BOX, PLAIN, PLAIN_BOX, PROGRAMS, type Site } from "../../world/plan/site.ts";
import { runPlan } from "../../world/run.ts";

interface Story {
  /** What is reported. */
  readonly kind: string;
  readonly site?: Partial<Site>;
  readonly happenings: readonly PlannedHappening[];
  /** From here on, the daemon is killed after some steps. */
  readonly killMs: number;
}

const LACKS_PASSWORD: Partial<Site> = { boxes: [{ ...PLAIN_BOX, knowsPassword: false }] };

const MOST_STEPS = 400;
/** Longer than it takes to start again and to send the message. */
const MESSAGE_MS = 5 * 60_000;

const stories: Readonly<Record<string, Story>> = {
  "a password that is needed": {
    kind: "password",
    site: LACKS_PASSWORD,
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
    site: LACKS_PASSWORD,
    happenings: [
      at(61, { kind: "arrive", transfer: 0 }),
      at(200, { kind: "vanish", transfer: 0, how: "deleted_by_revocation" }),
    ],
    killMs: 201_000,
  },
  "a hand-off that fails": {
    kind: "handoff",
    site: { handoff: { command: [PROGRAMS.common] } },
    happenings: [
      at(60, { kind: "command", exitCode: 1, ms: 600_000 }),
      at(61, { kind: "arrive", transfer: 0 }),
    ],
    killMs: 108_000,
  },
};

// The first world loads modules, which takes real time: its steps differ from those of later worlds.
beforeAll(async () => void (await runPlan({ seed: 1, site: PLAIN, transfers: [], happenings: [] })));

describe.each(Object.entries(stories))("%s", (_, story) => {
  test.each([
    ["kill", oneIn(3)],
    ["power cut", oneIn(4)],
  ])("is reported after a %s at any step before the message", async (end, every) => {
    let steps = 0;
    for (; steps < MOST_STEPS; steps += every) {
      const { violations, log } = await runPlan(planOf(story, steps, end === "power cut"), true);
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
  const transfer = makeTransfer(new Random(7), 0, PLAIN, { archives: 0, oddNames: 0 });
  const { checksums: _, isPasswordInLink: __, ...plain } = transfer;
  return {
    seed: 1,
    unrestMs: killMs + MESSAGE_MS,
    site: { ...PLAIN, handoff: {}, ...site },
    transfers: [{ ...plain, recipients: [BOX], password: "Secret-common", message: undefined }],
    happenings: [...happenings, { atMs: killMs, what: kill }].toSorted((a, b) => a.atMs - b.atMs),
  };
}

function at(seconds: number, what: Happening): PlannedHappening {
  return { atMs: seconds * 1_000, what };
}
