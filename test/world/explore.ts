/**
 * Explores worlds: `npm run explore -- --minutes N --seed S`. Prints the first world that fails, with what happened in it, and
 * the smallest part of its plan that still fails. `--all` prints the seed of each that fails instead, `--check` those of its
 * standard input, and `--mutants` tells how soon worlds find mistakes in the program. `--size small` or `--size whole` (from a
 * seed that four divides) runs worlds of one kind, and `--scene NAME` small ones of one scene.
 */
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    seed: { type: "string" },
    worlds: { type: "string" },
    all: { type: "boolean" },
    check: { type: "boolean" },
    mutants: { type: "boolean" },
    only: { type: "string" },
    size: { type: "string" },
    scene: { type: "string" },
    jobs: { type: "string" },
  },
});

const { MAX_SAFE_INTEGER } = Number;
/** The same in each run: what two runs find can be compared. */
const SEED_OF_MUTANTS = 7_000_000;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function refuse(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(2);
}

/** The number in an option, or another one without it. */
function numberIn(option: "seed" | "minutes" | "worlds" | "jobs", otherwise: number): number {
  const { [option]: text } = values;
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number) || number < 0)
    refuse(`--${option}: ${text} is not a number`);
  return number;
}

async function exploreUntilFailure(first: number, minutes: number, worlds: number): Promise<void> {
  const plans = await import("./plan/plan.ts");
  const { isScene } = await import("./plan/scenes.ts");
  const { scene } = values;
  if (scene !== undefined && !isScene(scene)) refuse(`--scene: there is no scene called ${scene}`);
  const isSmall = values.size === "small" || scene !== undefined;
  const makePlan = (seed: number) => (isSmall ? plans.makeSmallPlan(seed, scene) : plans.makePlan(seed));
  const step = values.size === "whole" ? 4 : 1;
  const { runPlan, shrink } = await import("./run.ts");
  const startedMs = performance.now();
  const endMs = startedMs + minutes * 60_000;
  let count = 0;
  print(`The first seed is ${first}.`);
  for (let seed = first; performance.now() < endMs && count < worlds; seed += step, count++) {
    const plan = makePlan(seed);
    const { violations, log, steps } = await runPlan(plan, worlds === 1);
    const [violation] = violations;
    if (worlds === 1 && violation === undefined) print(`${log.join("\n")}\n${steps} steps`);
    if (violation === undefined) continue;
    const tookMs = performance.now() - startedMs;
    const smallest = await shrink(plan, violation);
    print(`Seed ${seed} fails. The smallest part of its plan that fails:`);
    print(JSON.stringify({ site: smallest.plan.site }, null, 1));
    print(smallest.log.join("\n"));
    print(smallest.violations.join("\n"));
    const size = values.size === undefined ? "" : ` --size ${values.size}`;
    const played = scene === undefined ? "" : ` --scene "${scene}"`;
    print(`Run it again: npm run explore -- --seed ${seed} --worlds 1${size}${played}`);
    printRate(count + 1, tookMs);
    process.exitCode = 1;
    return;
  }
  printRate(count, performance.now() - startedMs);
}

function printRate(count: number, tookMs: number): void {
  print(`Worlds: ${count}, ${Math.round((count * 60_000) / tookMs)} a minute.`);
}

if (values.size !== undefined && values.size !== "small" && values.size !== "whole") {
  refuse(`--size: ${values.size} is neither small nor whole`);
}
if (values.scene !== undefined && values.size === "whole") refuse("--scene: a whole world has no scene");
if (
  (values.size !== undefined || values.scene !== undefined) &&
  (values.all || values.check || values.mutants)
) {
  refuse("--size and --scene cannot be combined with --all, --check and --mutants");
}
const minutes = numberIn("minutes", values.mutants ? 2 : 1);
const worlds = numberIn("worlds", MAX_SAFE_INTEGER);
if (values.mutants) {
  const { runMutants } = await import("./mutants.ts");
  const only = values.only?.split(",");
  await runMutants(
    { seed: numberIn("seed", SEED_OF_MUTANTS), minutes, jobs: numberIn("jobs", 1), only },
    print,
  );
} else {
  const first = numberIn("seed", Math.floor(Math.random() * 2 ** 31));
  const { checkSeeds, exploreAll } = await import("./seeds.ts");
  if (values.check) await checkSeeds();
  else if (values.all) await exploreAll(first, minutes, worlds);
  else await exploreUntilFailure(first, minutes, worlds);
}
process.exit();
