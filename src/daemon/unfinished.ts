/** What is unfinished, read from the disk again and again: orders change it, and other processes do. */
import type { Outage } from "../base/outage.ts";
import { hasRoom } from "../collect/settle.ts";
import type { Inbox } from "../inbox/port.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { noteUnfinished } from "../mailbox/unfinished.ts";
import type { Receipt } from "../model/receipt.ts";
import type { Receipts } from "../receipts/port.ts";

export interface UnfinishedTools {
  readonly receipts: Receipts;
  readonly inbox: Inbox;
  readonly diskFull: Outage;
}

export interface Unfinished {
  readonly receipts: readonly Receipt[];
  /** Tells the mailboxes of theirs. What lacked room, and is not ours to collect any more, lacks it no longer. */
  learn(mailboxes: ReadonlyMap<string, MailboxState>): void;
}

/** Changes nothing. Damaged ones are passed over: they are reported at the start. */
export async function readUnfinished(tools: UnfinishedTools): Promise<Unfinished> {
  const { diskFull } = tools;
  // Before the disk is read: whoever lacks room from then on may not be in what was read.
  const lacking = diskFull.those();
  const receipts = await Array.fromAsync(tools.receipts.open(() => {}));
  return {
    receipts,
    learn(mailboxes) {
      noteUnfinished(receipts, mailboxes);
      const isActive = (name: string) => mailboxes.get(name)?.mailbox.paused === false;
      const wanted = receipts.filter(({ mailbox }) => isActive(mailbox));
      const keys = new Set(wanted.map((receipt) => tools.receipts.folderName(receipt)));
      for (const key of lacking) if (!keys.has(key) && !isActive(key)) hasRoom(tools, { key });
    },
  };
}
