/** Many small transfers, each with its receipts, its manifest and its delivery, beside their bare files. */
import { PROVE_AND_SYNC, runCurl } from "../support/bare-files.ts";
import { type Bench, runInlet, serveRecording } from "../support/bench.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { compare } from "../support/timing.ts";

export async function measureManyTransfers(bench: Bench): Promise<Row[]> {
  const content = { transfers: Math.max(20, Math.round(1_000 * bench.scale)), files: 3, bytes: 10 * 1024 };
  await using served = await serveRecording(bench, content);
  const { transfers, nginx } = served;
  const files = transfers.flatMap(({ transferId, files }) =>
    files.map(({ id }) => ({ id, url: `${nginx.url}/api/transfers/${transferId}/files/${id}` })),
  );
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url: nginx.url }, content),
      curl: () => runCurl(bench, files, []),
      curlAndAll: () => runCurl(bench, files, [], "prove and sync"),
    },
    bench,
  );
  const what = `${content.transfers.toLocaleString("en")} transfers of 3 files of 10 KiB`;
  const beside = `the same ${files.length.toLocaleString("en")} files with \`curl --parallel\``;
  return [
    besides(what, beside, "s", [spent.inlet.seconds, spent.curl.seconds], [6, 2]),
    besides(what, `the same, then ${PROVE_AND_SYNC}`, "s", [spent.inlet.seconds, spent.curlAndAll.seconds]),
    alone(what, "MiB", spent.inlet.peakMib, [200, 100]),
  ];
}
