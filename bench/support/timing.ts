/** What one run of a program takes, and several of several programs in turns. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tools } from "./tools.ts";

const KIB_PER_MIB = 1024;
const LONGEST_COMPLAINT = 2_000;

export interface Spent {
  readonly seconds: number;
  /** Of all its threads, in programs and in the kernel. */
  readonly cpuSeconds: number;
  /** The most that was resident at any moment. */
  readonly peakMib: number;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs programs one after the other in a folder, and throws where one of them fails. */
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
    const said = readFileSync(log, "utf8").slice(-LONGEST_COMPLAINT);
    throw new Error(`${program} ${args.join(" ").slice(0, 200)} ended with ${exitCode}: ${said}`);
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

/** What takes part in a comparison; `run` leaves the disk as it found it. */
export type Contenders<Name extends string> = Readonly<Record<Name, () => Promise<Spent>>>;

/** Each in turn, so many times over, so that whatever the machine does meanwhile meets all of them. */
export async function compare<Name extends string>(
  contenders: Contenders<Name>,
  { rounds, tell }: { readonly rounds: number; tell(text: string): void },
): Promise<Record<Name, Spent>> {
  const names = Object.keys(contenders) as Name[];
  const runs = new Map(names.map((name) => [name, [] as Spent[]]));
  for (let round = 0; round < rounds; round++) {
    // Whoever comes first in one round comes last in the next.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const spent = await contenders[name]();
      runs.get(name)?.push(spent);
      tell(`  ${spent.seconds.toFixed(2).padStart(7)} s  ${name}`);
    }
  }
  const medians = [...runs].map(([name, all]) => [name, summarise(all)]);
  return Object.fromEntries(medians) as Record<Name, Spent>;
}

/** Medians; of memory, the most. */
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
