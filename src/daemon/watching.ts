/** Who hears what the daemon does. */
import type { Fault } from "../base/faults.ts";
import type { HandoffWatch } from "../handoff/port.ts";
import type { ExpectedTools } from "../mailbox/expected.ts";
import type { OrderTools } from "../mailbox/orders.ts";
import type { PollTools } from "../mailbox/tools.ts";
import type { LeftOverWatch } from "../mailbox/unfinished.ts";
import type { Order } from "../model/order.ts";
import type { TransferTools } from "../transfer/tools.ts";
import type { WorkspaceWatch } from "./workspace.ts";

/** Hears everything that is worth telling. Must not throw. */
export type DaemonWatch = TransferTools["watch"] &
  PollTools["watch"] &
  ExpectedTools["watch"] &
  Pick<OrderTools["watch"], "acknowledged"> &
  HandoffWatch &
  LeftOverWatch &
  WorkspaceWatch & {
    /** Intake pauses. Not told again until it was over. */
    diskFull(fault: Fault): void;
    diskHasRoom(pausedForMs: number): void;
    /** A client id was made, and an administrator has to register it. */
    clientIdMade(origin: string, path: string): void;
    /** Work in hand goes on, nothing new is begun. Not told again until it was over. */
    queueLost(fault: Fault): void;
    queueBack(lostForMs: number): void;
    /** Redis may forget jobs by itself: its policy is not `noeviction`. */
    queueForgets(policy: string): void;
    /** New settings are in force; `waiting`: what of them has to wait for a restart. */
    reloaded(mailboxes: number, waiting: readonly string[]): void;
    /** They are not valid, or cannot be applied: the old ones stay in force. */
    reloadRefused(fault: Fault): void;
    /** An order cannot be carried out now; it is tried again and again, and told once. */
    orderFailed(order: Order, fault: Fault): void;
    /** The system cannot watch a folder of ours: it is checked every few seconds. Told once for each. */
    unwatchable(fault: Fault): void;
    /** The status page is there. */
    pageOpened(address: string): void;
    /** It is tried again and again, and told once. */
    pageFailed(address: string, reason: string): void;
    ready(): void;
  };
