/** Runs the command after a delivery. */
import { join } from "node:path";
import { Fault } from "../base/faults.ts";
import { machine } from "../base/machine.ts";
import { variableText } from "../base/process.ts";
import type { HandoffCommand } from "../model/mailbox.ts";
import type { Announced } from "./delivery.ts";
import type { CheckedTransfer } from "./port.ts";

/** Throws `COMMAND_FAILED` with its output. */
export async function runCommand(
  command: HandoffCommand,
  delivery: Announced,
  inbox: string,
  killMs: number,
  signal: AbortSignal,
): Promise<void> {
  const env = { ...command.env, ...environmentOf(delivery, inbox) };
  const { why, output } = await machine().runProgram({ ...command, env }, killMs, signal);
  if (why !== undefined) throw new Fault("COMMAND_FAILED", { detail: why, output });
}

/** Why a command runs: after a delivery, or to check a transfer before it. */
export type CommandEvent = "delivered" | "check";

/** The facts that every command gets. */
type DeliveryFacts = Omit<CheckedTransfer, "folder" | "manifest" | "secrets">;

export function environmentOf(delivery: Announced, inbox: string): Record<string, string> {
  const { folder, manifestPath, deliveredAt } = delivery;
  const facts = factsOf("delivered", delivery, join(inbox, folder), manifestPath);
  return { ...facts, INLET_DELIVERED_AT: deliveredAt };
}

/** Senders choose some of these values, so control characters are replaced. `folder` and `manifest`: absolute paths. */
export function factsOf(
  event: CommandEvent,
  { id, mailbox, sender, trackingId, transferId, verified }: DeliveryFacts,
  folder: string,
  manifest: string,
): Record<string, string> {
  return {
    INLET_EVENT: event,
    INLET_ID: id,
    INLET_FOLDER: folder,
    INLET_MANIFEST: manifest,
    INLET_MAILBOX: variableText(mailbox),
    INLET_SENDER: variableText(sender),
    INLET_TRACKING_ID: variableText(trackingId),
    INLET_TRANSFER_ID: variableText(transferId),
    INLET_VERIFIED: verified,
  };
}
