/** The parts that a download works with. */
import type { Clock } from "../base/clock.ts";
import type { Outage } from "../base/outage.ts";
import type { Secret } from "../base/secret.ts";
import type { Checker, Handoffs } from "../handoff/port.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Emit } from "../model/events.ts";
import type { Check, Handoff, Limits, Mailbox } from "../model/mailbox.ts";
import type { Routed, TransferRecord } from "../model/record.ts";
import type { TransferState } from "../model/transfer.ts";
import type { Passwords } from "../passwords/port.ts";
import type { ServicePort } from "../service/port.ts";
import type { LargeTransfers } from "./large.ts";

export interface TransferTools {
  readonly inbox: Inbox;
  readonly ledger: Ledger;
  readonly passwords: Passwords;
  readonly limits: Limits;
  /** The hand-off of a transfer, by its mailbox and route, as configured now. */
  handoffOf(transfer: Routed): Handoff;
  readonly handoffs: Pick<Handoffs, "prepare" | "placed">;
  readonly checker: Checker;
  /** The check of the mailbox, as configured now. */
  check(): Check | undefined;
  /** Gives the slot of this download to another one, if there is room for more work. */
  freeSlot(): void;
  readonly clock: Clock;
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
  readonly patience: Patience;
  /** Lasts while a disk cannot be used. Its keys are ledger names of transfers, mailboxes, and paths of folders. */
  readonly diskTrouble: Outage;
  readonly large: LargeTransfers;
  /** Whether other transfers wait for a slot. */
  othersWait(): Promise<boolean>;
  readonly emit: Emit;
}

/** How long to wait before asking again. */
export interface Patience {
  /** After the first failure; longer after each further one. */
  readonly retryMs: number;
  /** For room on the disk. */
  readonly diskMs: number;
  /** For a locked transfer, if the service does not say. */
  readonly lockedMs: number;
  /** How long a download may be slow while others wait, and how long it then waits itself. */
  readonly slowMs: number;
}

/** A mailbox and how its service is reached. */
export interface Source {
  readonly mailbox: Mailbox;
  readonly service: ServicePort;
  /** Makes requests without a password, until the service has answered one in its own format. Throws faults. */
  probe(signal: AbortSignal): Promise<void>;
  /** The listed link, if it carries a password: the service puts one there if the sender chose none. */
  linkOf(trackingId: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** The transfer's state at the service; `undefined` if the service does not list it. */
  stateOf(
    record: Pick<TransferRecord, "trackingId" | "vanished">,
    signal: AbortSignal,
  ): Promise<TransferState | undefined>;
}
