/** Finding and proving the password of a transfer, without ever spending more attempts than allowed. */
import type { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { Receipt } from "../model/receipt.ts";

/** What a password is looked for by. */
export interface PasswordQuery {
  readonly trackingId: string;
  readonly sender: string;
  /** The link for people, which carries the password where the sender chose none. */
  link(): Promise<Secret | undefined>;
}

export interface ProofRequest<Value> {
  readonly mailbox: Mailbox;
  readonly query: PasswordQuery;
  readonly receipt: Receipt;
  /** Makes a receipt durable. */
  save(receipt: Receipt): Promise<void>;
  /** One request that needs the password; throws a fault, `PASSWORD_REFUSED` among them. */
  send(password: Secret): Promise<Value>;
}

export type Proof<Value> =
  | { readonly kind: "accepted"; readonly password: Secret; readonly value: Value; readonly receipt: Receipt }
  /** Nothing is left to try: `message` says why, and what a person can do. */
  | { readonly kind: "waiting"; readonly message: string; readonly receipt: Receipt };

export interface Passwords {
  /**
   * Tries candidates one after the other, each alone: what was accepted before, what a person dropped, what the link
   * carries, what rules say. An attempt is written down as spent before it is sent, and a refused one is never sent
   * again. A fault that is not about the password is thrown; what was spent on it stays spent unless an answer came.
   */
  prove<Value>(request: ProofRequest<Value>, signal: AbortSignal): Promise<Proof<Value>>;
  /** Whether somebody has dropped a password for it. */
  isDropped(trackingId: string): Promise<boolean>;
  /** Forgets what was kept for a transfer that is delivered, quarantined or gone. */
  settled(mailbox: Mailbox, trackingId: string): Promise<void>;
  /** Forgets everything but what was kept for these: a crash may have come before `settled`. */
  forgetOthers(
    unsettled: readonly { readonly mailbox: string; readonly trackingId: string }[],
  ): Promise<void>;
}
