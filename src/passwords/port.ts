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

export interface WaitingRequest {
  readonly mailbox: Mailbox;
  readonly query: PasswordQuery;
  readonly receipt: Receipt;
}

export interface ProofRequest<Value> extends WaitingRequest {
  /** Makes a receipt durable. */
  save(receipt: Receipt): Promise<void>;
  /** One request that needs the password; throws a fault, `PASSWORD_REFUSED` among them. */
  send(password: Secret): Promise<Value>;
}

export type Proof<Value> =
  | { readonly kind: "accepted"; readonly password: Secret; readonly value: Value; readonly receipt: Receipt }
  /** Nothing is left to try: `message` says why, and what a person can do. */
  | {
      readonly kind: "waiting";
      readonly message: string;
      /** Not even a person's password would be sent. */
      readonly noAttemptsLeft: boolean;
      readonly receipt: Receipt;
    };

/** Another mailbox that has received the same transfer. */
interface Fellow {
  readonly receipt: Receipt;
  /** How many wrong passwords the transfer may cost, by the word of that mailbox. */
  readonly passwordAttempts: number;
}

/**
 * The other mailboxes of the same service: a service counts wrong passwords over all recipients of a transfer, and one
 * password opens it for all of them.
 */
export interface Fellows {
  /** The same for all mailboxes of one service. */
  serviceOf(mailbox: string): string;
  /** Their receipts that have passwords spent on the transfer; all that were durable when this was called. */
  spentOn(mailbox: string, trackingId: string): Promise<readonly Receipt[]>;
  /** Those of them that have not settled the transfer, as far as their receipts can be read. */
  unsettled(mailbox: string, trackingId: string): Promise<readonly Fellow[]>;
}

export interface Passwords {
  /**
   * Tries candidates one after the other, each alone: what was accepted before, what a person dropped, what the link
   * carries, what rules say. An attempt is written down as spent before it is sent, and a refused one is never sent
   * again, for whichever mailbox of the service. A fault that is not about the password is thrown; what was spent on it
   * stays spent unless an answer came. Throws `ATTEMPT_ELSEWHERE` where another process spends the attempt.
   */
  prove<Value>(request: ProofRequest<Value>, signal: AbortSignal): Promise<Proof<Value>>;
  /**
   * Whether a transfer that waits for a password would only go on waiting for the same reason: then there is nothing to
   * try, to put away or to tell. Changes nothing. Throws as finding a password does.
   */
  isIdle(request: WaitingRequest, signal: AbortSignal): Promise<boolean>;
  /**
   * Names what somebody has supplied for it and was not refused: something else, or the same once more, has another name.
   * `undefined` where there is nothing.
   */
  supplied(mailbox: Mailbox, trackingId: string): Promise<string | undefined>;
  /** Forgets what was kept, and what nobody needs of what was dropped, for one that is delivered, quarantined or gone. */
  settled(mailbox: Mailbox, trackingId: string): Promise<void>;
  /** Forgets everything but what was kept for these: a crash may have come before `settled`. */
  forgetOthers(
    unsettled: readonly { readonly mailbox: string; readonly trackingId: string }[],
  ): Promise<void>;
  /** Takes dropped passwords away that came too late; what was dropped for a transfer that is still to come stays. */
  forgetDropped(isSettled: (trackingId: string) => Promise<boolean>): Promise<void>;
}
