/** What is known of a daemon without asking it: its settings, and the past. */
import { hostname } from "node:os";
import { readVersion } from "../base/version.ts";
import type { Settings } from "../config/settings.ts";
import type { DaemonFacts, Delivery } from "../model/status.ts";
import { type HistoryEntry, type HistoryQuery, readHistory } from "../receipts/history.ts";

const MOST_PAST = 50;

export function describeDaemon({ queue, inbox }: Settings): DaemonFacts {
  const isAlone = queue === "embedded";
  return {
    program: readVersion(),
    host: hostname(),
    pid: process.pid,
    queue: isAlone ? "embedded" : "redis",
    role: isAlone ? "all" : queue.role,
    inbox,
  };
}

/** Newest first. What is damaged in the journal is passed over here: `inlet history` says so. */
export async function readPast(
  work: string,
  query: Partial<HistoryQuery>,
  signal?: AbortSignal,
): Promise<HistoryEntry[]> {
  return Array.fromAsync(readHistory(work, { limit: MOST_PAST, ...query }, () => {}, signal));
}

export async function readDeliveries(work: string): Promise<Delivery[]> {
  return (await readPast(work, { state: "delivered" })).map(
    ({ mailbox, trackingId, sender, folder = "", at }) => ({
      mailbox,
      trackingId,
      sender,
      folder,
      at,
      tookSeconds: undefined,
    }),
  );
}
