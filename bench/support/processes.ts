/** The program as it is installed, as a process of its own, and what the kernel says that it takes while it runs. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";

const SAMPLE_EVERY_MS = 100;
/** Linux counts the time of processes in hundredths of a second, whatever the kernel's own clock does. */
const TICKS_PER_SECOND = 100;
const KIB_PER_MIB = 1024;

const CHECKOUT = resolve(import.meta.dirname, "../..");

/**
 * Compiles the program into a folder, and returns what starts it. In a checkout Node strips the types itself, and what
 * that takes (some 30 MiB) nobody pays who has installed the program.
 */
export function installProgram(folder: string): string {
  mkdirSync(folder);
  const compiler = join(CHECKOUT, "node_modules/.bin/tsc");
  const source = join(CHECKOUT, "src");
  execFileSync(compiler, ["-p", source, "--outDir", join(folder, "dist")], { stdio: "inherit" });
  for (const part of ["bin", "package.json"])
    cpSync(join(CHECKOUT, part), join(folder, part), { recursive: true });
  symlinkSync(join(CHECKOUT, "node_modules"), join(folder, "node_modules"));
  return join(folder, "bin/inlet.cjs");
}

export interface Measured {
  /** Whatever ended it otherwise than by itself has none. */
  readonly exitCode: number | null;
  /** The most that was resident at any moment, as the kernel keeps it: only the last tenth of a second can be missed. */
  readonly peakMib: number;
  readonly medianMib: number;
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
}

export interface MeasureOptions {
  /** Where its output goes. */
  readonly log: string;
  /** Asked with every sample; once it says so, the process is asked to end. */
  isDone(): boolean;
}

/** Runs Node with these arguments until it ends. When `stop` aborts it is killed, and that is thrown. */
export async function measureProcess(
  args: readonly string[],
  { log, isDone }: MeasureOptions,
  stop: AbortSignal,
): Promise<Measured> {
  stop.throwIfAborted();
  const output = openSync(log, "w");
  const startedMs = performance.now();
  const child = spawn(process.execPath, args, { stdio: ["ignore", output, output] });
  closeSync(output);
  const samples: Sample[] = [];
  let asked = false;
  const timer = setInterval(() => {
    const sample = sampleProcess(child.pid ?? 0);
    if (sample !== undefined) samples.push(sample);
    if (!asked && isDone()) asked = child.kill("SIGTERM");
  }, SAMPLE_EVERY_MS);
  const kill = () => child.kill("SIGKILL");
  stop.addEventListener("abort", kill, { once: true });
  try {
    const [exitCode] = (await once(child, "close")) as [number | null];
    stop.throwIfAborted();
    return { exitCode, wallSeconds: (performance.now() - startedMs) / 1000, ...summarise(samples) };
  } finally {
    clearInterval(timer);
    stop.removeEventListener("abort", kill);
  }
}

/** What a process and its threads have computed since it began; `undefined` where it has ended. */
export function readCpuSeconds(pid: number): number | undefined {
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

/** The kernel's own peak and the time are those of the last sample: both only grow. */
function summarise(samples: readonly Sample[]): Pick<Measured, "peakMib" | "medianMib" | "cpuSeconds"> {
  const last = samples.at(-1);
  const resident = samples.map(({ residentMib }) => residentMib).toSorted((a, b) => a - b);
  const median = resident[resident.length >> 1];
  if (last === undefined || median === undefined) throw new Error("it ended before it could be measured");
  return { peakMib: last.peakMib, medianMib: median, cpuSeconds: last.cpuSeconds };
}
