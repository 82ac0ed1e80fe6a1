/** The gain of more processes on one Redis, on this machine. */
import { join } from "node:path";
import { type Bench, inFolder, serveRecording, writeConfig } from "../support/bench.ts";
import { findDelivered } from "../support/deliveries.ts";
import { startLive } from "../support/live.ts";
import type { Wanted } from "../support/recording.ts";
import { startRedis } from "../support/redis.ts";
import type { Row } from "../support/rows.ts";
import { median } from "../support/timing.ts";

const FLEETS = [1, 2, 4];

export async function measureFleet(bench: Bench): Promise<Row[]> {
  const content = { transfers: Math.max(20, Math.round(1_000 * bench.scale)), files: 3, bytes: 10 * 1024 };
  await using served = await serveRecording(bench, content);
  const { nginx } = served;
  const seconds = new Map(FLEETS.map((workers) => [workers, [] as number[]]));
  for (let round = 0; round < bench.rounds; round++) {
    for (const workers of FLEETS) {
      const took = await inFolder(bench, (folder) => download(bench, folder, nginx.url, workers, content));
      seconds.get(workers)?.push(took);
      bench.log(`  ${took.toFixed(2).padStart(7)} s  ${workers} workers`);
    }
  }
  const perSecond = (workers: number) => content.transfers / median(seconds.get(workers) ?? []);
  const what = `${content.transfers.toLocaleString("en")} transfers of 3 files of 10 KiB, on Redis`;
  return FLEETS.map((workers) => ({
    what: `${what}: ${workers === 1 ? "1 worker" : `${workers} workers`}`,
    beside: "1 worker",
    unit: "per s",
    ours: perSecond(workers),
    theirs: perSecond(1),
    value: perSecond(workers) / perSecond(1),
    rises: true,
  }));
}

/** The workers start before the scheduler finds the first transfer. */
async function download(bench: Bench, folder: string, url: string, workers: number, content: Wanted) {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis(folder));
  const config = writeConfig(folder, { url, queue: redis.url });
  const start = async (role: "worker" | "scheduler") =>
    stack.use(await startLive(bench.launcher, config, folder, bench.stop, role));
  const fleet = await Promise.all(Array.from({ length: workers }, () => start("worker")));
  const beganMs = performance.now();
  const scheduler = await start("scheduler");
  const inbox = join(folder, "inbox/mailbox-1");
  await scheduler.until("all to be delivered", () => {
    const delivered = fleet.reduce((sum, { daemon }) => sum + daemon.count("delivered"), 0);
    return delivered >= content.transfers;
  });
  const took = (performance.now() - beganMs) / 1000;
  const found = findDelivered(content, inbox).length;
  if (found !== content.transfers) throw new Error(`${found} of ${content.transfers} were delivered`);
  for (const { daemon } of [...fleet, scheduler]) await daemon.stop();
  return took;
}
