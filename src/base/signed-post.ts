/** A signed POST to a receiver that an operator configured. Only the status of the answer counts. */
import { createHmac } from "node:crypto";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { parseRetryAfter } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { Fault } from "./faults.ts";
import type { Secret, SecretSource } from "./secret.ts";

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
  const timeout = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, timeout]);
  const { status, retryAfter } = await post(url, headers, body, either).catch((error: unknown) => {
    if (signal.aborted) throw new Fault("STOPPED");
    const detail = timeout.aborted ? `no answer within ${timeoutMs / 1000} s` : describe(error);
    throw new Fault(failure, { detail });
  });
  if (status >= 200 && status < 300) return;
  const isRedirect = status >= 300 && status < 400;
  const detail = `it answered with status ${status}${isRedirect ? ", and redirects are not followed" : ""}`;
  const retryAfterMs = parseRetryAfter(retryAfter, clock.now());
  throw new Fault(failure, { detail, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
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
