/** One large file: listed, downloaded, hashed, verified, synced to the disk, delivered. */
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { type Bench, CA_FILE, runInlet, runOthers, serveRecording } from "../support/bench.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { type Command, compare } from "../support/timing.ts";

const GIB = 1024 ** 3;

export async function measureLargeFile(whole: Bench): Promise<Row[]> {
  const bench = { ...whole, removesRuns: true };
  const { tools } = bench;
  const bytes = Math.round(2 * GIB * bench.scale);
  const content = { transfers: 1, files: 1, bytes };
  await using served = await serveRecording(bench, content);
  const { site, transfers, nginx } = served;
  const [transfer] = transfers;
  const [file] = transfer?.files ?? [];
  if (transfer === undefined || file === undefined) throw new Error("there is no file to measure");
  const path = `/api/transfers/${transfer.transferId}/files/${file.id}`;
  const source = `${nginx.secureUrl}${path}`;

  const curl = { program: tools.curl, args: ["-sS", "--fail", "--cacert", CA_FILE, "-o", "large", source] };
  const plainCurl = { program: tools.curl, args: ["-sS", "--fail", "-o", "large", `${nginx.url}${path}`] };
  const check = (folder: string) => {
    if (statSync(join(folder, "large")).size !== bytes) throw new Error("a part of the file is missing");
  };
  const others = (...commands: readonly Command[]) => runOthers(bench, () => commands, check);
  const spent = await compare(
    {
      inlet: () => runInlet(bench, { url: nginx.secureUrl, secure: true }, content),
      curl: () => others(curl),
      curlThenSum: () => others(curl, { program: tools.sha256sum, args: ["large"] }),
      curlThenDigest: () => others(curl, { program: tools.openssl, args: ["dgst", "-sha256", "large"] }),
      rclone: () =>
        others(
          { program: tools.rclone, args: ["copyurl", "--ca-cert", CA_FILE, source, "large"] },
          { program: tools.rclone, args: ["hashsum", "sha256", "large"] },
        ),
      aria2: () => {
        const options = ["-q", "-x4", `--ca-certificate=${CA_FILE}`, `--checksum=sha-256=${file.sha256}`];
        return others({ program: tools.aria2c, args: [...options, "-o", "large", source] });
      },
      plainInlet: () => runInlet(bench, { url: nginx.url }, content),
      plainCurl: () => others(plainCurl),
    },
    bench,
  );
  checkSum(tools.sha256sum, join(site, "transfers", transfer.transferId, "content", file.id), file.sha256);

  const what = `one file of ${(bytes / GIB).toFixed(bench.scale === 1 ? 0 : 2)} GiB by TLS`;
  const { inlet, plainInlet, plainCurl: bare } = spent;
  const gib = bytes / GIB;
  const timed = (beside: string, other: keyof typeof spent, limits?: readonly [number, number]) =>
    besides(what, beside, "s", [inlet.seconds, spent[other].seconds], limits);
  const cpu = [inlet.cpuSeconds / gib, spent.curlThenDigest.cpuSeconds / gib] as const;
  return [
    timed("`curl -o`, then `sha256sum`", "curlThenSum", [0.6, 0.35]),
    timed("`rclone copyurl`, then `rclone hashsum sha256`", "rclone", [1, 0.6]),
    timed("`aria2c -x4 --checksum=sha-256=…`", "aria2", [1, 0.6]),
    timed("`curl -o` alone", "curl", [2, 1.2]),
    besides(what, "`curl -o`, then `openssl dgst -sha256`", "CPU s per GiB", cpu, [1.3, 1]),
    alone(what, "MiB", inlet.peakMib, [200, 100]),
    besides("the same without TLS", "`curl -o` alone, without TLS", "s", [plainInlet.seconds, bare.seconds]),
    alone("the same without TLS", "MiB", plainInlet.peakMib, [200, 100]),
  ];
}

/** Throws unless nginx serves the recorded content. */
function checkSum(sha256sum: string, path: string, expected: string): void {
  const sum = execFileSync(sha256sum, [path], { encoding: "utf8" }).split(" ")[0];
  if (sum !== expected) throw new Error("nginx does not serve the recorded content");
}
