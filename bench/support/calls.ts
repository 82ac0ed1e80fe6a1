/** Counts the file-system calls of `inlet once` with strace. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, demandDelivered, type InletSettings, inFolder, writeConfig } from "./bench.ts";
import type { Wanted } from "./recording.ts";
import { timeCommands } from "./timing.ts";

/** By the name of the call. */
export type Calls = ReadonlyMap<string, number>;

const TRACED =
  "%file,close,fstat,fchmod,ftruncate,fsync,fdatasync,getdents64,read,pread64,write,pwrite64,pwritev";
/** `PID CALL(…`: a call that another thread interrupts is shown in two lines, of which the second has no bracket there. */
const CALL = /^\d+ +(\w+)\((.*)$/;

/** Calls on something in the folder of the run: inbox, work and state. */
export function countCalls(bench: Bench, settings: InletSettings, content: Wanted): Promise<Calls> {
  return inFolder(bench, async (folder) => {
    const config = writeConfig(folder, settings);
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
