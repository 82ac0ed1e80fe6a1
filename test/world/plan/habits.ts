/** How the services of a world differ from others. */
import type { Random } from "../ground/random.ts";
import type { ServiceHabits } from "./sent.ts";

const MINUTE_MS = 60_000;

/** `share`: of the services that have each of the habits. */
export function makeHabits(random: Random, share: number): readonly ServiceHabits[] {
  return [0, 1].map(() => {
    const some = <Value>(value: Value) => (random.chance(share) ? value : undefined);
    const habits = {
      ignoresActive: some(true),
      wholeThreshold: some(true),
      noThreshold: some(true),
      hidesMessages: some(true),
      hasNoModes: some(true),
      refusesFields: some(true),
      paths: some(random.pick(["short", "files", "both"] as const)),
      pageCap: some(1 + random.int(2)),
      onWrong: some(makeLock(random)),
      tokenMs: some((3 + random.int(20)) * MINUTE_MS),
      tokenLimit: some({
        count: 1 + random.int(2),
        ms: 2_000 + random.int(6_000),
        saysUntil: random.chance(0.5),
      }),
    };
    return Object.fromEntries(
      Object.entries(habits).filter(([, value]) => value !== undefined),
    ) as ServiceHabits;
  });
}

export function makeLock(random: Random): NonNullable<ServiceHabits["onWrong"]> {
  const says = random.chance(0.3) ? { saysMs: 1_000 + random.int(20_000) } : {};
  return {
    after: 2 + random.int(3),
    lockMs: (5 + random.int(30)) * MINUTE_MS,
    saysUntil: random.chance(0.6),
    ...says,
  };
}
