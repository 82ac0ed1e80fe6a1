/** The BullMQ engine on the test's Redis. */
import { Outage } from "../../src/base/outage.ts";
import { type BullOptions, openBullQueue } from "../../src/queue/bullmq.ts";
import type { JobQueue } from "../../src/queue/port.ts";
import { redisSettings } from "./settings.ts";

/** For tests in which services do not matter. */
const ONE_SERVICE: ReadonlyMap<string, string> = new Map([["m", "service"]]);

export async function openTestQueue(
  { url }: { readonly url: string },
  options: Partial<BullOptions> = {},
): Promise<JobQueue> {
  return openBullQueue({
    redis: redisSettings(url),
    slots: () => 4,
    role: "all",
    waitForRedis: false,
    lockMs: 2_000,
    services: () => ONE_SERVICE,
    mayFreeSlots: () => false,
    outage: new Outage({ now: () => 0 }, { began() {}, ended() {} }),
    onEvicting: () => {},
    signal: new AbortController().signal,
    ...options,
  });
}
