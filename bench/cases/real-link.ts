/** A distant service: TLS over a link with a delay and 100 Mbit/s, as most users have it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCurl } from "../support/bare-files.ts";
import {
  type Bench,
  CA_FILE,
  runInlet,
  runOthers,
  type ServedRecording,
  serveRecording,
} from "../support/bench.ts";
import { runMbsync, startMailServer } from "../support/mail.ts";
import { besides, type Row } from "../support/rows.ts";
import { compare, type Spent } from "../support/timing.ts";

const ROUND_TRIPS_MS = [20, 50, 100];
/** For what takes long. */
const USUAL_MS = 50;
const BYTES_PER_SECOND = 12_500_000;
/** The default of `limits.requests`. */
const AT_ONCE = 16;
const MESSAGE_BYTES = 42_000;
const MIB = 1024 * 1024;
const SCRIPT = "a script with the same requests in the best possible order";
const LIMITS = [1.3, 1.1] as const;

export async function measureRealLink(whole: Bench): Promise<Row[]> {
  const bench = { ...whole, rounds: Math.min(whole.rounds, 3) };
  return [
    ...(await measureTransfers(bench)),
    ...(await measureFiles({ ...bench, folder: join(bench.folder, "files") })),
    ...(await measureLarge({ ...bench, folder: join(bench.folder, "large"), rounds: 1, removesRuns: true })),
    ...(await measureMailboxes({ ...bench, folder: join(bench.folder, "mailboxes") })),
  ];
}

async function measureTransfers(bench: Bench): Promise<Row[]> {
  const content = { transfers: Math.max(20, Math.round(1_000 * bench.scale)), files: 3, bytes: 10 * 1024 };
  await using served = await serveRecording(bench, content);
  await using mail = await startMailServer(bench, content.transfers, MESSAGE_BYTES);
  const rows: Row[] = [];
  for (const roundTripMs of ROUND_TRIPS_MS) {
    await using link = await openLink(served.nginx.secureUrl, roundTripMs);
    await using mailLink = await openLink(`tcp://127.0.0.1:${mail.port}`, roundTripMs);
    const spent = await compare(
      {
        inlet: () => runInlet(bench, { url: link.url, secure: true }, content),
        script: () => runScript(bench, served, link.url),
        ...others(bench, served, link.url),
        mbsync: () => runMbsync(bench, { ...mail, port: mailLink.port }),
      },
      bench,
    );
    const what = `${content.transfers.toLocaleString("en")} transfers of 3 files of 10 KiB, ${roundTripMs} ms away`;
    rows.push(
      ...rowsOf(what, spent),
      beside(what, "as many messages with `mbsync`", spent.inlet, spent.mbsync),
    );
  }
  return rows;
}

async function measureFiles(bench: Bench): Promise<Row[]> {
  const content = { transfers: 1, files: Math.max(20, Math.round(300 * bench.scale)), bytes: 16 * 1024 };
  await using served = await serveRecording(bench, content);
  const rows: Row[] = [];
  for (const roundTripMs of ROUND_TRIPS_MS) {
    await using link = await openLink(served.nginx.secureUrl, roundTripMs);
    const spent = await compare(
      {
        inlet: () => runInlet(bench, { url: link.url, secure: true }, content),
        script: () => runScript(bench, served, link.url),
        ...others(bench, served, link.url),
      },
      bench,
    );
    rows.push(...rowsOf(`one transfer of ${content.files} files of 16 KiB, ${roundTripMs} ms away`, spent));
  }
  return rows;
}

async function measureLarge(bench: Bench): Promise<Row[]> {
  const bytes = Math.round(1024 * MIB * bench.scale);
  const content = { transfers: 1, files: 1, bytes };
  await using served = await serveRecording(bench, content);
  await using link = await openLink(served.nginx.secureUrl, USUAL_MS);
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url: link.url, secure: true }, content),
      script: () => runScript(bench, served, link.url),
      ...others(bench, served, link.url),
    },
    bench,
  );
  return rowsOf(`one file of ${Math.round(bytes / MIB)} MiB, ${USUAL_MS} ms away`, spent);
}

async function measureMailboxes(bench: Bench): Promise<Row[]> {
  const content = { transfers: 0, files: 1, bytes: 1, listOnly: true };
  await using served = await serveRecording(bench, content);
  await using link = await openLink(served.nginx.secureUrl, USUAL_MS);
  const page = `${link.url}/api/users/orders@example.com/transfers/received-transfers?page=1`;
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url: link.url, secure: true, mailboxes: 20 }, content),
      one: () => runInlet(bench, { url: link.url, secure: true }, content),
      curl: () =>
        runOthers(
          bench,
          () => [
            {
              program: bench.tools.curl,
              args: ["-sS", "--fail", "--cacert", CA_FILE, "--parallel", ...Array(20).fill(page)],
            },
          ],
          () => {},
        ),
    },
    bench,
  );
  const what = `20 mailboxes with nothing new, ${USUAL_MS} ms away`;
  return [
    beside(what, "one mailbox", spent.inlet, spent.one),
    beside(what, "the same lists with `curl --parallel`", spent.inlet, spent.curl),
  ];
}

/** Only the files, without lists, passwords and checksums. */
function others(bench: Bench, { transfers }: ServedRecording, url: string) {
  const { tools } = bench;
  const files = transfers.flatMap(({ transferId, files: each }) =>
    each.map(({ id }) => ({
      id: `${transferId}-${id}`,
      url: `${url}/api/transfers/${transferId}/files/${id}`,
    })),
  );
  const count = (folder: string) => {
    const found = readdirSync(join(folder, "out"), { recursive: true, withFileTypes: true }).filter((it) =>
      it.isFile(),
    ).length;
    if (found !== files.length) throw new Error(`${found} of ${files.length} files were fetched`);
  };
  const parallel = ["--cacert", CA_FILE, "--parallel-max", String(AT_ONCE)];
  return {
    curl: () => runCurl(bench, files, parallel),
    rclone: () => {
      const from = ["--http-url", `${url}/plain/`, ":http:"];
      const atOnce = ["--transfers", String(AT_ONCE), "--checkers", String(AT_ONCE)];
      const args = ["copy", "--ca-cert", CA_FILE, ...atOnce, ...from, "out"];
      return runOthers(bench, () => [{ program: tools.rclone, args }], count);
    },
    aria2: () =>
      runOthers(
        bench,
        (folder) => {
          const lines = files.map(({ id, url: source }) => `${source}\n  out=${id}\n`);
          writeFileSync(join(folder, "list"), lines.join(""));
          const args = ["-q", `-j${AT_ONCE}`, `--ca-certificate=${CA_FILE}`, "-d", "out", "-i", "list"];
          return [{ program: tools.aria2c, args }];
        },
        count,
      ),
  };
}

function runScript(bench: Bench, { transfers }: ServedRecording, url: string): Promise<Spent> {
  const prepare = (folder: string) => {
    writeFileSync(join(folder, "transfers.json"), JSON.stringify(transfers));
    const script = join(import.meta.dirname, "../support/best-order.ts");
    return [{ program: process.execPath, args: [script, url, String(AT_ONCE), CA_FILE] }];
  };
  return runOthers(bench, prepare, () => {});
}

function rowsOf(
  what: string,
  spent: Readonly<Record<"inlet" | "script" | "curl" | "rclone" | "aria2", Spent>>,
): Row[] {
  const { inlet } = spent;
  return [
    beside(what, SCRIPT, inlet, spent.script, LIMITS),
    beside(what, "only the files with `rclone copy --transfers 16`", inlet, spent.rclone, [1, 0.8]),
    beside(what, "only the files with `aria2c -j16`", inlet, spent.aria2, [1, 0.8]),
    beside(what, "only the files with `curl --parallel --parallel-max 16`", inlet, spent.curl),
  ];
}

function beside(
  what: string,
  other: string,
  ours: Spent,
  theirs: Spent,
  limits?: readonly [number, number],
): Row {
  return besides(what, other, "s", [ours.seconds, theirs.seconds], limits);
}

interface Link extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

async function openLink(target: string, roundTripMs: number): Promise<Link> {
  const { protocol, port: targetPort } = new URL(target);
  const script = join(import.meta.dirname, "../support/distant-link.ts");
  const args = [script, targetPort, String(roundTripMs), String(BYTES_PER_SECOND)];
  const proxy = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(proxy, "exit");
  const [printed] = (await once(proxy.stdout, "data")) as [Buffer];
  const port = Number(printed);
  return {
    port,
    url: `${protocol}//127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      proxy.kill();
      await ended;
    },
  };
}
