/** What operators ask and do, with or without a daemon. Commands, the console and the API know no other way. */

import type { Actor, TransferAct } from "../model/order.ts";
import type { JournalKind, ListQuery, TransferFilter } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import type {
  ActEntry,
  ActResult,
  HistoryEntry,
  HistoryQuery,
  MailboxResult,
  Story,
  TransferList,
  TransferView,
} from "../model/views.ts";
import type { ActRequest } from "./acting.ts";
import type { OnDamagedLines } from "./history.ts";
import type { MailboxRequest } from "./mailboxes.ts";

/** `act`: only transfers for which it is possible, as far as that is known. */
export type Choice = TransferFilter & { readonly act?: TransferAct | undefined };

/** Newest first. */
export type JournalEntries<Kind extends JournalKind> = readonly (Kind extends "acts"
  ? ActEntry
  : HistoryEntry)[];

/** Both ways, through the folders and through the daemon, give the same answers. Methods throw the faults of the disk or the connection. */
export interface Operate {
  /** The transfer in the named mailbox, or in every mailbox that received it. */
  find(trackingId: string, mailbox: string | undefined): Promise<TransferView[]>;
  /** Every transfer that matches, in no particular order. */
  all(choice: Choice, onDamaged: (path: string) => void): AsyncIterable<TransferView>;
  list(query: ListQuery): Promise<TransferList>;
  /** `undefined` for an unknown transfer. */
  story(key: TransferKey): Promise<Story | undefined>;
  history<Kind extends JournalKind>(
    kind: Kind,
    query: HistoryQuery,
    onDamaged: OnDamagedLines,
  ): Promise<JournalEntries<Kind>>;
  /** Why the act is not possible, for people; `undefined` if it may be. */
  objectionTo(act: TransferAct, key: TransferKey): Promise<string | undefined>;
  /** In the order of the request. `waitMs`: for the outcomes. `onLook`: the state of a transfer whose outcome is awaited. */
  act(
    request: ActRequest,
    by: Actor,
    waitMs: number,
    onLook: (trackingId: string, state: string) => void,
  ): Promise<ActResult[]>;
  /** In the order of the configuration. `waitMs`: for the outcomes of polls. */
  actOnMailboxes(request: MailboxRequest, by: Actor, waitMs: number): Promise<MailboxResult[]>;
}
