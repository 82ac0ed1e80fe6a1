/**
 * One large file, downloaded and verified: `inlet api get` beside `curl` followed by `sha256sum`, from the same
 * simulated service, in turns. Prints the median of each and their ratio.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LAUNCHER, startSimulator } from "./simulator.ts";

const ROUNDS = 5;
const BYTES = 1024 ** 3;
const PASSWORD = "Sunny+Harbour%42";

const folder = mkdtempSync(join(tmpdir(), "inlet-bench-"));
const files = [{ name: "large.bin", generate: { bytes: BYTES } }];
const transfer = { from: "a@example.org", to: ["b@example.com"], password: PASSWORD, files };
try {
  await using simulator = await startSimulator(LAUNCHER, folder, { transfers: [transfer] });
  const { url, clientId, transfers } = simulator;
  const env = {
    ...process.env,
    INLET_SERVICE__BASEURL: url,
    INLET_SERVICE__CLIENTID: clientId,
    INLET_PASSWORD: PASSWORD,
  };
  const transferId = transfers[0]?.transferId ?? "";
  const inlet = (...args: string[]) =>
    execFileSync(process.execPath, [LAUNCHER, "api", ...args], { env, cwd: folder, encoding: "utf8" });
  const [file] = JSON.parse(inlet("--json", "files", transferId));

  const contenders = {
    "inlet api get": () => void inlet("get", transferId, "--output", "inlet.bin"),
    "curl, then sha256sum": () => {
      const headers = {
        "X-CS-MajorApiVersion": "1",
        "X-CS-MinimumMinorApiVersion": "12",
        "X-CS-ProductKey": "api.rest",
        "X-CS-ClientId": clientId,
        "X-CS-Password": encodeURIComponent(PASSWORD),
      };
      const options = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
      const source = `${url}/api/transfers/${transferId}/files/${file.id}`;
      execFileSync("curl", ["-sS", "--fail", ...options, "-o", "curl.bin", source], { cwd: folder });
      const [sum] = execFileSync("sha256sum", ["curl.bin"], { cwd: folder, encoding: "utf8" }).split(" ");
      if (sum !== file.checksum) throw new Error("curl received something else");
    },
  };
  const seconds = new Map(Object.keys(contenders).map((name) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(contenders)) {
      const startedMs = performance.now();
      run();
      seconds.get(name)?.push((performance.now() - startedMs) / 1000);
      for (const left of ["inlet.bin", "curl.bin"]) rmSync(join(folder, left), { force: true });
    }
  }
  const medians = [...seconds].map(
    ([name, values]) => [name, values.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? 0] as const,
  );
  for (const [name, median] of medians) process.stdout.write(`${median.toFixed(2).padStart(7)} s  ${name}\n`);
  process.stdout.write(
    `${((medians[0]?.[1] ?? 0) / (medians[1]?.[1] ?? 1)).toFixed(2).padStart(7)} ×  the first to the second\n`,
  );
} finally {
  rmSync(folder, { recursive: true });
}
