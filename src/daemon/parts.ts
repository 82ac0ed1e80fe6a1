/** The open parts of a daemon. */
import type { Clock } from "../base/clock.ts";
import type { Outage } from "../base/outage.ts";
import type { OpenHandoffs } from "../handoff/handoffs.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Expected } from "../mailbox/expected.ts";
import type { Emit } from "../model/events.ts";
import type { Notifier } from "../notify/notifier.ts";
import type { Board } from "../observe/board.ts";
import type { Passwords } from "../passwords/port.ts";
import type { JobQueue } from "../queue/port.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Mailboxes } from "./mailboxes.ts";
import type { OrderRunner } from "./orders.ts";

export interface Parts {
  readonly live: LiveSettings;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly board: Board;
  readonly diskTrouble: Outage;
  readonly inbox: Inbox;
  readonly ledger: Ledger;
  readonly passwords: Passwords;
  readonly mailboxes: Mailboxes;
  readonly expected: Expected;
  readonly handoffs: OpenHandoffs;
  readonly queue: JobQueue;
  readonly orders: OrderRunner;
  readonly notifier: Notifier;
  /** Throws if a folder is lost that everything needs. */
  demandFolders(): Promise<void>;
}
