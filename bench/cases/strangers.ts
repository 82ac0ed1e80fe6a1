/** All hostile callers and consumers at once, beside transfers that arrive: memory, probes, the time of a transfer, and lines in the log. */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Probed } from "../../test/support/prober.ts";
import { freePort } from "../../test/support/redis-server.ts";
import { type Bench, inFolder, type ServedRecording, serveRecording, writeConfig } from "../support/bench.ts";
import { type LiveDaemon, startLive } from "../support/live.ts";
import { inventDelivered, writeRecords } from "../support/past.ts";
import { listAgain } from "../support/recording.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { median } from "../support/timing.ts";

const PROGRAMS = resolve(import.meta.dirname, "../../test/support");
const STRANGERS = join(PROGRAMS, "strangers.ts");
const SECONDS = 120;
const KNOWN = 10_000;
const CONTENT = { transfers: 1, files: 20, bytes: 64 * 1024 };
const WARMING = 3;
const USUAL = 10;
const TOKEN = "0123456789abcdef";
const LINE = "callers of the console exceed a limit";

export async function measureStrangers(bench: Bench): Promise<Row[]> {
  await using served = await serveRecording(bench, CONTENT);
  return await inFolder(bench, async (folder) => {
    const config = writeConfig(folder, { url: served.nginx.url, poll: "1s" });
    const given = JSON.parse(readFileSync(config, "utf8"));
    writeFileSync(config, JSON.stringify({ ...given, http: { actions: true, token: TOKEN } }), {
      mode: 0o600,
    });
    const port = await freePort();
    const listen = `127.0.0.1:${port}`;
    await using live = await startLive(bench.launcher, config, folder, bench.stop, "all", listen);
    writeRecords(join(folder, "work"), "mailbox-1", inventDelivered(Math.round(KNOWN * bench.scale)));
    const inbox = join(folder, "inbox/mailbox-1");
    const deliver = deliveriesOf(served, live, inbox);
    for (let at = 0; at < WARMING; at++) await deliver();
    const usual: number[] = [];
    for (let at = 0; at < USUAL; at++) usual.push(await deliver());
    const callers = ["callers", String(port), ...readdirSync(inbox)];
    const strangers = [callers, ["consumers", inbox]].map((args) =>
      spawn(process.execPath, [STRANGERS, ...args], { stdio: "inherit" }),
    );
    const prober = spawn(process.execPath, [join(PROGRAMS, "prober.ts"), String(port)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const waitedBefore = live.waitedSeconds();
    const under: number[] = [];
    const memory: number[] = [];
    let probed: Probed;
    try {
      const endMs = performance.now() + SECONDS * 1000 * bench.scale;
      while (performance.now() < endMs) {
        under.push(await deliver());
        memory.push(live.residentMib());
        bench.log(`  ${under.at(-1)?.toFixed(0)} ms for a transfer, ${memory.at(-1)?.toFixed(0)} MiB`);
      }
      prober.stdin.end();
      probed = JSON.parse(await text(prober.stdout)) as Probed;
    } finally {
      for (const child of [...strangers, prober]) child.kill("SIGKILL");
    }
    const waited = live.waitedSeconds() - waitedBefore;
    const lines = live.daemon.count(LINE);
    const limits = 5;
    const what = "all strangers at once";
    return [
      alone(`${what}: resident memory`, "MiB", Math.max(...memory), [300, 200]),
      alone(`${what}: the median answer of \`/healthz\``, "ms", probed.medianMs, [1_000, 50]),
      alone(`${what}: 99 of 100 answers of \`/healthz\``, "ms", probed.p99Ms, [1_000, 250]),
      alone(`${what}: the longest answer of \`/healthz\``, "ms", probed.longestMs, [1_000, 250]),
      alone(`${what}: the longest time in which the prober itself had no processor`, "ms", probed.latenessMs),
      alone(`${what}: the time in which the daemon waited for a processor`, "s", waited),
      alone(`${what}: probes without an answer`, "calls", probed.unanswered, [0, 0]),
      besides(
        `${what}: a transfer of 20 files`,
        "without them",
        "ms",
        [median(under), median(usual)],
        [2, 1.2],
      ),
      alone(
        `${what}: lines of the log a minute for each limit`,
        "calls",
        (lines * 60) / SECONDS / bench.scale / limits,
        [5, 2],
      ),
    ];
  });
}

/** Returns a function that lists a transfer, and resolves with the time until its folder is there. */
function deliveriesOf(served: ServedRecording, live: LiveDaemon, inbox: string): () => Promise<number> {
  let number = 0;
  return async () => {
    const trackingId = `20260101-000000-${++number}`;
    await listAgain(served, [{ trackingId, transferId: `stranger${number}` }]);
    const startedMs = performance.now();
    await live.until(`the delivery of ${trackingId}`, () => existsSync(join(inbox, trackingId)));
    return performance.now() - startedMs;
  };
}
