/** How commands reach transfers: through the folders or, if this user may not use them, through the daemon's socket. */
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { Settings } from "../config/settings.ts";
import { mailboxOf, serviceIdOf } from "../model/mailbox.ts";
import type { TransferAct } from "../model/order.ts";
import { hasEnded, type State, type TransferKey } from "../model/record.ts";
import type {
  ActResult,
  PageRequest,
  Story,
  TransferFilter,
  TransferList,
  TransferView,
} from "../model/views.ts";

export interface ActRequest {
  readonly act: TransferAct;
  readonly transfers: readonly TransferView[];
  /** For the act `password`. */
  readonly password?: Secret;
  /** The password is meant only for the mailbox of these transfers. */
  readonly isForMailbox?: boolean;
  /** `undefined`: the outcome is not awaited. */
  readonly waitMs: number | undefined;
}

/** Both ways give the same answers. Methods throw the faults of the disk, or of the connection to the daemon. */
export interface Access {
  /** The transfer in the named mailbox, or in every mailbox that received it. */
  find(trackingId: string, mailbox: string | undefined): Promise<TransferView[]>;
  /** Every transfer that matches, and for which the act is possible as far as that is known. */
  select(filter: TransferFilter, act: TransferAct): Promise<TransferView[]>;
  /** Every transfer that matches, in no particular order. */
  all(filter: TransferFilter, onDamaged: (path: string) => void): AsyncIterable<TransferView>;
  list(filter: TransferFilter, page: PageRequest): Promise<TransferList>;
  story(key: TransferKey): Promise<Story | undefined>;
  /** Why the act is not possible, for people; `undefined` if it may be. */
  objectionTo(act: TransferAct, key: TransferKey): Promise<string | undefined>;
  /** In the order of the request. `onLook`: the state of a transfer whose outcome is awaited. */
  act(request: ActRequest, onLook: (trackingId: string, state: string) => void): Promise<ActResult[]>;
}

/** A password goes to one service only. Throws `ORDER_IMPOSSIBLE`. */
export function demandOneService(
  { mailboxes }: Settings,
  transfers: readonly { readonly mailbox: string; readonly state: State }[],
): void {
  const open = transfers.filter((transfer) => !hasEnded(transfer));
  const serviceIds = new Set(
    open.map((transfer) => {
      const mailbox = mailboxOf(mailboxes, transfer);
      return mailbox && serviceIdOf(mailbox.service.baseUrl);
    }),
  );
  if (serviceIds.size <= 1) return;
  const names = open.map(({ mailbox }) => mailbox).join(", ");
  const detail = `several services list it, for ${names}: choose one with --mailbox`;
  throw new Fault("ORDER_IMPOSSIBLE", { detail });
}
