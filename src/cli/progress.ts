/** A progress line on a terminal: how far, how fast, how long still. Silent on a pipe. */

import type { Context } from "./context.ts";
import { printable } from "./printing.ts";
import { formatBytes, formatSeconds } from "./sizes.ts";

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

export interface Progress {
  advance(bytes: number): void;
  /** Takes the line away again. */
  end(): void;
}

export function startProgress({ stderr }: Context, label: string, totalBytes: number | undefined): Progress {
  if (!stderr.isTTY) return { advance() {}, end() {} };
  const startedMs = performance.now();
  let bytes = 0;
  let drawnMs = Number.NEGATIVE_INFINITY;
  return {
    advance(more) {
      bytes += more;
      const nowMs = performance.now();
      if (nowMs - drawnMs < REDRAW_MS) return;
      drawnMs = nowMs;
      const line = formatProgress(label, bytes, totalBytes, (nowMs - startedMs) / 1000);
      stderr.write(`\r\u001b[K${line.slice(0, (stderr.columns || 80) - 1)}`);
    },
    end() {
      stderr.write("\r\u001b[K");
    },
  };
}

export function formatProgress(
  label: string,
  bytes: number,
  totalBytes: number | undefined,
  seconds: number,
): string {
  const rate = seconds > 0 ? bytes / seconds : 0;
  const speed = `${formatBytes(Math.round(rate))}/s`;
  if (totalBytes === undefined || totalBytes === 0)
    return `${printable(label)}  ${formatBytes(bytes)}  ${speed}`;
  const share = Math.min(bytes / totalBytes, 1);
  const filled = Math.floor(share * BAR_WIDTH);
  const bar = "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled);
  const left = rate > 0 ? `${formatSeconds((totalBytes - bytes) / rate)} left` : "";
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  return `${bar} ${percent}  ${formatBytes(bytes)} of ${formatBytes(totalBytes)}  ${speed}  ${left}  ${printable(label)}`;
}
