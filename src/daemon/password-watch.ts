/** Watches the drop folder for passwords. */
import type { Settings } from "../config/settings.ts";
import type { Ledger } from "../ledger/port.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { jobOf } from "../mailbox/tools.ts";
import type { Emit } from "../model/events.ts";
import { hasEnded } from "../model/record.ts";
import type { MailboxId } from "../model/transfer.ts";
import { watchDropFolder } from "../passwords/dropped.ts";
import type { JobQueue } from "../queue/port.ts";

/** A transfer whose password is supplied is downloaded at once. */
export function watchPasswords(
  { state }: Settings,
  { ledger, queue }: { readonly ledger: Ledger; readonly queue: JobQueue },
  mailboxes: ReadonlyMap<MailboxId, MailboxState>,
  emit: Emit,
) {
  const downloadNow = async (mailbox: string, trackingId: string, expiresMs: number) => {
    const record = await ledger.find({ mailbox, trackingId });
    if (record === undefined || hasEnded(record)) return;
    ledger.note({ ...record, wanted: true });
    await ledger.flush();
    await queue.runNow(jobOf(ledger, mailbox, trackingId, expiresMs));
  };
  return watchDropFolder(
    state,
    (trackingId) => {
      for (const [id, { transfers }] of mailboxes) {
        const expiresMs = transfers.expiryOf(trackingId);
        // If Redis is away, the next poll finds the password.
        if (expiresMs !== undefined) downloadNow(id, trackingId, expiresMs).catch(() => {});
      }
    },
    (fault) => emit({ type: "folder-unwatchable", fault }),
  );
}
