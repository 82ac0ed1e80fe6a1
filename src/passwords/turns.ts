/**
 * Whose turn it is to try passwords of a transfer: one mailbox at a time, so that what one of them is refused the next
 * one knows. The turns of several processes are a courtesy: a process that hangs keeps nobody waiting for long, and the
 * budget holds without them.
 */
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { exists } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { makeFolderDurably } from "../base/folders.ts";
import { type KernelLock, tryLock } from "../base/kernel-lock.ts";
import { Turns } from "../base/turns.ts";

const LOOK_EVERY_MS = 50;
/** Longer than a service usually takes to answer. */
const MOST_MS = 30_000;

export interface AttemptTurns {
  /** Throws `STOPPED` where it is told to stop before its turn has come. */
  take<Result>(trackingId: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
}

/** `folder`: where several processes share the work. */
export async function openAttemptTurns(folder: string | undefined): Promise<AttemptTurns> {
  const turns = new Turns();
  if (folder !== undefined) await makeFolderDurably(folder, 0o700);
  return {
    take: (trackingId, signal, work) =>
      turns.take(trackingId, async () => {
        const path = folder === undefined ? undefined : join(folder, nameOf(trackingId));
        const lock = path === undefined ? undefined : await waitForLock(path, signal);
        try {
          if (signal.aborted) throw new Fault("STOPPED");
          return await work();
        } finally {
          if (lock !== undefined && path !== undefined) await rm(path, { force: true }).catch(() => {});
          lock?.release();
        }
      }),
  };
}

/** `undefined` where it takes too long. */
async function waitForLock(path: string, signal: AbortSignal): Promise<KernelLock | undefined> {
  for (let waitedMs = 0; waitedMs < MOST_MS && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
    const lock = await tryLock(path, "alone");
    // Whoever had it before takes the file away at the end: a lock on what has no name any more keeps nobody out.
    if (lock !== undefined && (await exists(path))) return lock;
    lock?.release();
    await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
  }
  return undefined;
}

function nameOf(trackingId: string): string {
  return createHash("sha256").update(trackingId).digest("hex").slice(0, 32);
}
