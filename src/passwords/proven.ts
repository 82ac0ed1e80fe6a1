/**
 * Passwords that the service has accepted since this process started. Should the disk refuse to write that down, they
 * are tried again without being counted as a guess; so they are for other mailboxes that received the same transfer.
 */
import type { Secret } from "../base/secret.ts";
import type { CoRecipients } from "./port.ts";

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

  /** One that was accepted for it, for whichever mailbox. */
  of(mailbox: string, trackingId: string): Secret | undefined {
    const known = this.#passwords.get(this.#keyOf(mailbox, trackingId));
    return known?.values().next().value;
  }

  has(mailbox: string, trackingId: string, password: Secret): boolean {
    const known = this.#passwords.get(this.#keyOf(mailbox, trackingId));
    return [...(known?.values() ?? [])].some((it) => it.reveal() === password.reveal());
  }

  /** The service refuses it after all, for whichever mailbox. */
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
