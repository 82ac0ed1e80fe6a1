/** Many small files in one transfer: one by one, and as one ZIP. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { demandFiles, FILES_AT_ONCE, PROVE_AND_SYNC, runCurl } from "../support/bare-files.ts";
import { type Bench, runInlet, runOthers, serveRecording } from "../support/bench.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { type Command, compare } from "../support/timing.ts";

export async function measureManyFiles(bench: Bench): Promise<Row[]> {
  const { tools } = bench;
  const files = Math.max(20, Math.round(2_000 * bench.scale));
  const content = { transfers: 1, files, bytes: 16 * 1024, zip: true };
  await using served = await serveRecording(bench, content);
  const { transfers, nginx } = served;
  const [transfer] = transfers;
  if (transfer === undefined) throw new Error("there is no transfer to measure");
  const at = `${nginx.url}/api/transfers/${transfer.transferId}/files`;
  const bare = transfer.files.map(({ id }) => ({ id, url: `${at}/${id}` }));
  const parallel = ["--parallel-max", `${FILES_AT_ONCE}`];
  const asMany = { filesPerTransfer: FILES_AT_ONCE };
  const others = (prepare: (folder: string) => Command) =>
    runOthers(
      bench,
      (folder) => [prepare(folder)],
      (folder) => demandFiles(folder, files),
    );
  const spent = await compare(
    {
      files: () => runInlet(bench, { url: nginx.url, fetch: "files", limits: asMany }, content),
      zip: () => runInlet(bench, { url: nginx.url, fetch: "zip" }, content),
      curl: () => runCurl(bench, bare, parallel),
      curlAndAll: () => runCurl(bench, bare, parallel, "prove and sync"),
      rclone: () =>
        others(() => {
          const from = ["--http-url", `${nginx.url}/plain/${transfer.transferId}/`, ":http:"];
          return { program: tools.rclone, args: ["copy", "--transfers", `${FILES_AT_ONCE}`, ...from, "out"] };
        }),
      aria2: () =>
        others((folder) => {
          writeFileSync(join(folder, "list"), bare.map(({ url }) => `${url}\n`).join(""));
          return { program: tools.aria2c, args: ["-q", "-j", `${FILES_AT_ONCE}`, "-d", "out", "-i", "list"] };
        }),
    },
    bench,
  );

  const what = `${files.toLocaleString("en")} files of 16 KiB in one transfer`;
  const timed = (beside: string, other: keyof typeof spent, limits?: readonly [number, number]) =>
    besides(what, beside, "s", [spent.files.seconds, spent[other].seconds], limits);
  const zipped = [spent.zip.seconds, spent.files.seconds] as const;
  return [
    timed(`\`curl --parallel --parallel-max ${FILES_AT_ONCE}\``, "curl", [2, 1]),
    timed(`the same, then ${PROVE_AND_SYNC}`, "curlAndAll"),
    timed(`\`rclone copy --transfers ${FILES_AT_ONCE}\``, "rclone", [1, 0.5]),
    timed(`\`aria2c -j${FILES_AT_ONCE}\``, "aria2", [1, 0.5]),
    alone(what, "MiB", spent.files.peakMib, [200, 100]),
    besides("the same by ZIP", "Inlet, file by file", "s", zipped, [1, 0.6]),
    alone("the same by ZIP", "MiB", spent.zip.peakMib, [200, 100]),
  ];
}
