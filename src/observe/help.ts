/** Adds what can be done with a transfer, with the commands and options that reach this daemon. */
import { actionsFor, commandOf } from "../model/actions.ts";
import type { DaemonFacts, TransferStatus } from "../model/status.ts";

export interface HelpContext {
  readonly daemon: DaemonFacts;
  /** There are several mailboxes, so commands have to name one. */
  readonly hasSeveral: boolean;
  readonly isConfigured: boolean;
  /** The folder of a transfer in quarantine. */
  readonly keptIn: ((transfer: TransferStatus) => string) | undefined;
}

export function withHelp(
  transfer: TransferStatus,
  { daemon, hasSeveral, isConfigured, keptIn }: HelpContext,
): TransferStatus {
  const { mailbox, trackingId, message, state, reason, noAttemptsLeft = false } = transfer;
  const options = { config: daemon.config, ...(hasSeveral ? { mailbox } : {}) };
  const about = { isExhausted: noAttemptsLeft, isHandedOver: reason !== "handoff", isConfigured };
  const actions = actionsFor(transfer, about);
  const commands = actions.map((act) => ({
    short: commandOf(act, trackingId),
    full: commandOf(act, trackingId, options),
  }));
  return {
    ...transfer,
    // The record's message contains the short commands.
    message: commands.reduce((text, { short, full }) => text?.replaceAll(short, () => full), message),
    actions,
    commands: commands.map(({ full }) => full),
    ...(state === "quarantined" && keptIn !== undefined ? { keptIn: keptIn(transfer) } : {}),
  };
}
