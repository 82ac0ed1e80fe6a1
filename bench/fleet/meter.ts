/** Samples CPU and memory of several processes, and the CPU of the rest of the machine. */
import { readMachineSeconds, type Sample, sampleProcess } from "../support/processes.ts";

/** The role of a process in a measurement. */
export type Part = "worker" | "scheduler" | "Redis" | "service";

export interface Usage {
  readonly part: Part;
  readonly cpuSeconds: number;
  /** Of the first thread alone. */
  readonly threadSeconds: number;
  /** From the start of the process to the end of the window. */
  readonly peakMib: number;
}

export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

const SAMPLE_EVERY_MS = 200;

/** Samples each process from `watch` on, until it is disposed. */
export class Meter implements Disposable {
  readonly #watched: { readonly part: Part; readonly pid: number; readonly samples: Timed[] }[] = [];
  readonly #machine: { readonly atMs: number; readonly seconds: number }[] = [];
  readonly #timer = setInterval(() => this.#sample(), SAMPLE_EVERY_MS);

  watch(part: Part, pid: number): void {
    this.#watched.push({ part, pid, samples: [] });
    this.#sample();
  }

  /** Of every watched process. */
  usage({ fromMs, toMs }: Window): Usage[] {
    this.#sample();
    return this.#watched.map(({ part, samples }) => ({
      part,
      cpuSeconds: differenceIn(samples, ({ cpuSeconds }) => cpuSeconds, fromMs, toMs),
      threadSeconds: differenceIn(samples, ({ threadSeconds }) => threadSeconds, fromMs, toMs),
      peakMib: samples.findLast(({ atMs }) => atMs <= toMs)?.peakMib ?? 0,
    }));
  }

  /** CPU seconds of everything that is not watched: other programs, the kernel, this bench. */
  others({ fromMs, toMs }: Window): number {
    const ours = this.usage({ fromMs, toMs }).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
    return Math.max(differenceIn(this.#machine, ({ seconds }) => seconds, fromMs, toMs) - ours, 0);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    const atMs = Date.now();
    this.#machine.push({ atMs, seconds: readMachineSeconds() });
    for (const { pid, samples } of this.#watched) {
      const sample = sampleProcess(pid);
      if (sample !== undefined) samples.push({ ...sample, atMs });
    }
  }
}

interface Timed extends Sample {
  readonly atMs: number;
}

function differenceIn<Entry extends { readonly atMs: number }>(
  entries: readonly Entry[],
  read: (entry: Entry) => number,
  fromMs: number,
  toMs: number,
): number {
  return valueAt(entries, read, toMs) - valueAt(entries, read, fromMs);
}

/** Interpolates between two samples; constant before the first and after the last. */
function valueAt<Entry extends { readonly atMs: number }>(
  entries: readonly Entry[],
  read: (entry: Entry) => number,
  atMs: number,
): number {
  const next = entries.findIndex((entry) => entry.atMs >= atMs);
  const after = entries[next] ?? entries.at(-1);
  const before = entries[next - 1] ?? after;
  if (before === undefined || after === undefined) return 0;
  if (before.atMs === after.atMs) return read(after);
  const share = (atMs - before.atMs) / (after.atMs - before.atMs);
  return read(before) + share * (read(after) - read(before));
}
