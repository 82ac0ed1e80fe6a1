/** The daemon itself: time to be ready, and CPU and memory while idle. */
import { setTimeout as pause } from "node:timers/promises";
import { type Bench, inFolder, serveRecording, writeConfig } from "../support/bench.ts";
import { startLive } from "../support/live.ts";
import { alone, type Row } from "../support/rows.ts";
import { median } from "../support/timing.ts";

const MAILBOXES = 20;
const IDLE_SECONDS = 120;
/** After this time the work of the start is done. */
const SETTLE_SECONDS = 10;

export async function measureDaemon(bench: Bench): Promise<Row[]> {
  await using served = await serveRecording(bench, { transfers: 0, files: 0, bytes: 0 });
  const { nginx } = served;
  const starts: number[] = [];
  for (let round = 0; round < 2 * bench.rounds; round++) {
    starts.push(await inFolder(bench, (folder) => timeStart(bench, folder, nginx.url)));
    bench.log(`  ${starts.at(-1)?.toFixed(2)} s until it is ready`);
  }
  const idle = await inFolder(bench, (folder) => measureIdle(bench, folder, nginx.url));
  return [
    alone("start to ready", "s", median(starts), [0.8, 0.4]),
    alone(`idle with ${MAILBOXES} mailboxes`, "% of a core", idle.percent, [0.3, 0.1]),
    alone(`idle with ${MAILBOXES} mailboxes`, "MiB", idle.mib, [200, 100]),
  ];
}

/** From the start of the process to the log line "ready". */
export async function timeStart({ launcher, stop }: Bench, folder: string, url: string): Promise<number> {
  const config = writeConfig(folder, { url, poll: "60s" });
  await using live = await startLive(launcher, config, folder, stop);
  const { daemon } = live;
  const seconds = ((daemon.loggedMs("ready") ?? Number.NaN) - daemon.startedMs) / 1000;
  await daemon.stop();
  return seconds;
}

async function measureIdle({ launcher, stop, scale }: Bench, folder: string, url: string) {
  const config = writeConfig(folder, { url, poll: "60s", mailboxes: MAILBOXES });
  await using live = await startLive(launcher, config, folder, stop);
  await pause(SETTLE_SECONDS * 1000, undefined, { signal: stop });
  const [before, beganMs] = [live.cpuSeconds(), performance.now()];
  await pause(Math.max(10, IDLE_SECONDS * scale) * 1000, undefined, { signal: stop });
  const percent = ((live.cpuSeconds() - before) / ((performance.now() - beganMs) / 1000)) * 100;
  const mib = live.peakMib();
  await live.daemon.stop();
  return { percent, mib };
}
