/** The webhook: one signed POST that describes the delivery. Only the status of the answer counts. */
import { createHmac } from "node:crypto";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { parseRetryAfter } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { HandoffWebhook } from "../model/mailbox.ts";
import type { Delivery } from "./delivery.ts";

const BODY_VERSION = 1;

/** Resolves when the call was accepted. Throws `WEBHOOK_FAILED`, `SECRET_UNREADABLE`, or `STOPPED` on the signal. */
export async function callWebhook(
  { url, secret, timeoutMs }: HandoffWebhook,
  delivery: Delivery,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const body = formatBody(delivery);
  const headers = {
    "content-type": "application/json",
    "user-agent": "inlet",
    "idempotency-key": delivery.id,
    "inlet-signature": signBody(await secret.read(signal), body, clock.now()),
  };
  const timeout = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, timeout]);
  const { status, retryAfter } = await post(url, headers, body, either).catch((error: unknown) => {
    if (signal.aborted) throw new Fault("STOPPED");
    throw failed(timeout.aborted ? `no answer within ${timeoutMs / 1000} s` : describe(error));
  });
  if (status >= 200 && status < 300) return;
  const isRedirect = status >= 300 && status < 400;
  const words = `it answered with status ${status}${isRedirect ? ", and redirects are not followed" : ""}`;
  throw failed(words, parseRetryAfter(retryAfter, clock.now()));
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/**
 * Without `fetch`, which limits the wait for an answer to five minutes. Each call has a new connection: the receiver
 * may close an idle one at any moment.
 */
function post(url: URL, headers: Record<string, string>, body: string, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = url.protocol === "https:" ? requestHttps : requestHttp;
    const call = request(url, { method: "POST", headers, agent: false, signal }, (answer) => {
      resolve({ status: answer.statusCode ?? 0, retryAfter: answer.headers["retry-after"] });
      answer.on("error", () => {}).destroy();
    });
    call.on("error", reject);
    call.end(body);
  });
}

/** Receivers rely on these keys; docs/consuming.md explains them. */
export function formatBody(delivery: Delivery): string {
  const { id, mailbox, sender, trackingId, transferId, folder, deliveredAt, verified } = delivery;
  const facts = { id, mailbox, sender, trackingId, transferId, folder, deliveredAt, verified };
  return JSON.stringify({ version: BODY_VERSION, event: "delivered", ...facts });
}

/** `t=SECONDS,v1=HEX`: the time is signed too, so that an old call cannot be replayed as a new one. */
export function signBody(secret: Secret, body: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  const signature = createHmac("sha256", secret.reveal()).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${signature}`;
}

/** Without the address: its query may hold a secret. */
function describe(error: unknown): string {
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return `it could not be reached${code}`;
}

function failed(detail: string, retryAfterMs?: number): Fault {
  return new Fault("WEBHOOK_FAILED", { detail, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
}
