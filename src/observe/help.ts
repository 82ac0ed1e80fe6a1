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
  const onceMore = transfer.reason === "password" && transfer.noAttemptsLeft === true;
  const actions = actionsFor(transfer).map((action) => ({
    bare: commandFor(action, trackingId, { onceMore }),
    whole: commandFor(action, trackingId, { ...way, onceMore }),
  }));
  return {
    ...transfer,
    // The message names the command without the options that this daemon needs.
    message: actions.reduce((text, { bare, whole }) => text?.replaceAll(bare, () => whole), message),
    commands: actions.map(({ whole }) => whole),
    ...(state === "quarantined" && keptIn !== undefined ? { keptIn: keptIn(transfer) } : {}),
  };
}

function actionsFor({ state, reason }: TransferStatus): (Action | "password")[] {
  if (state === "quarantined") return ["retry", "release", "discard"];
  if (state === "gone") return ["discard"];
  if (reason === "not-picked-up") return [];
  if (reason === "password") return ["password"];
  return ["retry"];
}
