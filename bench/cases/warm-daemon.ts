/** A warm daemon: from the poll that lists a transfer to the finished folder, beside the time of the requests alone. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LoggedRequest, openAccessLog } from "../support/access-log.ts";
import {
  type Bench,
  CA_FILE,
  inFolder,
  runOthers,
  type ServedRecording,
  serveRecording,
  writeConfig,
} from "../support/bench.ts";
import { findDelivered } from "../support/deliveries.ts";
import { type LiveDaemon, startLive } from "../support/live.ts";
import { listAgain, type Wanted } from "../support/recording.ts";
import { besides, type Row } from "../support/rows.ts";
import { median } from "../support/timing.ts";

const POLL_EVERY = "1s";
/** The default of `limits.filesPerTransfer`. */
const FILES_AT_ONCE = 16;
const LOOK_EVERY_MS = 100;
const FIRST_PAGE = /\/received-transfers\?(.*&)?page=1(&|$)/;

interface Kind {
  readonly what: string;
  readonly content: Wanted;
  /** Deliveries that are not measured, because a daemon runs for months and its code is compiled by then. */
  readonly warming: number;
  readonly perRound: number;
  /** One curl makes the requests this often, because nginx logs times in steps of 1 ms. */
  readonly repeats: number;
  /** Large files would fill the disk. */
  readonly removesFolders: boolean;
}

interface Delivery {
  readonly ms: number;
  /** All requests for the transfer, from the poll that lists it. */
  readonly paths: readonly string[];
}

export async function measureWarmDaemon(bench: Bench): Promise<Row[]> {
  const files = Math.max(20, Math.round(2_000 * bench.scale));
  const bytes = Math.round(2 * 1024 ** 3 * bench.scale);
  const few = { warming: 3, perRound: 1, repeats: 1, removesFolders: false };
  const kinds: readonly Kind[] = [
    {
      what: "1 file of 10 KiB",
      content: { transfers: 1, files: 1, bytes: 10 * 1024 },
      warming: 30,
      perRound: 5,
      repeats: 50,
      removesFolders: false,
    },
    {
      ...few,
      what: `${files.toLocaleString("en")} files of 16 KiB`,
      content: { transfers: 1, files, bytes: 16 * 1024 },
    },
    {
      ...few,
      what: `1 file of ${(bytes / 1024 ** 3).toFixed(bench.scale === 1 ? 0 : 2)} GiB`,
      content: { transfers: 1, files: 1, bytes },
      removesFolders: true,
    },
  ];
  const rows: Row[] = [];
  for (const [at, kind] of kinds.entries()) {
    const folder = join(bench.folder, String(at));
    mkdirSync(folder);
    rows.push(await measureKind({ ...bench, folder, removesRuns: kind.removesFolders }, kind));
  }
  return rows;
}

async function measureKind(bench: Bench, kind: Kind): Promise<Row> {
  await using served = await serveRecording(bench, kind.content, { logsRequests: true });
  return await inFolder(bench, async (folder) => {
    const config = writeConfig(folder, { url: served.nginx.secureUrl, secure: true, poll: POLL_EVERY });
    await using live = await startLive(bench.launcher, config, folder, bench.stop);
    const inbox = join(folder, "inbox/mailbox-1");
    await live.until("the first delivery", () => findDelivered(kind.content, inbox).length === 1);
    const [ours, theirs]: [number[], number[]] = [[], []];
    let delivered = 0;
    const deliverNext = () => deliver(kind, served, live, inbox, ++delivered);
    for (let time = 0; time < kind.warming; time++) await deliverNext();
    let requests = 0;
    for (let time = 0; time < bench.rounds * kind.perRound; time++) {
      const { ms, paths } = await deliverNext();
      ours.push(ms);
      theirs.push(await timeRequests(bench, kind, served, live, paths));
      requests = paths.length;
      bench.log(`  ${ours.at(-1)} ms  ${theirs.at(-1)?.toFixed(2)} ms of curl  ${kind.what}`);
    }
    await live.daemon.stop();
    const beside = `its ${requests.toLocaleString("en")} requests alone, with curl`;
    return besides(`${kind.what}: from the poll to the finished folder`, beside, "ms", [
      median(ours),
      median(theirs),
    ]);
  });
}

/** Lists a new transfer, and waits for its folder. */
async function deliver(
  { content, removesFolders }: Kind,
  served: ServedRecording,
  live: LiveDaemon,
  inbox: string,
  number: number,
): Promise<Delivery> {
  const [trackingId, transferId] = [`20260101-000000-${number}`, `warm${number}`];
  const log = openAccessLog(served.nginx.accessLog);
  let finishedMs: number | undefined;
  execFileSync("sync");
  log.clear();
  const watcher = watch(inbox, (_event, name) => {
    if (name === trackingId) finishedMs ??= Date.now();
  });
  try {
    await listAgain(served, [{ trackingId, transferId }]);
    await live.until(`the delivery of ${trackingId}`, () => finishedMs !== undefined, LOOK_EVERY_MS);
  } finally {
    watcher.close();
  }
  if (!findDelivered(content, inbox).includes(trackingId)) throw new Error(`${trackingId} is not complete`);
  if (removesFolders) rmSync(join(inbox, trackingId), { recursive: true });
  const requests = findRequests(log.read(), transferId);
  const startMs = requests[0]?.startMs ?? Number.NaN;
  return { ms: (finishedMs ?? Number.NaN) - startMs, paths: requests.map(({ path }) => path) };
}

/** The poll that listed the transfer, and all later requests except those of later polls. */
function findRequests(all: readonly LoggedRequest[], transferId: string): LoggedRequest[] {
  const own = `/api/transfers/${transferId}`;
  const information = all.findIndex(({ path }) => path === own);
  const poll = all.findLastIndex(({ path }, at) => at < information && FIRST_PAGE.test(path));
  if (poll === -1) throw new Error(`no poll has listed ${transferId}`);
  const next = all.findIndex(({ path }, at) => at > poll && FIRST_PAGE.test(path));
  return all.filter(({ path }, at) => at >= poll && (next === -1 || at < next || path.startsWith(own)));
}

/**
 * The time from the first request to the end of the last answer, for one of the repetitions. Without repetitions, it
 * includes the start of curl.
 */
async function timeRequests(
  bench: Bench,
  { content, repeats }: Kind,
  { nginx }: ServedRecording,
  live: LiveDaemon,
  paths: readonly string[],
): Promise<number> {
  const log = openAccessLog(nginx.accessLog);
  const lines = paths.map((path) => `url = "${nginx.secureUrl}${path}"\noutput = "/dev/null"\n`).join("");
  const parallel = content.files === 1 ? [] : ["--parallel", "--parallel-max", `${FILES_AT_ONCE}`];
  const args = ["-sS", "--fail", "--cacert", CA_FILE, ...parallel, "-K", "list"];
  log.clear();
  const { seconds } = await runOthers(
    bench,
    (folder) => {
      writeFileSync(join(folder, "list"), lines.repeat(repeats));
      return [{ program: bench.tools.curl, args }];
    },
    () => {},
  );
  // The clock of nginx stands still while it sends a large answer without a pause, so its log cannot time one.
  if (repeats === 1) return 1000 * seconds;
  const readOwn = () => log.read().filter(({ agent }) => agent.startsWith("curl/"));
  // nginx adds a request to its log after the answer is sent.
  await live.until("the log of curl's requests", () => readOwn().length === paths.length * repeats);
  const requests = readOwn();
  const endMs = Math.max(...requests.map((request) => request.endMs));
  return (endMs - (requests[0]?.startMs ?? Number.NaN)) / repeats;
}
