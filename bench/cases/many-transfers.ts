/** Many small transfers, each with its ledger, its manifest and its delivery, beside their bare files. */
import { mkdtempDisposableSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { PROVE_AND_SYNC, runCurl } from "../support/bare-files.ts";
import { type Bench, runInlet, runOthers, serveRecording } from "../support/bench.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { compare, type Spent } from "../support/timing.ts";

const STEPS = join(import.meta.dirname, "../support/bare-steps.ts");
/** A file system in memory, which every Debian has. */
const MEMORY = "/dev/shm";

export async function measureManyTransfers(bench: Bench): Promise<Row[]> {
  const content = { transfers: Math.max(20, Math.round(1_000 * bench.scale)), files: 3, bytes: 10 * 1024 };
  await using served = await serveRecording(bench, content);
  const { transfers, nginx } = served;
  const files = transfers.flatMap(({ transferId, files }) =>
    files.map(({ id }) => ({ id, url: `${nginx.url}/api/transfers/${transferId}/files/${id}` })),
  );
  using memory = mkdtempDisposableSync(join(MEMORY, "inlet-bench-"));
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url: nginx.url }, content),
      curl: () => runCurl(bench, files, []),
      curlAndAll: () => runCurl(bench, files, [], "prove and sync"),
      inletInMemory: () =>
        runInlet({ ...bench, folder: memory.path, removesRuns: true }, { url: nginx.url }, content),
      bareSteps: () => runBareSteps(bench, content.transfers),
    },
    bench,
  );
  const what = `${content.transfers.toLocaleString("en")} transfers of 3 files of 10 KiB`;
  const beside = `the same ${files.length.toLocaleString("en")} files with \`curl --parallel\``;
  return [
    besides(what, beside, "s", [spent.inlet.seconds, spent.curl.seconds], [6, 2]),
    besides(what, `the same, then ${PROVE_AND_SYNC}`, "s", [spent.inlet.seconds, spent.curlAndAll.seconds]),
    besides(what, "their steps on the disk, four at once, and nothing else", "s", [
      spent.inlet.seconds,
      spent.bareSteps.seconds,
    ]),
    besides("the same on a file system in memory", "with a disk", "s", [
      spent.inletInMemory.seconds,
      spent.inlet.seconds,
    ]),
    alone(what, "MiB", spent.inlet.peakMib, [200, 100]),
  ];
}

function runBareSteps(bench: Bench, transfers: number): Promise<Spent> {
  const command = { program: process.execPath, args: [STEPS, ".", String(transfers)] };
  return runOthers(
    bench,
    () => [command],
    (folder) => {
      const made = readdirSync(join(folder, "inbox")).length;
      if (made !== transfers) throw new Error(`the steps of ${made} transfers of ${transfers} were taken`);
    },
  );
}
