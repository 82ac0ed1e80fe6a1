/** What a person can do about a transfer: the commands to type, with all that they need to reach this daemon. */
import { type Action, commandFor } from "../model/order.ts";
import type { DaemonFacts, MailboxStatus, TransferStatus } from "../model/status.ts";

/** What the commands for a transfer depend on, beside itself. */
export interface Surroundings {
  readonly daemon: DaemonFacts;
  readonly mailboxes: readonly MailboxStatus[];
  /** Where content is kept that is in quarantine. */
  readonly keptIn: ((transfer: TransferStatus) => string) | undefined;
}

export function withHelp(transfer: TransferStatus, surroundings: Surroundings): TransferStatus {
  const { daemon, mailboxes, keptIn } = surroundings;
  const { mailbox, trackingId, message, state } = transfer;
  const way = { config: daemon.config, ...(mailboxes.length > 1 ? { mailbox } : {}) };
  const actions = actionsFor(transfer);
  return {
    ...transfer,
    // Whoever wrote the message knew the transfer, but not how this daemon was started.
    message: actions.reduce(
      (text, action) =>
        text?.replaceAll(commandFor(action, trackingId), () => commandFor(action, trackingId, way)),
      message,
    ),
    commands: actions.map((action) => commandFor(action, trackingId, way)),
    ...(state === "quarantined" && keptIn !== undefined ? { keptIn: keptIn(transfer) } : {}),
  };
}

function actionsFor({ state, reason, noAttemptsLeft }: TransferStatus): (Action | "password")[] {
  if (state === "quarantined") return ["retry", "release", "discard"];
  if (state === "gone") return ["discard"];
  if (reason === "uncollected") return [];
  if (reason === "password") return noAttemptsLeft ? [] : ["password"];
  return ["retry"];
}
