/** I8 bounded: memory does not grow in half an hour of work, while transfers arrive all the time and consumers pick them up. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Bench, inFolder, serveRecording, writeConfig } from "../support/bench.ts";
import { listFolder } from "../support/deliveries.ts";
import { type LiveDaemon, startLive } from "../support/live.ts";
import { listAgain, type RecordedService } from "../support/recording.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { median } from "../support/timing.ts";

/** New transfers per second. */
const PER_SECOND = 5;
/** Transfers in the list at any time. */
const LISTED = 100;
const FILES = 3;
const BYTES = 200_000;
const SAMPLE_EVERY_MS = 1_000;

export async function measureSoak(bench: Bench): Promise<Row[]> {
  await using service = await serveRecording(bench, { transfers: 1, files: FILES, bytes: BYTES });
  const { nginx } = service;
  return await inFolder(bench, async (folder) => {
    const config = writeConfig(folder, { url: nginx.url, poll: "1s" });
    await using live = await startLive(bench.launcher, config, folder, bench.stop);
    const resident = await soak(bench, live, service, join(folder, "inbox/mailbox-1"));
    const peakMib = live.peakMib();
    await live.daemon.stop();
    const minutes = Math.round(bench.soakSeconds / 60);
    const what = `${minutes} minutes of work, ${resident.pickedUp.toLocaleString("en")} transfers`;
    const fifth = Math.floor(resident.samples.length / 5);
    const early = median(resident.samples.slice(fifth, 2 * fifth));
    const late = median(resident.samples.slice(-fifth));
    return [
      alone(what, "MiB", peakMib, [200, 100]),
      besides(`${what}: the last fifth`, "the second fifth", "MiB", [late, early], [1.1, 1]),
    ];
  });
}

async function soak(bench: Bench, live: LiveDaemon, service: RecordedService, inbox: string) {
  const samples: number[] = [];
  let [made, pickedUp] = [0, 0];
  const endMs = performance.now() + bench.soakSeconds * 1000;
  while (performance.now() < endMs) {
    bench.stop.throwIfAborted();
    made += PER_SECOND;
    const from = Math.max(0, made - LISTED);
    const entries = Array.from({ length: made - from }, (_, at) => nameOf(from + at));
    await listAgain(service, entries);
    pickedUp += pickUpAll(inbox);
    samples.push(live.residentMib());
    if (samples.length % 60 === 0) bench.log(`  ${samples.at(-1)?.toFixed(1)} MiB, ${pickedUp} picked up`);
    await pause(SAMPLE_EVERY_MS);
  }
  await live.until("the last transfer", () => {
    pickedUp += pickUpAll(inbox);
    return pickedUp >= made;
  });
  return { samples, pickedUp };
}

function nameOf(number: number) {
  return { trackingId: `20260101-000000-${number}`, transferId: `soak${number}` };
}

/** As a consumer does: every folder in the inbox must be complete, and is removed. */
function pickUpAll(inbox: string): number {
  const names = listFolder(inbox);
  for (const name of names) {
    if (readdirSync(join(inbox, name)).length < FILES) throw new Error(`${name} is not complete`);
    rmSync(join(inbox, name), { recursive: true });
  }
  return names.length;
}
