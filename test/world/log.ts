/** How a world says what happens, for people who read its log. */
import type { DaemonEvent } from "../../src/model/events.ts";
import type { Happening } from "./plan/plan.ts";

const LONGEST_FACTS = 400;

/** They come often, and say little. */
const QUIET_EVENTS: readonly string[] = [
  "transfer-progressed",
  "poll-succeeded",
  "outbox-scanned",
  "overdue-listed",
];

export function describe(what: Happening): string {
  const { kind, ...facts } = what;
  return `${kind} ${JSON.stringify(facts).slice(0, LONGEST_FACTS)}`;
}

export function describeEvent(event: DaemonEvent): string {
  if (QUIET_EVENTS.includes(event.type)) return event.type;
  if (event.type === "transfer-changed" || event.type === "transfer-discovered") {
    const { trackingId, state, reason, mailbox, round } = event.record;
    return `${trackingId} of ${mailbox} is ${state} ${reason ?? ""} (round ${round})`;
  }
  if (event.type === "transfer-stuck" || event.type === "poll-failed" || event.type === "order-failed") {
    return `${event.type} ${event.fault.message}`;
  }
  return event.type;
}
