/**
 * Explores worlds: `npm run explore -- --minutes N --seed S`. Prints each world that fails, with what happened in it, and
 * the smallest part of its plan that still fails.
 */
import { parseArgs } from "node:util";
import { makePlan } from "./plan.ts";
import { runPlan, shrink } from "./run.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    seed: { type: "string" },
    worlds: { type: "string" },
  },
});

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

const first = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const startedMs = performance.now();
const endMs = startedMs + Number(values.minutes) * 60_000;
const worlds = Number(values.worlds ?? Number.POSITIVE_INFINITY);
let count = 0;
print(`The first seed is ${first}.`);
for (let seed = first; performance.now() < endMs && count < worlds; seed++, count++) {
  const plan = makePlan(seed);
  const { violations, log, steps } = await runPlan(plan);
  const [violation] = violations;
  if (worlds === 1 && violation === undefined) print(`${log.join("\n")}\n${steps} steps`);
  if (violation === undefined) continue;
  const smallest = await shrink(plan, violation);
  print(`Seed ${seed} fails. The smallest part of its plan that fails:`);
  print(JSON.stringify({ site: smallest.plan.site }, null, 1));
  print(smallest.log.join("\n"));
  print(smallest.violations.join("\n"));
  process.exitCode = 1;
  break;
}
const minutes = (performance.now() - startedMs) / 60_000;
print(`${count} worlds, ${Math.round(count / minutes)} a minute.`);
process.exit();
