/** A progress line on a terminal: how far, how fast, how long still. Silent on a pipe. */

import { formatBytes, formatSeconds } from "../base/phrases.ts";
import type { Context } from "./context.ts";
import { printable } from "./printing.ts";

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

/** `share` from 0 to 1. */
export function formatBar(share: number): string {
  const done = Math.min(share, 1);
  const filled = Math.floor(done * BAR_WIDTH);
  const percent = `${Math.floor(done * 100)}%`.padStart(4);
  return `${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)} ${percent}`;
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
  const bar = formatBar(bytes / totalBytes);
  const left = rate > 0 ? `${formatSeconds((totalBytes - bytes) / rate)} left` : "";
  return `${bar}  ${formatBytes(bytes)} of ${formatBytes(totalBytes)}  ${speed}  ${left}  ${printable(label)}`;
}
