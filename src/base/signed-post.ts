/** A POST to a receiver that an operator configured, signed if it has a secret. Only the status of the answer counts. */

import { createHmac } from "node:crypto";
import { parseRetryAfter } from "./backoff.ts";
import type { ChatFormat } from "./chat.ts";
import type { Clock } from "./clock.ts";
import { Fault } from "./faults.ts";
import { machine } from "./machine.ts";
import type { Secret, SecretSource } from "./secret.ts";
import type { Post } from "./system-post.ts";
import { timeLimit } from "./timers.ts";

/** `inlet`: Inlet's own JSON. The others are for chat systems. */
export type WebhookFormat = "inlet" | ChatFormat;

export interface Receiver extends Omit<Post, "headers" | "body"> {
  /** The path and the query may hold a secret. */
  readonly url: URL;
  readonly format: WebhookFormat;
  /** Signs the bodies; `undefined`: they are not signed. */
  readonly secret: SecretSource | undefined;
  readonly headers: readonly OwnHeader[];
}

/** A header of the operator's choice. */
export interface OwnHeader {
  readonly name: string;
  readonly value: SecretSource;
}

export interface SignedCall {
  /** The same for each attempt. */
  readonly id: string;
  /** JSON. */
  readonly body: string;
  /** The fault of a call that was not accepted. */
  readonly failure: "WEBHOOK_FAILED" | "NOTIFY_WEBHOOK_FAILED";
}

/** Resolves when the call was accepted. Throws its `failure`, `SECRET_UNREADABLE`, or `STOPPED` on the signal. */
export async function postSigned(
  { url, secret, headers: own, timeoutMs, proxy, ca }: Receiver,
  { id, body, failure }: SignedCall,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "user-agent": "inlet",
    "idempotency-key": id,
  };
  for (const { name, value } of own) headers[name] = (await value.read(signal)).reveal();
  const key = await secret?.read(signal);
  if (key !== undefined) headers["inlet-signature"] = signBody(key, body, clock.now());
  // Limits the whole call. The connection limits only each of its waits.
  const limit = timeLimit(timeoutMs);
  const either = AbortSignal.any([signal, limit.signal]);
  const { status, retryAfter } = await machine()
    .post({ url, headers, body, timeoutMs, proxy, ca }, either)
    .catch((error: unknown) => {
      if (signal.aborted) throw new Fault("STOPPED");
      const detail = limit.signal.aborted ? `no answer within ${timeoutMs / 1000} s` : describe(error);
      throw new Fault(failure, { detail });
    })
    .finally(limit.clear);
  if (status >= 200 && status < 300) return;
  const isRedirect = status >= 300 && status < 400;
  const detail = `it answered with status ${status}${isRedirect ? ", and redirects are not followed" : ""}`;
  throw new Fault(failure, { detail, retryAfterMs: parseRetryAfter(retryAfter, clock.now()) });
}

/** `t=SECONDS,v1=HEX`: the time is signed too, so that an old call cannot be replayed as a new one. */
export function signBody(secret: Secret, body: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  const signature = createHmac("sha256", secret.reveal()).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${signature}`;
}

/** Without the address: its path or query may hold a secret. */
function describe(error: unknown): string {
  const { code = "", message = "" } = error as { readonly code?: string; readonly message?: string };
  const [, refusal] = /^Proxy response \((\d+)\)/.exec(message) ?? [];
  if (refusal !== undefined) return `the proxy answered with status ${refusal}`;
  if (code === "UND_ERR_SOCKET") return "it closed the connection without an answer";
  return `it could not be reached${code === "" ? "" : ` (${code})`}`;
}
