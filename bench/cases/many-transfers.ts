/** Many small transfers, each with its receipts, its manifest and its delivery, beside their bare files. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Bench,
  PROVE_AND_SYNC,
  proveAndSync,
  runInlet,
  runOthers,
  serveRecording,
} from "../support/bench.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { type Command, compare } from "../support/timing.ts";

export async function measureManyTransfers(bench: Bench): Promise<Row[]> {
  const { tools } = bench;
  const content = { transfers: Math.max(20, Math.round(1_000 * bench.scale)), files: 3, bytes: 10 * 1024 };
  await using served = await serveRecording(bench, content);
  const { transfers, nginx } = served;
  const urls = transfers.flatMap(({ transferId, files }) =>
    files.map(({ id }) => ({ id, url: `${nginx.url}/api/transfers/${transferId}/files/${id}` })),
  );
  const check = (folder: string) => {
    const found = readdirSync(join(folder, "out")).length;
    if (found !== urls.length) throw new Error(`${found} of ${urls.length} files came`);
  };
  const names = urls.map(({ id }) => `out/${id}`);
  const curl = (folder: string): Command => {
    const lines = urls.map(({ id, url }) => `url = "${url}"\noutput = "out/${id}"\n`);
    writeFileSync(join(folder, "list"), lines.join(""));
    return { program: tools.curl, args: ["-sS", "--fail", "--parallel", "--create-dirs", "-K", "list"] };
  };
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url: nginx.url }, content),
      curl: () => runOthers(bench, (folder) => [curl(folder)], check),
      curlAndAll: () =>
        runOthers(bench, (folder) => [curl(folder), ...proveAndSync(tools, folder, names)], check),
    },
    bench,
  );
  const what = `${content.transfers.toLocaleString("en")} transfers of 3 files of 10 KiB`;
  const beside = `the same ${urls.length.toLocaleString("en")} files with \`curl --parallel\``;
  return [
    besides(what, beside, "s", [spent.inlet.seconds, spent.curl.seconds], [6, 2]),
    besides(what, `the same, then ${PROVE_AND_SYNC}`, "s", [spent.inlet.seconds, spent.curlAndAll.seconds]),
    alone(what, "MiB", spent.inlet.peakMib, [200, 100]),
  ];
}
