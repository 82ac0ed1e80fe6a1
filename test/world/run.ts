/** Runs a plan, and finds the smallest part of it that fails in the same way. */
// The program loads these when it needs them first, which takes real time.
import "../../src/config/document.ts";
import "../../src/transfer/unpack.ts";
import { loadConf } from "../../src/host/memory.ts";
import { findProblems } from "./checks.ts";
import type { Plan } from "./plan.ts";
import { World } from "./world.ts";

export interface Finished {
  readonly violations: readonly string[];
  readonly log: readonly string[];
  readonly steps: number;
}

await loadConf();

// Worlds throw many errors, and nobody reads their stacks.
Error.stackTraceLimit = 0;

export async function runPlan(plan: Plan): Promise<Finished> {
  // A run changes the states of its transfers.
  const transfers = plan.transfers.map((transfer) => ({
    ...transfer,
    state: "unsent" as const,
    wrong: 0,
    opened: 0,
  }));
  const world = new World({ ...plan, transfers });
  const { violations } = world.observer;
  const check = async (isRestarted?: boolean) => {
    for (const text of await findProblems(world, isRestarted)) world.observer.violate(text);
  };
  try {
    await world.run(async () => (await findProblems(world)).length === 0);
    if (violations.length === 0) await check();
    if (violations.length === 0) {
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
    .replace(/\b(box|second)@example\.com|\bt\d\b|rule-\d|daemon \d+|[0-9a-f]{8,}.*/gi, "…")
    .replace(/(left: \w+|appears|claim of|delivered to|removed from the inbox|I1: |ran for).*/, "$1")
    .slice(0, 70);
}

/** Leaves out happenings, one after the other, while the world still fails. */
export async function shrink(plan: Plan, violation: string): Promise<Finished & { readonly plan: Plan }> {
  let best = { plan, ...(await runPlan(plan)) };
  const fails = ({ violations }: Finished) => violations.some((text) => kindOf(text) === kindOf(violation));
  for (let at = plan.happenings.length - 1; at >= 0; at--) {
    const happenings = best.plan.happenings.filter((_, index) => index !== at);
    const smaller = { ...best.plan, happenings };
    const finished = await runPlan(smaller);
    if (fails(finished)) best = { plan: smaller, ...finished };
  }
  return best;
}
