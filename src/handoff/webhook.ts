/** The webhook: one POST that describes the delivery. */
import { formatChat } from "../base/chat.ts";
import type { Clock } from "../base/clock.ts";
import { formatSize, neutralize } from "../base/phrases.ts";
import { postSigned, type Receiver } from "../base/signed-post.ts";
import { pageOf } from "../model/record.ts";
import type { Announced } from "./delivery.ts";

const BODY_VERSION = 1;

/**
 * Resolves when the call was accepted. `console`: the address that chat messages link to. Throws `WEBHOOK_FAILED`, `SECRET_UNREADABLE`, or `STOPPED`
 * on the signal.
 */
export function callWebhook(
  receiver: Receiver,
  delivery: Announced,
  console: string | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { format } = receiver;
  const body = format === "inlet" ? formatBody(delivery) : formatChat(format, describe(delivery, console));
  return postSigned(receiver, { id: delivery.id, body, failure: "WEBHOOK_FAILED" }, clock, signal);
}

function describe(delivery: Announced, console: string | undefined) {
  const { mailbox, sender, trackingId, subject, folder, files, bytes, verified } = delivery;
  const facts = Object.entries({ From: sender, To: mailbox, Subject: subject, Folder: folder })
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name}: ${neutralize(value ?? "")}`);
  const size = formatSize({ files: files?.length, bytes });
  return {
    title: "Inlet delivered a transfer.",
    text: [...facts, ...(size === "" ? [] : [`Size: ${size}`]), `Verified: ${verified}`].join("\n"),
    footer: `Tracking-id: ${neutralize(trackingId)}`,
    links: console === undefined ? [] : [{ label: trackingId, url: pageOf(console, delivery) }],
  };
}

/** Receivers rely on these keys; docs/consuming.md explains them. */
export function formatBody(delivery: Announced): string {
  const { id, mailbox, sender, trackingId, transferId, deliveredAt, verified } = delivery;
  const { folder, inbox, manifest, files } = delivery;
  const where = { folder, inbox, manifest, files };
  const facts = { id, mailbox, sender, trackingId, transferId, ...where, deliveredAt, verified };
  return JSON.stringify({ version: BODY_VERSION, event: "delivered", ...facts });
}
