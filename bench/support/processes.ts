/** The program as it is installed, and what the kernel says that a process takes. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";

/** Linux counts the time of processes in hundredths of a second, whatever the kernel's own clock does. */
const TICKS_PER_SECOND = 100;
const KIB_PER_MIB = 1024;

export const CHECKOUT = resolve(import.meta.dirname, "../..");

/**
 * Compiles the program into a folder, and returns what starts it. In a checkout Node strips the types itself, and what
 * that takes (some 30 MiB) nobody pays who has installed the program.
 */
export function installProgram(folder: string, checkout: string = CHECKOUT): string {
  mkdirSync(folder);
  const compiler = join(checkout, "node_modules/.bin/tsc");
  const source = join(checkout, "src");
  execFileSync(compiler, ["-p", source, "--outDir", join(folder, "dist")], { stdio: "inherit" });
  for (const part of ["bin", "package.json"])
    cpSync(join(checkout, part), join(folder, part), { recursive: true });
  symlinkSync(join(checkout, "node_modules"), join(folder, "node_modules"));
  return join(folder, "bin/inlet.cjs");
}

/** What a process and its threads have computed since it began; `undefined` where it has ended. */
function readCpuSeconds(pid: number): number | undefined {
  return readTimes(`/proc/${pid}/stat`);
}

export interface Sample {
  /** The most that was ever resident. */
  readonly peakMib: number;
  readonly residentMib: number;
  readonly cpuSeconds: number;
  /** Of its first thread alone: the one that runs JavaScript, or Redis's commands. */
  readonly threadSeconds: number;
}

/** `undefined` where it has ended, or has no memory any more. */
export function sampleProcess(pid: number): Sample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const peakMib = mebibytesOf(status, "VmHWM");
    const residentMib = mebibytesOf(status, "VmRSS");
    const cpuSeconds = readCpuSeconds(pid);
    const threadSeconds = readTimes(`/proc/${pid}/task/${pid}/stat`);
    if (peakMib === undefined || residentMib === undefined) return undefined;
    if (cpuSeconds === undefined || threadSeconds === undefined) return undefined;
    return { peakMib, residentMib, cpuSeconds, threadSeconds };
  } catch {
    return undefined;
  }
}

/** What the whole machine has computed since it was started. */
export function readMachineSeconds(): number {
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
  // The 4th and 5th are idle and waiting for the disk; the last two are in the first two already.
  const [user, nice, system, , , irq, softirq, steal] = line.split(/\s+/).slice(1).map(Number);
  const busy = [user, nice, system, irq, softirq, steal].reduce<number>(
    (sum, ticks) => sum + (ticks ?? 0),
    0,
  );
  return busy / TICKS_PER_SECOND;
}

function readTimes(path: string): number | undefined {
  try {
    const stat = readFileSync(path, "utf8");
    // The second field is the name in parentheses, and may hold anything; after it, the 12th and 13th are the times.
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
