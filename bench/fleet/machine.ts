/** The machine, with its Redis. */
import { describeMachine, type Machine } from "../support/machine.ts";
import { startRedis } from "../support/redis.ts";

export interface FleetMachine extends Machine {
  readonly redis: string;
  /** To ask Redis and have its answer, the median of many. */
  readonly roundTripMs: number;
}

/** `folder`: where the measurements will write. */
export async function describeFleetMachine(folder: string): Promise<FleetMachine> {
  await using redis = await startRedis(folder);
  return {
    ...describeMachine(folder),
    redis: redis.version,
    roundTripMs: await redis.roundTripMs(),
  };
}
