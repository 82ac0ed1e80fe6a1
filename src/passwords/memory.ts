/** What this process remembers about passwords, by transfer. The oldest entries are forgotten. */
import { Fault } from "../base/faults.ts";
import { MIN_LOCK_MS } from "../model/attempts.ts";
import type { PasswordRequest } from "./request.ts";

/** `Retry-After` is cut to a day, so a longer lock is due to a wrong clock. */
const MAX_LOCK_MS = 24 * 60 * 60_000;
const MAX_ENTRIES = 10_000;

/** A map that forgets the entry that was set first. */
export class BoundedMap<Value> extends Map<string, Value> {
  override set(key: string, value: Value): this {
    this.delete(key);
    const [oldest] = this.keys();
    if (this.size >= MAX_ENTRIES && oldest !== undefined) this.delete(oldest);
    return super.set(key, value);
  }
}

/** Transfers that the service has locked: the other mailboxes that received one need not ask too. */
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
    if (leftMs > 0 && leftMs <= MAX_LOCK_MS)
      throw new Fault("TRANSFER_LOCKED", { answeredBy: "unsent", retryAfterMs: leftMs });
  }
}

/** Identifies a transfer at its service. */
export function keyOf({ service, record }: PasswordRequest): string {
  return `${service.id}\0${record.trackingId}`;
}
