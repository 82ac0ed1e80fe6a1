/** Events as the daemon emits them, for tests of their subscribers. */
import type { DaemonEvent } from "../../src/model/events.ts";

/** The delivery of a folder. */
export const DELIVERED = {
  mailbox: "m",
  trackingId: "t1",
  round: 1,
  sender: "a@example.org",
  folder: "m/t",
  deliveredAt: "2026-03-01T08:00:00.000Z",
};

type EventOf<Type extends DaemonEvent["type"]> = Extract<DaemonEvent, { readonly type: Type }>;

export function pollSucceeded(facts: Partial<EventOf<"poll-succeeded">>): EventOf<"poll-succeeded"> {
  return {
    type: "poll-succeeded",
    mailbox: "m",
    listed: 0,
    discovered: 0,
    unusable: 0,
    tookMs: 1,
    token: undefined,
    ...facts,
  };
}

export function pollFailed(
  facts: Partial<EventOf<"poll-failed">> & Pick<EventOf<"poll-failed">, "fault">,
): EventOf<"poll-failed"> {
  return {
    type: "poll-failed",
    mailbox: "m",
    isFirst: true,
    waitMs: 0,
    tookMs: 1,
    token: undefined,
    ...facts,
  };
}
