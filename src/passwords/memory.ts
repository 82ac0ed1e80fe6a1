/** What this process remembers about passwords, by transfer. The oldest entries are forgotten. */
import { Fault } from "../base/faults.ts";
import { BoundedMap } from "../base/waits.ts";
import { MIN_LOCK_MS } from "../model/attempts.ts";
import type { PasswordRequest } from "./request.ts";

/** Transfers that the service has locked: the other mailboxes that received one need not ask too. By the monotonic clock. */
export class LockedTransfers {
  readonly #locks = new BoundedMap<{ readonly mailbox: string; readonly untilMs: number }>();

  add(request: PasswordRequest, nowMs: number, retryAfterMs = MIN_LOCK_MS): void {
    const untilMs = nowMs + Math.max(retryAfterMs, MIN_LOCK_MS);
    this.#locks.set(keyOf(request), { mailbox: request.mailbox.name, untilMs });
  }

  /** Throws `TRANSFER_LOCKED` if another mailbox has found the transfer locked. */
  check(request: PasswordRequest, nowMs: number): void {
    const lock = this.#locks.get(keyOf(request));
    if (lock === undefined || lock.mailbox === request.mailbox.name) return;
    const leftMs = lock.untilMs - nowMs;
    if (leftMs > 0) throw new Fault("TRANSFER_LOCKED", { answeredBy: "unsent", retryAfterMs: leftMs });
  }
}

/** Identifies a transfer at its service. */
export function keyOf({ service, record }: PasswordRequest): string {
  return `${service.id}\0${record.trackingId}`;
}
