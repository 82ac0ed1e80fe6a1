/** A poll of many known transfers that finds nothing new, with and without a long history. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, runOthers, serveRecording, writeConfig } from "../support/bench.ts";
import { type LiveDaemon, startLive } from "../support/live.ts";
import type { RunningNginx } from "../support/nginx.ts";
import { inventDelivered, writeRecords } from "../support/past.ts";
import { changePages, MAILBOX, type RecordedService } from "../support/recording.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { median } from "../support/timing.ts";

/** Not measured, because a daemon runs for months and its code is compiled by then. */
const WARMING_POLLS = 15;
const POLLS_PER_START = 4;
const POLL_EVERY_MS = 1_000;
/** Rare, because rendering the metrics takes the daemon's time. */
const LOOK_EVERY_MS = 300;

interface Polls {
  /** After a start every record is read. */
  readonly first: number;
  /** Later polls use the cache. */
  readonly later: readonly number[];
  /** Polls of pages that have all changed since the last poll. */
  readonly changed: readonly number[];
  readonly peakMib: number;
}

export async function measurePolls(bench: Bench): Promise<Row[]> {
  const active = Math.max(200, Math.round(10_000 * bench.scale));
  const past = Math.round(200_000 * bench.scale);
  const content = { transfers: active, files: 1, bytes: 1, listOnly: true };
  await using service = await serveRecording(bench, content);
  const { nginx } = service;
  const [young, old] = [0, past].map((count) => prepare(bench, nginx, service, count));
  if (young === undefined || old === undefined) throw new Error("unreachable");
  const runs: Record<"young" | "old", Polls[]> = { young: [], old: [] };
  const pages: number[] = [];
  for (let round = 0; round < bench.rounds; round++) {
    runs.young.push(await pollSome(bench, service, young));
    runs.old.push(await pollSome(bench, service, old));
    for (let time = 0; time < POLLS_PER_START; time++) pages.push(await fetchPages(bench, nginx, service));
    bench.log(`  ${runs.young.at(-1)?.later[0]?.toFixed(3)} s  ${pages.at(-1)?.toFixed(3)} s of curl`);
  }
  const what = `poll of ${active.toLocaleString("en")} known active transfers`;
  const withPast = `${what}, with ${past.toLocaleString("en")} ended ones in the ledger`;
  const later = (of: "young" | "old") => median(runs[of].flatMap((run) => run.later));
  const changed = median(runs.young.flatMap((run) => run.changed));
  const first = (of: "young" | "old") => median(runs[of].map((run) => run.first));
  const beside = `the same ${service.pages} pages with curl`;
  return [
    besides(what, beside, "s", [later("young"), median(pages)], [2, 1.2]),
    besides(`${what}, where every page has changed`, beside, "s", [changed, median(pages)]),
    besides(withPast, "with none", "s", [later("old"), later("young")], [1.05, 1]),
    besides(`${withPast}, first after a start`, "with none", "s", [first("old"), first("young")], [1.05, 1]),
    alone(withPast, "MiB", Math.max(...runs.old.map(({ peakMib }) => peakMib)), [200, 100]),
  ];
}

/** A work folder in which all listed transfers and `past` further ones were delivered before. */
function prepare(
  { folder }: Bench,
  { url }: RunningNginx,
  { transfers }: RecordedService,
  past: number,
): string {
  const own = join(folder, `past-${past}`);
  mkdirSync(own);
  const work = join(own, "work");
  writeRecords(work, "mailbox-1", transfers);
  writeRecords(work, "mailbox-1", inventDelivered(past));
  writeConfig(own, { url, poll: `${POLL_EVERY_MS}ms` });
  return own;
}

async function pollSome({ launcher, stop }: Bench, service: RecordedService, folder: string): Promise<Polls> {
  await using live = await startLive(launcher, join(folder, "inlet.yaml"), folder, stop);
  const first = await nextPoll(live, { count: 0, sum: 0 });
  let last = first;
  const pollOften = async (times: number, prepare?: () => Promise<void>) => {
    const took: number[] = [];
    while (took.length < times) {
      await prepare?.();
      last = await nextPoll(live, last);
      took.push(last.took);
    }
    return took;
  };
  await pollOften(WARMING_POLLS);
  const later = await pollOften(POLLS_PER_START);
  const changed = await pollOften(POLLS_PER_START, () => changePages(service));
  const peakMib = live.peakMib();
  await live.daemon.stop();
  return { first: first.took, later, changed, peakMib };
}

async function nextPoll(live: LiveDaemon, before: { readonly count: number; readonly sum: number }) {
  let count = before.count;
  const isOver = async () => {
    count = await live.metric("inlet_poll_seconds_count");
    return count > before.count;
  };
  await live.until("the next poll", isOver, LOOK_EVERY_MS);
  const sum = await live.metric("inlet_poll_seconds_sum");
  return { count, sum, took: (sum - before.sum) / (count - before.count) };
}

async function fetchPages(bench: Bench, { url }: RunningNginx, { pages }: RecordedService): Promise<number> {
  const list = `${url}/api/users/${encodeURIComponent(MAILBOX)}/transfers/received-transfers`;
  const lines = Array.from(
    { length: pages },
    (_, at) => `url = "${list}?page=${at + 1}"\noutput = "page-${at}"\n`,
  );
  const { seconds } = await runOthers(
    bench,
    (folder) => {
      writeFileSync(join(folder, "list"), lines.join(""));
      return [{ program: bench.tools.curl, args: ["-sS", "--fail", "-K", "list"] }];
    },
    () => {},
  );
  return seconds;
}
