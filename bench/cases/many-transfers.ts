/** Many small transfers, each with its receipts, its manifest and its delivery, beside their bare files. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, runInlet, runOthers, serveRecording } from "../support/bench.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { compare } from "../support/timing.ts";

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
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url: nginx.url }, content),
      curl: () =>
        runOthers(
          bench,
          (folder) => {
            const lines = urls.map(({ id, url }) => `url = "${url}"\noutput = "out/${id}"\n`);
            writeFileSync(join(folder, "list"), lines.join(""));
            const args = ["-sS", "--fail", "--parallel", "--create-dirs", "-K", "list"];
            return [{ program: tools.curl, args }];
          },
          check,
        ),
    },
    bench,
  );
  const what = `${content.transfers.toLocaleString("en")} transfers of 3 files of 10 KiB`;
  const beside = `the same ${urls.length.toLocaleString("en")} files with \`curl --parallel\``;
  return [
    besides(what, beside, "s", [spent.inlet.seconds, spent.curl.seconds], [6, 2]),
    alone(what, "MiB", spent.inlet.peakMib, [200, 100]),
  ];
}
