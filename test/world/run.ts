/** Runs a plan, and finds the smallest part of it that fails in the same way. */
// The program loads these when it needs them first, which takes real time.
import "../../src/config/document.ts";
import "../../src/transfer/unpack.ts";

import { findProblems } from "./judge/checks.ts";
import type { Plan } from "./plan/plan.ts";
import { World } from "./world.ts";

export interface Finished {
  readonly violations: readonly string[];
  /** Empty unless it is asked for. */
  readonly log: readonly string[];
  readonly steps: number;
}

// Worlds throw many errors, and nobody reads their stacks.
Error.stackTraceLimit = 0;

export async function runPlan(plan: Plan, isNoted = false): Promise<Finished> {
  const world = new World(plan, { isNoted });
  const { violations } = world.observer;
  const check = async (isRestarted?: boolean) => {
    for (const text of await findProblems(world, isRestarted)) world.observer.violate(text);
  };
  try {
    const isClean = await world.run(async () => (await findProblems(world)).length === 0);
    if (violations.length === 0 && !isClean) await check();
    if (violations.length === 0 && plan.isSmall !== true) {
      await world.restart();
      await check(true);
    }
  } catch (error) {
    world.observer.violate(`the world broke: ${error instanceof Error ? error.stack : String(error)}`);
  }
  await world.close();
  // A killed process closes nothing.
  const isQuiet = plan.happenings.every(({ what }) => ["arrive", "disk-fails"].includes(what.kind));
  for (const path of isQuiet ? world.disk.openPaths : []) world.observer.violate(`not closed: ${path}`);
  return { violations, log: world.log, steps: world.schedule.steps };
}

/** The same for violations of one kind. */
function kindOf(text: string): string {
  return text
    .replace(
      /\b(box|second|third)@example\.com|\b2026\d{4}-\d{6}-t\d\b|rule-\d|daemon \d+|\b\d+ (minutes|times)\b|[0-9a-f]{8,}.*/gi,
      "…",
    )
    .replace(/(left: \w+|appears|claim of|delivered to|removed from the inbox|I1: |ran for).*/, "$1")
    .slice(0, 70);
}

/** Leaves out happenings, and then transfers, one after the other, while the world still fails. */
export async function shrink(plan: Plan, violation: string): Promise<Finished & { readonly plan: Plan }> {
  let best = plan;
  const fails = ({ violations }: Finished) => violations.some((text) => kindOf(text) === kindOf(violation));
  for (let at = plan.happenings.length - 1; at >= 0; at--) {
    const happenings = best.happenings.filter((_, index) => index !== at);
    if (fails(await runPlan({ ...best, happenings }))) best = { ...best, happenings };
  }
  return { plan: best, ...(await runPlan(best, true)) };
}
