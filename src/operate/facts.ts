/** Facts about a daemon, from its settings and from the disk. */
import { hostname } from "node:os";
import { isAbsolute } from "node:path";
import { readVersion } from "../base/version.ts";
import type { Settings } from "../config/settings.ts";
import { DEFAULT_PATH } from "../config/source.ts";
import { nameOf } from "../ledger/paths.ts";
import { type PeekedFolders, peekLedger } from "../ledger/peek.ts";
import { Quarantine } from "../ledger/quarantine.ts";
import type { TransferRecord } from "../model/record.ts";
import type { DaemonFacts, Delivery, TransferStatus } from "../model/status.ts";
import { readJournal } from "./history.ts";

const MAX_DELIVERIES = 50;
const MAX_GONE = 1_000;
const DAY_MS = 24 * 60 * 60_000;

export function describeDaemon({ queue, inbox, source, timezone }: Settings): DaemonFacts {
  const isAlone = queue === "embedded";
  return {
    program: readVersion(),
    host: hostname(),
    pid: process.pid,
    queue: isAlone ? "embedded" : "redis",
    role: isAlone ? "all" : queue.role,
    inbox,
    ...(isAbsolute(source) && source !== DEFAULT_PATH ? { config: source } : {}),
    ...(timezone === undefined ? {} : { timezone }),
  };
}

/** Finds the folder with the content of a quarantined transfer. */
export function keptIn(work: string): (transfer: TransferStatus) => string {
  const quarantine = new Quarantine(work);
  return (transfer) => quarantine.folderOf(nameOf(transfer), transfer.round ?? 1);
}

export async function readDeliveries(work: string): Promise<Delivery[]> {
  const { entries } = await readJournal(work, "transfers", { state: "delivered", limit: MAX_DELIVERIES });
  return entries.map(({ state: _state, round: _round, reason: _reason, seconds, folder = "", ...facts }) => {
    return { ...facts, folder, tookSeconds: seconds };
  });
}

/**
 * Transfers that ended as `gone` within this time and still are: the status shows them, whichever process has ended them,
 * and also after a restart.
 */
export async function readGone(
  folders: PeekedFolders,
  nowMs: number,
  withinMs = DAY_MS,
): Promise<TransferRecord[]> {
  const ledger = peekLedger(folders);
  const sinceMs = nowMs - withinMs;
  const query = { state: "gone", sinceMs, limit: MAX_GONE } as const;
  const { entries } = await readJournal(folders.work, "transfers", query);
  // The start reports damaged records.
  const found = await Promise.all(entries.map((entry) => ledger.find(entry).catch(() => undefined)));
  return found.flatMap((record) => (record?.state === "gone" ? [record] : []));
}
