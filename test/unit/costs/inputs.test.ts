/** I8 bounded: ten times of an input take not much more than ten times the CPU time, whatever the speed of the machine. */
import { expect, test } from "vitest";
import { INPUTS, measure } from "../../../bench/cases/costs.ts";
import { postJson } from "../../../bench/support/console.ts";
import { makeFolder } from "../../support/program.ts";

/** Ten times, and room for other work of the process. An input whose cost grows with its square takes a hundred times. */
const MAX_GROWTH = 30;
const TRIES = 5;
/** A shorter time says nothing. */
const MIN_MS = 2;

test.each(Object.entries(INPUTS))("%s", { timeout: 120_000 }, async (_, [largest, input]) => {
  const [tenth, whole] = [Math.ceil(largest / 100), Math.ceil(largest / 10)];
  const take = async (count: number) => measure(await input(count, await makeFolder()));
  // Not measured: compiles the code.
  await take(tenth);
  const growths: number[] = [];
  while (growths.length < TRIES && !growths.some((growth) => growth < MAX_GROWTH)) {
    const before = await take(tenth);
    const after = await take(whole);
    growths.push(after.cpuMs / Math.max(before.cpuMs, MIN_MS));
  }
  expect(Math.min(...growths)).toBeLessThan(MAX_GROWTH);
});

test("a posted order that is wrong everywhere takes little more than one that is wrong once", async () => {
  const characters = 200_000;
  const everywhere = postJson(() => "0")(characters);
  const once = postJson((at) => (at === 0 ? `"${"x".repeat(2 * characters)}"` : undefined))(1);
  const growths: number[] = [];
  while (growths.length < TRIES && !growths.some((growth) => growth < 4)) {
    const [one, all] = [await measure(once), await measure(everywhere)];
    growths.push(all.cpuMs / Math.max(one.cpuMs, MIN_MS));
  }
  expect(Math.min(...growths)).toBeLessThan(4);
});
