/** Installs an earlier program to compare with, and reads CPU and memory of processes from /proc. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

/** Linux reports the CPU time of processes in hundredths of a second. */
const TICKS_PER_SECOND = 100;
const KIB_PER_MIB = 1024;

const CHECKOUT = resolve(import.meta.dirname, "../..");

/** The last commit before the write-once ledger: each transfer had a receipt that was appended to. */
export const BEFORE_LEDGER = "96d1350";

/** Installs an earlier commit with its own packages, and returns its launcher. */
export function installEarlier(folder: string, commit: string): string {
  mkdirSync(folder, { recursive: true });
  const archive = execFileSync("git", ["archive", commit], { cwd: CHECKOUT, maxBuffer: 256 * 1024 ** 2 });
  execFileSync("tar", ["-x", "-C", folder], { input: archive });
  const inFolder = { cwd: folder, stdio: "ignore" } as const;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], inFolder);
  execFileSync("npm", ["run", "build"], inFolder);
  // Without the sources its launcher starts the built program.
  rmSync(join(folder, "src"), { recursive: true });
  return join(folder, "bin/inlet.cjs");
}

export interface Sample {
  /** Since the start of the process. */
  readonly peakMib: number;
  readonly residentMib: number;
  readonly cpuSeconds: number;
  /** Of the first thread alone, which runs JavaScript, or Redis's commands. */
  readonly threadSeconds: number;
}

/** `undefined` if the process has ended or is ending. */
export function sampleProcess(pid: number): Sample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const peakMib = mebibytesOf(status, "VmHWM");
    const residentMib = mebibytesOf(status, "VmRSS");
    const cpuSeconds = readTimes(`/proc/${pid}/stat`);
    const threadSeconds = readTimes(`/proc/${pid}/task/${pid}/stat`);
    if (peakMib === undefined || residentMib === undefined) return undefined;
    if (cpuSeconds === undefined || threadSeconds === undefined) return undefined;
    return { peakMib, residentMib, cpuSeconds, threadSeconds };
  } catch {
    return undefined;
  }
}

/** CPU time of the whole machine since its start. */
export function readMachineSeconds(): number {
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  // The 4th and 5th are idle and iowait; the last two are included in the first two.
  const [user, nice, system, , , irq, softirq, steal] = line.split(/\s+/).slice(1).map(Number);
  const busy = [user, nice, system, irq, softirq, steal].reduce<number>(
    (sum, ticks) => sum + (ticks ?? 0),
    0,
  );
  return busy / TICKS_PER_SECOND;
}

/** The seconds for which the first thread of a process was ready to run, and waited for a processor. */
export function readWait(pid: number): number {
  const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
  return Number(waitedNs) / 1e9;
}

function readTimes(path: string): number | undefined {
  try {
    const stat = readFileSync(path, "utf8");
    // The second field is the name in parentheses, which may hold anything. The 12th and 13th after it are the times.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

function mebibytesOf(status: string, name: string): number | undefined {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1];
  return kib === undefined ? undefined : Number(kib) / KIB_PER_MIB;
}
