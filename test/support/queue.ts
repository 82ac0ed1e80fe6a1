/** The engine on a Redis of the test's own. */
import { Outage } from "../../src/base/outage.ts";
import { openBullQueue } from "../../src/queue/bullmq.ts";
import type { BullOptions, BullQueue } from "../../src/queue/bullmq-engine.ts";
import { redisSettings } from "./settings.ts";

export async function openTestQueue(
  { url }: { readonly url: string },
  options: Partial<BullOptions> = {},
): Promise<BullQueue> {
  return openBullQueue({
    redis: redisSettings(url),
    places: 4,
    role: "all",
    patient: false,
    lockMs: 2_000,
    oneService: true,
    outage: new Outage({ now: () => 0 }, { began() {}, ended() {} }),
    signal: new AbortController().signal,
    ...options,
  });
}
