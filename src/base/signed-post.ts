/** A signed POST to a receiver that an operator configured. Only the status of the answer counts. */

import { createHmac } from "node:crypto";
import { parseRetryAfter } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { Fault } from "./faults.ts";
import { machine } from "./machine.ts";
import type { Secret, SecretSource } from "./secret.ts";
import { timeLimit } from "./timers.ts";

export interface Receiver {
  /** The query may hold a secret. */
  readonly url: URL;
  /** Signs the bodies. */
  readonly secret: SecretSource;
  readonly timeoutMs: number;
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
  { url, secret, timeoutMs }: Receiver,
  { id, body, failure }: SignedCall,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const headers = {
    "content-type": "application/json",
    "user-agent": "inlet",
    "idempotency-key": id,
    "inlet-signature": signBody(await secret.read(signal), body, clock.now()),
  };
  const limit = timeLimit(timeoutMs);
  const either = AbortSignal.any([signal, limit.signal]);
  const { status, retryAfter } = await machine()
    .post(url, headers, body, either)
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

/** Without the address: its query may hold a secret. */
function describe(error: unknown): string {
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return `it could not be reached${code}`;
}
