/** What vanished from the active list before it was delivered: the service is asked what became of it. */
import { asFault } from "../base/faults.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import type { TransferState } from "../model/transfer.ts";
import type { Rejected } from "../service/port.ts";
import type { MailboxState, StateOf } from "./state.ts";
import { jobOf, type PollTools } from "./tools.ts";

/** Entries can slip between pages while one reads them: only what two polls in a row did not list has vanished. */
const POLLS_UNTIL_VANISHED = 2;

/** How long one reading of the whole list answers for transfers that vanished. */
const HISTORY_MS = 60_000;

/** `isListed`: whether a complete poll has seen it. The job of a vanished one asks the service, and ends it. */
export async function reconcile(
  { ledger, queue }: PollTools,
  state: MailboxState,
  isListed: (trackingId: string) => boolean,
): Promise<void> {
  for (const [trackingId, { expiresMs }] of state.undelivered) {
    if (isListed(trackingId)) continue;
    // One that cannot be read is no longer ours to judge: its file is reported at every start.
    const record = await ledger.find({ mailbox: state.mailbox.name, trackingId }).catch(() => undefined);
    if (record === undefined || hasEnded(record)) {
      forget(state, trackingId);
      continue;
    }
    // In the note, so that polls of other processes count, and of earlier runs from cron.
    const missedPolls = (record.missedPolls ?? 0) + 1;
    const vanished = missedPolls >= POLLS_UNTIL_VANISHED;
    ledger.note({
      ...record,
      missedPolls: Math.min(missedPolls, POLLS_UNTIL_VANISHED),
      ...(vanished ? { vanished } : {}),
    });
    if (!vanished) continue;
    // Another process may take the job at once.
    await ledger.flush();
    await queue.runNow(jobOf(ledger, state.mailbox.name, trackingId, expiresMs));
  }
}

/** Nothing is left to do for it. */
export function forget(state: MailboxState, trackingId: string): void {
  state.undelivered.delete(trackingId);
  state.warned.delete(trackingId);
  state.tried.delete(trackingId);
}

/**
 * The service's word on one transfer; `undefined` where it lists it nowhere. One reading of the list answers for all
 * transfers of the mailbox that vanished. That others are not in it says nothing: they may be newer than the list.
 */
export async function findState(
  state: MailboxState,
  { trackingId, vanished }: Pick<TransferRecord, "trackingId" | "vanished">,
  signal: AbortSignal,
): Promise<TransferState | undefined> {
  for (;;) {
    const shared = state.history;
    if (shared === undefined) return (await readHistory(state, signal))(trackingId);
    try {
      const found = (await shared)(trackingId);
      if (found !== undefined || vanished) return found;
      return (await readHistory(state, signal))(trackingId);
    } catch (error) {
      // The job that read the list was stopped: this one was not.
      if (signal.aborted || asFault(error).code !== "STOPPED") throw error;
    }
  }
}

/** Kept for a while, and not at all where it fails. */
function readHistory(state: MailboxState, signal: AbortSignal): Promise<StateOf> {
  const history = listStates(state, signal);
  const forgetHistory = () => {
    if (state.history === history) state.history = undefined;
  };
  state.history = history;
  history.then(() => setTimeout(forgetHistory, HISTORY_MS).unref(), forgetHistory);
  return history;
}

/** An entry that cannot be understood is listed, and says nothing more; any transfer may be the one without an id. */
function listStates(state: MailboxState, signal: AbortSignal): Promise<StateOf> {
  return state.tokens.use(async (address) => {
    const states = new Map<string, TransferState>();
    let ofOthers: "unknown" | undefined;
    const reject = ({ trackingId }: Rejected) => {
      if (trackingId === undefined) ofOthers = "unknown";
      else states.set(trackingId, "unknown");
    };
    const query = { fields: { trackingId: true, status: { state: true } } } as const;
    for await (const page of state.service.listReceived(address, query, reject, signal)) {
      for (const entry of page) states.set(entry.trackingId, entry.state);
    }
    return (trackingId) => states.get(trackingId) ?? ofOthers;
  }, signal);
}
