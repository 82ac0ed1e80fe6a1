/** Many small transfers, each with records, manifest and delivery, compared with bare files, mail and an earlier Inlet. */
import { mkdtempDisposableSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROVE_AND_SYNC, runCurl } from "../support/bare-files.ts";
import { type Bench, runInlet, runOthers, type ServedRecording, serveRecording } from "../support/bench.ts";
import { runMbsync, startMailServer } from "../support/mail.ts";
import { BEFORE_LEDGER, installEarlier } from "../support/processes.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { compare } from "../support/timing.ts";

/** A file system in memory, present on every Debian. */
const MEMORY = "/dev/shm";
const BARE_STEPS = join(import.meta.dirname, "../support/bare-steps.ts");
/** The default of `limits.transfers`. */
const AT_ONCE = 16;
/** Three files of 10 KiB as a message: base64 adds a third. */
const MESSAGE_BYTES = 42_000;

export async function measureManyTransfers(bench: Bench): Promise<Row[]> {
  const content = { transfers: Math.max(20, Math.round(1_000 * bench.scale)), files: 3, bytes: 10 * 1024 };
  await using served = await serveRecording(bench, content);
  await using mail = await startMailServer(bench, content.transfers, MESSAGE_BYTES);
  const earlier = { ...bench, launcher: installEarlier(join(bench.folder, "earlier"), BEFORE_LEDGER) };
  const { transfers, nginx } = served;
  const { url } = nginx;
  const files = transfers.flatMap(({ transferId, files }) =>
    files.map(({ id }) => ({ id, url: `${url}/api/transfers/${transferId}/files/${id}` })),
  );
  using memory = mkdtempDisposableSync(join(MEMORY, "inlet-bench-"));
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url }, content),
      earlier: () => runInlet(earlier, { url }, content),
      mbsync: () => runMbsync(bench, mail),
      bareSteps: () => runBareSteps(bench, served),
      curl: () => runCurl(bench, files, []),
      curlAndAll: () => runCurl(bench, files, [], "prove and sync"),
      inletInMemory: () => runInlet({ ...bench, folder: memory.path, removesRuns: true }, { url }, content),
    },
    bench,
  );
  const count = content.transfers.toLocaleString("en");
  const what = `${count} transfers of 3 files of 10 KiB`;
  const { seconds, cpuSeconds, peakMib } = spent.inlet;
  const perTransfer = (cpu: number) => (cpu * 1000) / content.transfers;
  const beside = (name: string, other: keyof typeof spent, limits?: readonly [number, number]) =>
    besides(what, name, "s", [seconds, spent[other].seconds], limits);
  return [
    beside(`Inlet before write-once records (${BEFORE_LEDGER})`, "earlier", [0.35, 0.25]),
    beside("a Node script with the same requests and file-system calls, and nothing else", "bareSteps"),
    beside(`${count} messages of the same size with \`mbsync\``, "mbsync"),
    beside(`the same ${files.length.toLocaleString("en")} files with \`curl --parallel\``, "curl", [6, 2]),
    beside(`the same, then ${PROVE_AND_SYNC}`, "curlAndAll"),
    besides("the same on a file system in memory", "with a disk", "s", [
      spent.inletInMemory.seconds,
      seconds,
    ]),
    alone(what, "CPU ms per transfer", perTransfer(cpuSeconds), [4, 2.5]),
    besides(what, "the same script", "CPU ms per transfer", [
      perTransfer(cpuSeconds),
      perTransfer(spent.bareSteps.cpuSeconds),
    ]),
    alone(what, "MiB", peakMib, [200, 100]),
  ];
}

function runBareSteps(bench: Bench, { nginx, transfers }: ServedRecording) {
  const prepare = (folder: string) => {
    writeFileSync(join(folder, "transfers.json"), JSON.stringify(transfers));
    return [{ program: process.execPath, args: [BARE_STEPS, nginx.url, String(AT_ONCE)] }];
  };
  return runOthers(bench, prepare, (folder) => {
    const found = readdirSync(join(folder, "out/inbox")).length;
    if (found !== transfers.length)
      throw new Error(`${found} of ${transfers.length} transfers were delivered`);
  });
}
