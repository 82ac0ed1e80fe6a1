/** Walks: one plain transfer, and one disturbance at each step of the disk, one world for each. */
import {
  type Happening,
  makeTransfer,
  PLAIN,
  type Plan,
  PROGRAMS,
  type RawHandoff,
  type Site,
} from "./plan.ts";
import { Random } from "./random.ts";
import { runPlan } from "./run.ts";

/** How a delivery can look. */
export const SITES: Readonly<Record<string, Partial<Site>>> = {
  "one folder": {},
  "one folder, after a check": { hasCheck: true },
  "a folder with its manifest beside it": { handoff: withCommand({ manifest: "beside" }) },
  "single files": { handoff: withCommand({ deliver: "files", manifest: "beside", done: true }) },
  "unpacked files of a ZIP": { fetch: "zip", handoff: withCommand({ unpack: "instead" }) },
};

function withCommand(handoff: RawHandoff): RawHandoff {
  return { ...handoff, command: [PROGRAMS.command] };
}

/** More steps than any of these transfers needs, from its discovery to the end of its hand-off. */
const STEPS = 220;

/** The violations of all worlds, each with its step. `disturb`: what happens from that step on. */
export async function walk(
  site: Partial<Site>,
  disturb: (afterSteps: number) => readonly Happening[],
  every = 1,
): Promise<string[]> {
  const found: string[] = [];
  for (let step = 1; step <= STEPS; step += every) {
    const { violations } = await runPlan(planOf({ ...PLAIN, ...site }, disturb(step), step));
    found.push(...violations.map((text) => `step ${step}: ${text}`));
  }
  return found;
}

function planOf(site: Site, happenings: readonly Happening[], seed: number): Plan {
  const taste = { archives: 0.5 };
  const transfer = makeTransfer(new Random(7), 0, site, taste);
  const all: Happening[] = [{ kind: "arrive", transfer: 0 }, ...happenings];
  return {
    seed,
    site,
    transfers: [{ ...transfer, password: "Secret-common" }],
    happenings: all.map((what) => ({ atMs: 1_000, what })),
  };
}
