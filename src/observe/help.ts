/** Adds the commands that help a transfer, with the options that reach this daemon. */
import { type Action, commandFor } from "../model/order.ts";
import { HELD } from "../model/record.ts";
import type { DaemonFacts, TransferStatus } from "../model/status.ts";

export interface HelpContext {
  readonly daemon: DaemonFacts;
  /** There are several mailboxes, so commands have to name one. */
  readonly hasSeveral: boolean;
  /** The folder of a transfer in quarantine. */
  readonly keptIn: ((transfer: TransferStatus) => string) | undefined;
}

export function withHelp(
  transfer: TransferStatus,
  { daemon, hasSeveral, keptIn }: HelpContext,
): TransferStatus {
  const { mailbox, trackingId, message, state } = transfer;
  const options = { config: daemon.config, ...(hasSeveral ? { mailbox } : {}) };
  const onceMore = transfer.reason === "password" && transfer.noAttemptsLeft === true;
  const commands = actionsFor(transfer).map((action) => ({
    short: commandFor(action, trackingId, { onceMore }),
    full: commandFor(action, trackingId, { ...options, onceMore }),
  }));
  return {
    ...transfer,
    // The record's message contains the short commands.
    message: commands.reduce((text, { short, full }) => text?.replaceAll(short, () => full), message),
    commands: commands.map(({ full }) => full),
    ...(state === "quarantined" && keptIn !== undefined ? { keptIn: keptIn(transfer) } : {}),
  };
}

function actionsFor({ state, reason }: TransferStatus): (Action | "password")[] {
  if (state === "quarantined") return ["retry", "release", "discard"];
  if (state === "gone") return ["discard"];
  if (reason === "not-picked-up") return [];
  if (reason === HELD) return ["release", "discard"];
  if (reason === "password") return ["password"];
  return ["retry"];
}
