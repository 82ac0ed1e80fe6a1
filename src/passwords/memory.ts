/** Facts about passwords that only this process remembers. */
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { MIN_LOCK_MS } from "../model/attempts.ts";
import type { CoRecipients, PasswordRequest } from "./port.ts";

/** `Retry-After` is cut to a day, so a longer lock is due to a wrong clock. */
const MAX_LOCK_MS = 24 * 60 * 60_000;
/** Without an entry, another mailbox asks once more. */
const MAX_LOCKS = 10_000;

/**
 * Passwords that the service has accepted. Should the disk refuse to store one, it is sent again without counting as a
 * guess, also for other mailboxes that received the same transfer.
 */
export class Proven {
  readonly #coRecipients: Pick<CoRecipients, "serviceOf">;
  /** By service and tracking-id, then by mailbox. */
  readonly #passwords = new Map<string, Map<string, Secret>>();

  constructor(coRecipients: Pick<CoRecipients, "serviceOf">) {
    this.#coRecipients = coRecipients;
  }

  add(mailbox: string, trackingId: string, password: Secret): void {
    const key = this.#keyOf(mailbox, trackingId);
    const known = this.#passwords.get(key) ?? new Map<string, Secret>();
    this.#passwords.set(key, known.set(mailbox, password));
  }

  /** A password that was accepted for the transfer, for any mailbox. */
  of(mailbox: string, trackingId: string): Secret | undefined {
    const known = this.#passwords.get(this.#keyOf(mailbox, trackingId));
    return known?.values().next().value;
  }

  has(mailbox: string, trackingId: string, password: Secret): boolean {
    const known = this.#passwords.get(this.#keyOf(mailbox, trackingId));
    return [...(known?.values() ?? [])].some((it) => it.reveal() === password.reveal());
  }

  /** The service refuses the password after all: it counts for no mailbox. */
  forgetAll(mailbox: string, trackingId: string): void {
    this.#passwords.delete(this.#keyOf(mailbox, trackingId));
  }

  forget(mailbox: string, trackingId: string): void {
    const key = this.#keyOf(mailbox, trackingId);
    const known = this.#passwords.get(key);
    known?.delete(mailbox);
    if (known?.size === 0) this.#passwords.delete(key);
  }

  #keyOf(mailbox: string, trackingId: string): string {
    return `${this.#coRecipients.serviceOf(mailbox)}\0${trackingId}`;
  }
}

/** Transfers that the service has locked: the other mailboxes that received one need not ask too. */
export class LockedTransfers {
  readonly #locks = new Map<string, { readonly mailbox: string; readonly untilMs: number }>();

  add(request: PasswordRequest, nowMs: number, retryAfterMs = MIN_LOCK_MS): void {
    const untilMs = nowMs + Math.max(retryAfterMs, MIN_LOCK_MS);
    this.#locks.delete(keyOf(request));
    // The map keeps the order of the last change.
    const [oldest] = this.#locks.keys();
    if (this.#locks.size >= MAX_LOCKS && oldest !== undefined) this.#locks.delete(oldest);
    this.#locks.set(keyOf(request), { mailbox: request.mailbox.name, untilMs });
  }

  /** Throws `TRANSFER_LOCKED` if another mailbox has found the transfer locked. */
  check(request: PasswordRequest, nowMs: number): void {
    const lock = this.#locks.get(keyOf(request));
    if (lock === undefined || lock.mailbox === request.mailbox.name) return;
    const leftMs = lock.untilMs - nowMs;
    if (leftMs > 0 && leftMs <= MAX_LOCK_MS)
      throw new Fault("TRANSFER_LOCKED", { answeredBy: "unsent", retryAfterMs: leftMs });
    this.#locks.delete(keyOf(request));
  }
}

/** Identifies a transfer at its service. */
export function keyOf({ service, record }: PasswordRequest): string {
  return `${service.id}\0${record.trackingId}`;
}
