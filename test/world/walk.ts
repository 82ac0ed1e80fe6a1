/** Walks: one plain transfer, and one disturbance at each step of the disk, one world for each. */

import { Random } from "./ground/random.ts";
import { makeTransfer } from "./plan/mail.ts";
import type { Happening, Plan } from "./plan/plan.ts";
import { PLAIN, PROGRAMS, type RawHandoff, type Site } from "./plan/site.ts";
import { runPlan } from "./run.ts";
import { World } from "./world.ts";

const MINUTE_MS = 60_000;
/** When the transfer arrives, and what disturbs it begins. */
const BEGIN_MS = 1_000;
/** From then to what happens during a long pause. */
const LATER_MS = 4 * MINUTE_MS;

/** How a delivery can look. */
export const SITES: Readonly<Record<string, Partial<Site>>> = {
  "one folder": {},
  "one folder, after a check": { hasCheck: true },
  "a folder with its manifest beside it": { handoff: withCommand({ manifest: "beside" }) },
  "single files": { handoff: withCommand({ deliver: "files", manifest: "beside", done: true }) },
  "unpacked files of a ZIP": { fetch: "zip", handoff: withCommand({ unpack: "instead" }) },
};

function withCommand(handoff: RawHandoff): RawHandoff {
  return { ...handoff, command: [PROGRAMS.common] };
}

/** The number of steps differs a little from world to world. */
const SPARE_STEPS = 10;

/**
 * The violations of all worlds, each with its step. `disturb`: what happens from that step on. `skip`: the steps that are
 * left out first, so that walks with the same interval look at different ones.
 */
export async function walk(
  site: Partial<Site>,
  disturb: (afterSteps: number) => readonly Happening[],
  every: number,
  skip = 0,
): Promise<string[]> {
  const found: string[] = [];
  const [first, last] = await stepsOf({ ...PLAIN, ...site });
  for (let step = first - SPARE_STEPS + skip; step <= last + SPARE_STEPS; step += every) {
    const { violations } = await runPlan(planOf({ ...PLAIN, ...site }, disturb(step), step));
    found.push(...violations.map((text) => `step ${step}: ${text}`));
  }
  return found;
}

/** The step of the discovery, and that of the end of the hand-off. */
async function stepsOf(site: Site): Promise<[number, number]> {
  const world = new World(planOf(site, [], 1));
  let begun = 0;
  world.schedule.after(BEGIN_MS, () => {
    begun = world.daemon?.process.steps ?? 0;
  });
  await world.run();
  await world.close();
  const [first = 0, last = 0] = ["transfer-discovered", "handoff-succeeded"].map((type) =>
    world.firsts.get(type),
  );
  return [first - begun, last - begun];
}

function planOf(site: Site, happenings: readonly Happening[], seed: number): Plan {
  const taste = { archives: 0.5, oddNames: 0 };
  const { isPasswordInLink: _, checksums: __, ...transfer } = makeTransfer(new Random(7), 0, site, taste);
  const all: Happening[] = [{ kind: "arrive", transfer: 0 }, ...happenings];
  const atMs = ({ kind }: Happening) =>
    kind === "vanish" || kind === "order" ? BEGIN_MS + LATER_MS : BEGIN_MS;
  const lastsMs = Math.max(0, ...happenings.map((what) => ("ms" in what ? what.ms : 0)));
  return {
    seed,
    unrestMs: lastsMs + 2 * MINUTE_MS,
    site,
    transfers: [{ ...transfer, password: "Secret-common" }],
    happenings: all.map((what) => ({ atMs: atMs(what), what })),
  };
}
