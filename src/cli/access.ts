/** How commands reach transfers: through the folders or, if this user may not use them, through the daemon's socket. */
import type { Secret } from "../base/secret.ts";
import type { Story } from "../daemon/story.ts";
import type { ListedTransfer, PageRequest, TransferFilter, TransferPage } from "../daemon/transfers.ts";
import type { TransferAct } from "../model/order.ts";
import type { TransferKey } from "../model/record.ts";

export interface ActRequest {
  readonly act: TransferAct;
  readonly transfers: readonly TransferKey[];
  /** For the act `password`. */
  readonly password?: Secret;
  /** The password is meant for this mailbox alone. */
  readonly isForMailbox?: boolean;
  /** `undefined`: the outcome is not awaited. */
  readonly waitMs: number | undefined;
}

export interface ActResult extends TransferKey {
  /** 200: the order was given; 404: no such transfer; 409: not possible in its state. */
  readonly status: number;
  /** A sentence for people. */
  readonly text: string;
  readonly state?: string | undefined;
  readonly reason?: string | undefined;
  /** `given`: the order is kept, and its outcome was not awaited. */
  readonly result: "fine" | "attention" | "pending" | "refused" | "given";
}

/** Methods throw the faults of the disk, or of the connection to the daemon. */
export interface Access {
  /** The transfer in the named mailbox, or in every mailbox that received it. */
  find(trackingId: string, mailbox: string | undefined): Promise<ListedTransfer[]>;
  /** Every transfer that matches, and for which the act is possible as far as that is known. */
  select(filter: TransferFilter, act: TransferAct): Promise<ListedTransfer[]>;
  /** Every transfer that matches, in no particular order. */
  all(filter: TransferFilter, onDamaged: (path: string) => void): AsyncIterable<ListedTransfer>;
  list(filter: TransferFilter, page: PageRequest, onDamaged: (path: string) => void): Promise<TransferPage>;
  story(
    key: TransferKey,
    options: { readonly config?: string; readonly mailbox?: string },
  ): Promise<Story | undefined>;
  /** Why the act is not possible, for people; `undefined` where it may be. */
  objectionTo(act: TransferAct, key: TransferKey): Promise<string | undefined>;
  /** In the order of the request. `onLook`: the state of a transfer whose outcome is awaited. */
  act(request: ActRequest, onLook: (trackingId: string, state: string) => void): Promise<ActResult[]>;
}
