/** What vanished from the active list before it was delivered: the service is asked what became of it. */

import { isFinal } from "../model/receipt.ts";
import type { TransferState } from "../model/transfer.ts";
import type { MailboxState } from "./state.ts";
import { jobOf, type PollTools } from "./tools.ts";

/** Entries can slip between pages while one reads them: only what two polls in a row did not list has vanished. */
const POLLS_UNTIL_VANISHED = 2;

/** `isListed`: whether a complete poll has seen it. The job of a vanished one finds out, and writes the receipt. */
export async function reconcile(
  { receipts, queue }: PollTools,
  state: MailboxState,
  isListed: (trackingId: string) => boolean,
): Promise<void> {
  for (const [trackingId, { expiresMs }] of state.undelivered) {
    if (isListed(trackingId)) {
      state.missing.delete(trackingId);
      continue;
    }
    // One that cannot be read is no longer ours to judge: its file is reported at every start.
    const receipt = await receipts.find({ mailbox: state.mailbox.name, trackingId }).catch(() => undefined);
    if (receipt === undefined || isFinal(receipt)) {
      forget(state, trackingId);
      continue;
    }
    const polls = (state.missing.get(trackingId) ?? 0) + 1;
    state.missing.set(trackingId, polls);
    if (polls < POLLS_UNTIL_VANISHED) continue;
    await queue.hurry(jobOf(receipts, state.mailbox.name, trackingId, expiresMs, "vanished"));
  }
}

function forget(state: MailboxState, trackingId: string): void {
  state.undelivered.delete(trackingId);
  state.missing.delete(trackingId);
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
