/** Asks the routes of its mailbox about a transfer: it goes on, is held for an operator, or is left out. */
import { DONE } from "../model/job.ts";
import { HELD, IGNORED, isHeld } from "../model/record.ts";
import { decideRoute, fingerprintOf, type RouteDecision, type RouteFacts } from "../model/route.ts";
import type { Outcome, Run } from "./run.ts";

/**
 * What follows if the routes do not let it go on; `undefined` if they do, or depend on facts that are not known yet. Takes the
 * deciding route into the record.
 */
export async function askRoutes(run: Run, facts: RouteFacts): Promise<Outcome | undefined> {
  const { routing } = run.source.mailbox;
  const decision = routing && (await decideRoute(routing, facts));
  const { route } = decision ?? {};
  run.takeRoute({ route: route?.name, routedBecause: route && decision?.why, rule: route?.rule });
  const { allowedBy, released } = run.record;
  const isAllowed = allowedBy !== undefined || released !== undefined;
  if (routing === undefined || decision === undefined || decision.action === "deliver" || isAllowed) {
    return undefined;
  }
  if (decision.action === "ignore") {
    const message = `${describe(decision, "leaves it out")} inlet retry downloads it nevertheless.`;
    return { kind: "gone", reason: IGNORED, message };
  }
  const message = `${describe(decision, "holds it")} Deliver it with inlet release, or drop it with inlet discard.`;
  const held = {
    reason: HELD,
    message,
    needsPerson: true,
    heldBy: fingerprintOf(routing, unpackOf(run), run.record),
  };
  return { kind: "wait", facts: held, next: DONE };
}

/** Whether the routes that hold it are still the same, and no operator has allowed it. */
export function isStillHeld(run: Run): boolean {
  const { record } = run;
  const { routing } = run.source.mailbox;
  if (!isHeld(record) || record.allowedBy !== undefined || routing === undefined) return false;
  return record.heldBy === fingerprintOf(routing, unpackOf(run), record);
}

function unpackOf({ tools, record: { mailbox } }: Run) {
  return tools.handoffOf({ mailbox, rule: undefined }).unpack;
}

function describe({ route, why, doubt }: RouteDecision, does: string): string {
  if (doubt !== undefined) return `It is unknown whether its route is ${JSON.stringify(doubt)}: ${why}.`;
  return route === undefined
    ? `No route of its mailbox matches it, and the mailbox ${does}.`
    : `The route ${JSON.stringify(route.name)} ${does}: ${why}.`;
}
