/** What vanished from the active list before it was delivered: the service is asked what became of it. */

import { hasEnded } from "../model/record.ts";
import type { TransferState } from "../model/transfer.ts";
import type { MailboxState } from "./state.ts";
import { jobOf, type PollTools } from "./tools.ts";

/** Entries can slip between pages while one reads them: only what two polls in a row did not list has vanished. */
const POLLS_UNTIL_VANISHED = 2;

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
    await queue.hurry(jobOf(ledger, state.mailbox.name, trackingId, expiresMs));
  }
}

function forget(state: MailboxState, trackingId: string): void {
  state.undelivered.delete(trackingId);
  state.warned.delete(trackingId);
  state.tried.delete(trackingId);
}

/** The service's word on one transfer; `undefined` where it lists it nowhere. */
export async function findState(
  state: MailboxState,
  trackingId: string,
  signal: AbortSignal,
): Promise<TransferState | undefined> {
  return state.tokens.use(async (address) => {
    const query = { fields: { trackingId: true, status: { state: true } } } as const;
    for await (const page of state.service.listReceived(address, query, () => {}, signal)) {
      const entry = page.find((it) => it.trackingId === trackingId);
      if (entry !== undefined) return entry.state;
    }
    return undefined;
  }, signal);
}
