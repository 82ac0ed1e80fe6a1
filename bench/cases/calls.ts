/** Counts the file-system calls of one small transfer: the difference between a run with many transfers and one with few. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, demandDelivered, inFolder, serveRecording, writeConfig } from "../support/bench.ts";
import { alone, type Row } from "../support/rows.ts";
import { timeCommands } from "../support/timing.ts";

/** By the name of the call. */
type Calls = ReadonlyMap<string, number>;

const [FEW, MANY] = [1, 21];
const FILES = { files: 3, bytes: 10 * 1024 };
const SYNCS = ["fsync", "fdatasync"];
const TRACED =
  "%file,close,fstat,fchmod,ftruncate,fsync,fdatasync,getdents64,read,pread64,write,pwrite64,pwritev";
/** `PID CALL(…`. A call that another thread interrupts takes two lines; only the first has this form. */
const CALL = /^\d+ +(\w+)\((.*)$/;

export async function measureCalls(bench: Bench): Promise<Row[]> {
  const [few, many] = [await count(bench, FEW), await count(bench, MANY)];
  const perTransfer = (name: string) => ((many.get(name) ?? 0) - (few.get(name) ?? 0)) / (MANY - FEW);
  const names = [...many.keys()].toSorted((one, other) => perTransfer(other) - perTransfer(one));
  const sum = (which: readonly string[]) => which.reduce((total, name) => total + perTransfer(name), 0);
  const what = "a transfer of 3 files of 10 KiB";
  const withoutLimits = (name: string): Row => {
    const calls = perTransfer(name);
    return { what: `\`${name}\``, unit: "calls", ours: calls, value: calls };
  };
  return [
    alone(`${what}: all calls`, "calls", sum(names), [60, 45]),
    alone(`${what}: \`fsync\` and \`fdatasync\``, "fsyncs", sum(SYNCS), [12, 10]),
    ...names.filter((name) => perTransfer(name) >= 0.5).map(withoutLimits),
  ];
}

/** Calls of `inlet once` on the folder of the run, by strace: inbox, work and state. */
async function count(bench: Bench, transfers: number): Promise<Calls> {
  const own = join(bench.folder, String(transfers));
  mkdirSync(own);
  const content = { ...FILES, transfers };
  await using served = await serveRecording({ ...bench, folder: own }, content);
  return await inFolder(bench, async (folder) => {
    const config = writeConfig(folder, { url: served.nginx.url });
    const log = join(folder, ".calls");
    const program = [process.execPath, bench.launcher, "once", "--config", config];
    const args = ["-f", "-y", "--seccomp-bpf", "-s", "0", "-e", `trace=${TRACED}`, "-o", log, ...program];
    await timeCommands(bench.tools, folder, [{ program: bench.tools.strace, args }], bench.stop);
    demandDelivered(content, folder);
    return countLines(readFileSync(log, "utf8").split("\n"), folder);
  });
}

function countLines(lines: readonly string[], folder: string): Calls {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const [, name = "", rest = ""] = CALL.exec(line) ?? [];
    if (rest.includes(`${folder}/`)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
