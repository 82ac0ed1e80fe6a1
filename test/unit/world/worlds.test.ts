/**
 * I1 whole or nothing, I2 once, I3 no burnt transfers, I4 no leaks, I5 no escape, I7 nothing silent: in simulated worlds that
 * once failed, and in some others, always the same.
 */
import { describe, expect, test } from "vitest";
import { makePlan } from "../../world/plan.ts";
import { runPlan } from "../../world/run.ts";

/** Each of these once broke an invariant. */
const FAILED = [
  12, 21, 30, 372, 45, 87, 105, 122, 152, 188, 212, 234, 300, 341, 437, 100_602, 100_944, 101_019, 102_177,
  102_218, 300_100, 300_514, 300_558, 400_043, 400_812, 401_254, 402_157, 402_737, 500_078, 500_136, 500_485,
  500_597, 500_875, 500_995, 501_009, 501_039, 501_207, 501_215, 502_606, 600_014, 600_041, 602_438, 602_637,
  3_000_112, 3_000_335, 3_000_595, 2_100_778, 2_101_675, 2_101_929, 2_102_628, 2_103_251, 900_852, 900_515,
  900_426, 903_942, 901_994, 960_760, 960_364, 900_135, 1_401_680, 1_403_639, 1_403_988, 1_404_183, 1_404_494,
  1_510_891,
];
/**
 * Of the first thousand worlds those that together run the most code, with the most different sequences of events.
 * `npm run explore` looks at others.
 */
const DIVERSE = [
  0, 14, 16, 18, 20, 22, 32, 34, 38, 40, 42, 54, 62, 64, 66, 70, 76, 78, 80, 82, 92, 96, 102, 104, 108, 126,
  132, 138, 142, 144, 152, 154, 160, 168, 170, 172, 174, 188, 190, 192, 194, 198, 204, 210, 216, 220, 230,
  232, 238, 240, 252, 254, 258, 260, 264, 272, 274, 276, 280, 292, 294, 296, 300, 302, 306, 316, 322, 326,
  330, 334, 342, 344, 348, 352, 362, 364, 366, 370, 372, 374, 376, 382, 388, 400, 402, 406, 412, 414, 430,
  440, 444, 454, 460, 462, 472, 476, 482, 484, 504, 514, 520, 522, 526, 536, 540, 544, 548, 560, 574, 578,
  580, 584, 586, 588, 594, 602, 606, 610, 618, 620, 622, 624, 628, 634, 636, 646, 656, 662, 664, 668, 672,
  678, 680, 686, 690, 692, 702, 714, 716, 722, 726, 734, 738, 742, 746, 750, 754, 760, 762, 766, 768, 770,
  774, 776, 778, 780, 786, 792, 802, 806, 808, 810, 812, 814, 820, 822, 826, 828, 836, 842, 844, 854, 856,
  866, 868, 874, 880, 886, 894, 898, 908, 910, 924, 928, 932, 936, 938, 940, 952, 956, 960, 964, 966, 968,
  976, 982, 984, 990, 992, 994,
];
const SHARDS = 12;
const EVERY_DAY = 4;

test.each(FAILED)("world %i, which once failed, holds every invariant", async (seed) => {
  expect(await failuresOf(seed)).toEqual([]);
});

describe("no invariant breaks in diverse worlds", () => {
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);

  test.each(shards.slice(0, EVERY_DAY))("of part %i", expectNoFailure);

  // All of them would take most of the time of npm test.
  test.each(shards.slice(EVERY_DAY))("of part %i", { tags: ["system"] }, expectNoFailure);
});

async function expectNoFailure(shard: number): Promise<void> {
  const failures: string[] = [];
  for (const seed of DIVERSE.filter((_, at) => at % SHARDS === shard))
    failures.push(...(await failuresOf(seed)));
  expect(failures).toEqual([]);
}

/** To see what happened: npm run explore -- --seed SEED --worlds 1 */
async function failuresOf(seed: number): Promise<string[]> {
  const { violations } = await runPlan(makePlan(seed));
  return violations.map((text) => `seed ${seed}: ${text}`);
}
