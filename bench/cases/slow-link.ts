/** The share of a slow link with stalls that is used. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { type Bench, runInlet, runOthers, serveRecording } from "../support/bench.ts";
import type { Row } from "../support/rows.ts";
import { type Spent, summarise } from "../support/timing.ts";

const BYTES_PER_SECOND = 2_000_000;
const SECONDS = 60;
/** Each second the link stalls for this time. */
const STALL_MS = 100;
const STALL_EVERY_MS = 1_000;
const ROUNDS = 2;

export async function measureSlowLink(bench: Bench): Promise<Row[]> {
  const { tools } = bench;
  const bytes = Math.round(BYTES_PER_SECOND * SECONDS * Math.max(bench.scale, 0.1));
  const content = { transfers: 1, files: 1, bytes };
  await using served = await serveRecording(bench, content, { rate: BYTES_PER_SECOND });
  const { transfers, nginx } = served;
  const [transfer] = transfers;
  const source = `${nginx.url}/api/transfers/${transfer?.transferId}/files/${transfer?.files[0]?.id}`;
  const args = ["-sS", "--fail", "-o", "large", source];
  const runs: Record<"inlet" | "curl", Spent[]> = { inlet: [], curl: [] };
  const stalls = startStalls(nginx.pid);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      runs.inlet.push(await runInlet(bench, { url: nginx.url }, content));
      runs.curl.push(
        await runOthers(
          bench,
          () => [{ program: tools.curl, args }],
          () => {},
        ),
      );
      bench.log(
        `  ${runs.inlet.at(-1)?.seconds.toFixed(2)} s  curl ${runs.curl.at(-1)?.seconds.toFixed(2)} s`,
      );
    }
  } finally {
    await stalls();
  }
  const [inlet, curl] = [summarise(runs.inlet), summarise(runs.curl)];
  const used = (bytes / inlet.seconds / BYTES_PER_SECOND) * 100;
  return [
    {
      what: "a link of 2 MB/s that stalls for 100 ms each second",
      beside: "`curl -o` on the same link",
      unit: "% of the bandwidth",
      ours: used,
      theirs: (bytes / curl.seconds / BYTES_PER_SECOND) * 100,
      value: used,
      must: 97,
      aim: 97,
      rises: true,
    },
  ];
}

/** Suspends nginx's workers for a moment, repeatedly. Returns a function that ends it. */
function startStalls(pid: number): () => Promise<void> {
  const end = new AbortController();
  const workers = childrenOf(pid);
  const signalAll = (signal: NodeJS.Signals) => {
    for (const worker of workers) process.kill(worker, signal);
  };
  const stalling = (async () => {
    while (!end.signal.aborted) {
      await pause(STALL_EVERY_MS - STALL_MS);
      signalAll("SIGSTOP");
      await pause(STALL_MS);
      signalAll("SIGCONT");
    }
  })();
  return () => {
    end.abort();
    return stalling;
  };
}

function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((it) => {
      try {
        const stat = readFileSync(`/proc/${it}/stat`, "utf8");
        return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid;
      } catch {
        return false;
      }
    });
}
