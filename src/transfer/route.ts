/** Applies the routes of its mailbox to a transfer: it goes on, is held for an operator, or is left out. */
import { Fault } from "../base/faults.ts";
import type { Routing } from "../model/mailbox.ts";
import { HELD, IGNORED, isHeld, type TransferRecord } from "../model/record.ts";
import { decideRoute, fingerprintOf, type RouteDecision, type RouteFacts } from "../model/route.ts";
import type { Run } from "./run.ts";
import type { Source, TransferTools } from "./tools.ts";

/** What the list of the service shows. */
export function listedFacts({ sender, subject }: TransferRecord): RouteFacts {
  return { sender, subject, fileNames: undefined, bytes: undefined };
}

/**
 * False if the transfer is held or ignored: the record says so. True if it goes on, or if the routes depend on facts that
 * are not known yet. Throws `ROUND_LOST`.
 */
export async function followRoutes(
  tools: TransferTools,
  source: Source,
  run: Run,
  facts: RouteFacts,
): Promise<boolean> {
  const { routing } = source.mailbox;
  const decision = routing && decideRoute(routing, facts);
  const { route } = decision ?? {};
  run.takeRoute({ route: route?.name, routedBecause: route && decision?.why, rule: route?.rule });
  if (routing === undefined || decision === undefined) return true;
  const { action } = decision;
  const { allowedBy, released } = run.record;
  if (action === "deliver" || allowedBy !== undefined || released !== undefined) return true;
  if (action === "hold") hold(run, routing, decision);
  else await ignore(tools, source, run, decision);
  return false;
}

/** Whether the routes that hold it are still the same, and no operator has allowed it. */
export function isStillHeld(
  record: TransferRecord,
  { mailbox: { routing } }: Pick<Source, "mailbox">,
): boolean {
  if (!isHeld(record) || record.allowedBy !== undefined || routing === undefined) return false;
  return record.heldBy === fingerprintOf(routing);
}

function hold(run: Run, routing: Routing, decision: RouteDecision): void {
  const message = `${describe(decision, "holds it")} Deliver it with inlet release, or drop it with inlet discard.`;
  run.enter("waiting", { reason: HELD, message, needsPerson: true, heldBy: fingerprintOf(routing) });
}

async function ignore(
  { ledger, passwords }: TransferTools,
  { mailbox }: Source,
  run: Run,
  decision: RouteDecision,
): Promise<void> {
  const message = `${describe(decision, "leaves it out")} inlet retry downloads it nevertheless.`;
  const ended = run.endRecord("gone", { reason: IGNORED, message });
  if (!(await ledger.end(ended))) throw new Fault("ROUND_LOST", { detail: ended.trackingId });
  run.noteEnd(ended);
  // The configuration leaves the transfer out, whatever an earlier round has kept of it.
  await ledger.clearQuarantine(ended);
  if (run.stage !== undefined) await ledger.stages.dropStage(run.stage).catch(() => {});
  passwords.settled(mailbox, ended.trackingId);
}

function describe({ route, why }: RouteDecision, does: string): string {
  return route === undefined
    ? `No route of its mailbox matches it, and the mailbox ${does}.`
    : `The route ${JSON.stringify(route.name)} ${does}: ${why}.`;
}
