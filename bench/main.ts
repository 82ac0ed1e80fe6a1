/**
 * How fast Inlet is and how little it takes, beside other programs that fetch the same bytes from the same nginx. Prints
 * a table and writes the figures to a file, from which `npm run docs` puts them into README and docs. `--case NAME`
 * measures some of it, `--rounds N` more or less often, `--scale 0.05` makes it smaller for a quick look, and `--soak
 * SECONDS` shorter.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureDaemon } from "./cases/daemon.ts";
import { measureFleet } from "./cases/fleet.ts";
import { measureLargeFile } from "./cases/large-file.ts";
import { measureManyFiles } from "./cases/many-files.ts";
import { measureManyTransfers } from "./cases/many-transfers.ts";
import { measurePolls } from "./cases/polls.ts";
import { measureSlowLink } from "./cases/slow-link.ts";
import { measureSoak } from "./cases/soak.ts";
import type { Bench } from "./support/bench.ts";
import { installProgram } from "./support/processes.ts";
import { type Row, verdictOf } from "./support/rows.ts";
import { findTools } from "./support/tools.ts";

const CASES: Readonly<Record<string, (bench: Bench) => Promise<Row[]>>> = {
  "large-file": measureLargeFile,
  "many-files": measureManyFiles,
  "many-transfers": measureManyTransfers,
  polls: measurePolls,
  daemon: measureDaemon,
  "slow-link": measureSlowLink,
  fleet: measureFleet,
  soak: measureSoak,
};

const { values } = parseArgs({
  options: {
    case: { type: "string", multiple: true, default: Object.keys(CASES) },
    rounds: { type: "string", default: "5" },
    scale: { type: "string", default: "1" },
    soak: { type: "string", default: "1800" },
    program: { type: "string" },
  },
});
process.exitCode = await main(values.case);

async function main(names: readonly string[]): Promise<number> {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop.abort());
  const folder = mkdtempSync(join(tmpdir(), "inlet-bench-"));
  try {
    const tools = await findTools();
    const launcher = values.program ?? installProgram(join(folder, "program"));
    for (const name of names) {
      const own = join(folder, name);
      mkdirSync(own);
      const bench: Bench = {
        launcher,
        tools,
        folder: own,
        rounds: Number(values.rounds),
        scale: Number(values.scale),
        soakSeconds: Number(values.soak),
        stop: stop.signal,
        tell: (text) => void process.stderr.write(`${text}\n`),
      };
      bench.tell(`… ${name}`);
      const rows = (await CASES[name]?.(bench)) ?? [];
      for (const row of rows) {
        const { what, beside = "", unit, ours, theirs = 0, value, must, aim } = row;
        process.stdout.write(
          `${what.padEnd(38)} ${beside.padEnd(48)} ${ours.toFixed(2).padStart(7)} ${theirs.toFixed(2).padStart(7)} ${unit} = ${value.toFixed(2)} (${must ?? ""}, ${aim ?? ""}) ${verdictOf(row)}\n`,
        );
      }
      rmSync(own, { recursive: true, force: true });
    }
    return 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
