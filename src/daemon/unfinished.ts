/** What is unfinished, read from the disk: orders change it, and other processes do. */
import type { Outage } from "../base/outage.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Ledger } from "../ledger/port.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { noteUnfinished } from "../mailbox/unfinished.ts";
import type { TransferRecord } from "../model/record.ts";
import { clearDiskWait } from "../transfer/settle.ts";

export interface UnfinishedTools {
  readonly ledger: Ledger;
  readonly inbox: Inbox;
  readonly diskFull: Outage;
}

export interface Unfinished {
  readonly records: readonly TransferRecord[];
  /** Tells the mailboxes which are theirs. A transfer that lacked room, and is not ours any more, lacks it no longer. */
  apply(mailboxes: ReadonlyMap<string, MailboxState>): void;
}

/** Changes nothing. Damaged records are passed over: a start reports them. */
export async function readUnfinished(tools: UnfinishedTools): Promise<Unfinished> {
  const { diskFull, ledger } = tools;
  // Before the disk is read: a transfer that lacks room from then on may not be in what was read.
  const lacking = diskFull.keys();
  const records = await Array.fromAsync(ledger.open(() => {}));
  return {
    records,
    apply(mailboxes) {
      noteUnfinished(records, mailboxes);
      const isActive = (name: string) => mailboxes.get(name)?.mailbox.paused === false;
      const wanted = records.filter(({ mailbox }) => isActive(mailbox));
      const names = new Set(wanted.map((record) => ledger.nameOf(record)));
      for (const key of lacking) if (!names.has(key) && !isActive(key)) clearDiskWait(tools, key);
    },
  };
}
