/** Measures the time, CPU and memory of programs, alone or in a comparison by turns. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tools } from "./tools.ts";

const KIB_PER_MIB = 1024;
const LONGEST_OUTPUT = 2_000;

export interface Spent {
  readonly seconds: number;
  /** Of all threads, in user and kernel mode. */
  readonly cpuSeconds: number;
  /** Peak resident memory. */
  readonly peakMib: number;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs programs one after the other in a folder. Throws if one fails. */
export async function timeCommands(
  { time }: Tools,
  folder: string,
  commands: readonly Command[],
  stop: AbortSignal,
): Promise<Spent> {
  let spent: Spent = { seconds: 0, cpuSeconds: 0, peakMib: 0 };
  for (const command of commands) spent = add(spent, await timeCommand(time, folder, command, stop));
  return spent;
}

async function timeCommand(
  time: string,
  folder: string,
  { program, args, env }: Command,
  stop: AbortSignal,
): Promise<Spent> {
  stop.throwIfAborted();
  const [log, figures] = [join(folder, ".log"), join(folder, ".figures")];
  const output = openSync(log, "w");
  const startedMs = performance.now();
  const child = spawn(time, ["-o", figures, "-f", "%U %S %M", program, ...args], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", output, output],
    detached: true,
  });
  closeSync(output);
  const kill = () => process.kill(-(child.pid ?? 0), "SIGKILL");
  stop.addEventListener("abort", kill, { once: true });
  const [exitCode] = (await once(child, "exit")) as [number | null];
  const seconds = (performance.now() - startedMs) / 1000;
  stop.removeEventListener("abort", kill);
  stop.throwIfAborted();
  if (exitCode !== 0) {
    const printed = readFileSync(log, "utf8").slice(-LONGEST_OUTPUT);
    throw new Error(`${program} ${args.join(" ").slice(0, 200)} ended with ${exitCode}: ${printed}`);
  }
  const [user = 0, system = 0, peakKib = 0] = readFileSync(figures, "utf8").trim().split(" ").map(Number);
  return { seconds, cpuSeconds: user + system, peakMib: peakKib / KIB_PER_MIB };
}

function add(one: Spent, other: Spent): Spent {
  return {
    seconds: one.seconds + other.seconds,
    cpuSeconds: one.cpuSeconds + other.cpuSeconds,
    peakMib: Math.max(one.peakMib, other.peakMib),
  };
}

export type Contenders<Name extends string> = Readonly<Record<Name, () => Promise<Spent>>>;

/** Runs all contenders in each round, so that changes of the machine affect all of them. */
export async function compare<Name extends string>(
  contenders: Contenders<Name>,
  { rounds, log }: { readonly rounds: number; log(text: string): void },
): Promise<Record<Name, Spent>> {
  const names = Object.keys(contenders) as Name[];
  const runs = new Map(names.map((name) => [name, [] as Spent[]]));
  for (let round = 0; round < rounds; round++) {
    // The order is reversed in every other round.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const spent = await contenders[name]();
      runs.get(name)?.push(spent);
      log(`  ${spent.seconds.toFixed(2).padStart(7)} s  ${name}`);
    }
  }
  const medians = [...runs].map(([name, all]) => [name, summarise(all)]);
  return Object.fromEntries(medians) as Record<Name, Spent>;
}

/** Medians, but the maximum of memory. */
export function summarise(all: readonly Spent[]): Spent {
  return {
    seconds: median(all.map(({ seconds }) => seconds)),
    cpuSeconds: median(all.map(({ cpuSeconds }) => cpuSeconds)),
    peakMib: Math.max(...all.map(({ peakMib }) => peakMib)),
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low = 0, high = 0] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return (low + high) / 2;
}
