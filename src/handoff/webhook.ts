/** The webhook: one signed POST that describes the delivery. */
import type { Clock } from "../base/clock.ts";
import { postSigned, type Receiver } from "../base/signed-post.ts";
import type { Announced } from "./outbox-delivery.ts";

const BODY_VERSION = 1;

/** Resolves when the call was accepted. Throws `WEBHOOK_FAILED`, `SECRET_UNREADABLE`, or `STOPPED` on the signal. */
export function callWebhook(
  receiver: Receiver,
  delivery: Announced,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const call = { id: delivery.id, body: formatBody(delivery), failure: "WEBHOOK_FAILED" } as const;
  return postSigned(receiver, call, clock, signal);
}

/** Receivers rely on these keys; docs/consuming.md explains them. */
export function formatBody(delivery: Announced): string {
  const { id, mailbox, sender, trackingId, transferId, deliveredAt, verified } = delivery;
  const { folder, inbox, manifest, files } = delivery;
  const where = { folder, inbox, manifest, files };
  const facts = { id, mailbox, sender, trackingId, transferId, ...where, deliveredAt, verified };
  return JSON.stringify({ version: BODY_VERSION, event: "delivered", ...facts });
}
