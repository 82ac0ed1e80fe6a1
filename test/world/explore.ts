/**
 * Explores worlds: `npm run explore -- --minutes N --seed S`. Prints each world that fails, with what happened in it, and
 * the smallest part of its plan that still fails.
 */
import { parseArgs } from "node:util";
import { makePlan } from "./plan.ts";
import { kindOf, runPlan, shrink } from "./run.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    seed: { type: "string" },
    worlds: { type: "string" },
    keep: { type: "boolean", default: false },
    log: { type: "boolean", default: false },
    match: { type: "string" },
  },
});

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

const first = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const endMs = performance.now() + Number(values.minutes) * 60_000;
const worlds = Number(values.worlds ?? Number.POSITIVE_INFINITY);
const startedMs = performance.now();
const kinds = new Map<string, { count: number; seed: number; atS: number }>();
let count = 0;
print(`The first seed is ${first}.`);
for (let seed = first; performance.now() < endMs && count < worlds; seed++, count++) {
  const plan = makePlan(seed);
  const { violations, log, steps } = await runPlan(plan);
  if (values.log && worlds === 1) print(`${log.join("\n")}\n${steps} steps`);
  const wanted =
    values.match === undefined ? violations : violations.filter((it) => it.includes(values.match ?? ""));
  for (const text of wanted) {
    const kind = kindOf(text);
    if (values.keep) print(`Seed ${seed}: ${text}`);
    const known = kinds.get(kind);
    const atS = Math.round((performance.now() - startedMs) / 1000);
    kinds.set(kind, known ? { ...known, count: known.count + 1 } : { count: 1, seed, atS });
  }
  if (wanted.length === 0 || values.keep) continue;
  const smallest = await shrink(plan, wanted[0] ?? "");
  print(`Seed ${seed} fails. The smallest part of its plan that fails:`);
  print(JSON.stringify({ site: smallest.plan.site }, null, 1));
  print(smallest.log.join("\n"));
  print(smallest.violations.join("\n"));
  process.exitCode = 1;
  break;
}
const minutes = (performance.now() - startedMs) / 60_000;
print(`${count} worlds, ${Math.round(count / minutes)} a minute.`);
for (const [kind, { count: times, seed, atS }] of [...kinds].toSorted((a, b) => b[1].count - a[1].count)) {
  print(`${String(times).padStart(6)} ×  first after ${atS} s, with seed ${seed}: ${kind}`);
}
process.exit();
