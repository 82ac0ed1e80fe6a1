/** Progress of a download: bytes, rate and remaining time. */
import type { Progress } from "../model/status.ts";

/** The rate is the average over this time. */
const WINDOW_MS = 10_000;
const SAMPLE_EVERY_MS = 500;

export class ProgressMeter {
  #doneBytes = 0;
  #totalBytes = 0;
  /** Oldest first, within the window. */
  readonly #samples: { readonly atMs: number; readonly doneBytes: number }[] = [];

  note(doneBytes: number, totalBytes: number, nowMs: number): void {
    this.#doneBytes = doneBytes;
    this.#totalBytes = totalBytes;
    const last = this.#samples.at(-1);
    if (last !== undefined && nowMs - last.atMs < SAMPLE_EVERY_MS) return;
    this.#samples.push({ atMs: nowMs, doneBytes });
    this.#forgetBefore(nowMs - WINDOW_MS);
  }

  read(nowMs: number): Progress {
    this.#forgetBefore(nowMs - WINDOW_MS);
    const [first] = this.#samples;
    const elapsedMs = first === undefined ? 0 : nowMs - first.atMs;
    const bytesPerSecond =
      first === undefined || elapsedMs < SAMPLE_EVERY_MS
        ? 0
        : Math.round(((this.#doneBytes - first.doneBytes) * 1000) / elapsedMs);
    const left = this.#totalBytes - this.#doneBytes;
    return {
      doneBytes: this.#doneBytes,
      totalBytes: this.#totalBytes,
      bytesPerSecond,
      secondsLeft: bytesPerSecond > 0 ? Math.ceil(left / bytesPerSecond) : undefined,
    };
  }

  /** Keeps one sample older than the window, so that there is a rate when no bytes arrive. */
  #forgetBefore(ms: number): void {
    while ((this.#samples[1]?.atMs ?? Number.POSITIVE_INFINITY) <= ms) this.#samples.shift();
  }
}
