/** Finds the transfer that a person means by its tracking-id. */
import { Fault } from "../base/faults.ts";
import type { Settings } from "../config/settings.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { TransferRecord } from "../model/record.ts";

/**
 * The record of the transfer, by the mailbox that is named or the only one that received it. Throws
 * `NO_SUCH_TRANSFER`, and `ORDER_IMPOSSIBLE` where several mailboxes received it and none is named.
 */
export async function findTransfer(
  settings: Settings,
  trackingId: string,
  mailbox: string | undefined,
): Promise<TransferRecord> {
  const [first, ...others] = await findTransfers(settings, trackingId, mailbox);
  if (others.length === 0) return first;
  const several = [first, ...others].map((record) => record.mailbox).join(", ");
  throw new Fault("ORDER_IMPOSSIBLE", {
    detail: `${several} received it: say which one is meant with --mailbox`,
  });
}

/** The ledger of the transfer, of the mailbox that is named or of all that received it. Throws `NO_SUCH_TRANSFER`. */
export async function findTransfers(
  { work, mailboxes }: Settings,
  trackingId: string,
  mailbox: string | undefined,
): Promise<[TransferRecord, ...TransferRecord[]]> {
  const { find } = peekLedger(work);
  const names = mailboxes.map(({ name }) => name).filter((name) => mailbox === undefined || name === mailbox);
  const found: TransferRecord[] = [];
  for (const name of names) {
    const record = await find({ mailbox: name, trackingId });
    if (record !== undefined) found.push(record);
  }
  const [first, ...others] = found;
  if (first !== undefined) return [first, ...others];
  const where = mailbox === undefined ? "" : ` in the mailbox ${mailbox}`;
  throw new Fault("NO_SUCH_TRANSFER", { detail: `${JSON.stringify(trackingId)}${where}` });
}
