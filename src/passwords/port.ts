/** Finding and proving the password of a transfer, without ever spending more attempts than allowed. */
import type { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { PasswordObstacle, TransferRecord } from "../model/record.ts";
import type { PasswordGoal } from "./breaker.ts";
import type { Drop } from "./dropped.ts";

/** What a password is looked for by. */
interface PasswordQuery {
  readonly trackingId: string;
  readonly sender: string;
  /** The link for people, which carries the password where the sender chose none. */
  link(): Promise<Secret | undefined>;
  /** The sender chose no password. */
  readonly hasNone: boolean;
}

export interface WaitingRequest {
  readonly mailbox: Mailbox;
  /** Of its service. */
  readonly origin: string;
  readonly query: PasswordQuery;
  readonly record: TransferRecord;
}

export interface ProofRequest<Value> extends WaitingRequest, PasswordGoal {
  /** One request with the password, or without one for `NO_PASSWORD`. Throws faults, `PASSWORD_REFUSED` among them. */
  send(password: Secret): Promise<Value>;
  onRefused(): void;
}

export type Proof<Value> =
  | { readonly kind: "accepted"; readonly password: Secret; readonly value: Value }
  /** Nothing is left to try: `message` says why, and what a person can do. */
  | { readonly kind: "waiting"; readonly message: string; readonly obstacle: PasswordObstacle };

/** Another mailbox that has received the same transfer, and has not ended it. */
interface CoRecipient {
  readonly record: TransferRecord;
  /** How many wrong passwords the transfer may cost, as that mailbox is configured. */
  readonly passwordAttempts: number;
}

/** The other mailboxes of the same service that received a transfer: one password opens it for all of them. */
export interface CoRecipients {
  /** The origin of a mailbox's service. */
  serviceOf(mailbox: string): string;
  /** Those whose round is open, as far as records can be read. */
  open(mailbox: string, trackingId: string): Promise<readonly CoRecipient[]>;
  /** Whether a mailbox of another service has an open transfer of the same tracking-id. */
  isElsewhere(mailbox: string, trackingId: string): Promise<boolean>;
}

export interface Passwords {
  /**
   * Tries candidates one after the other, each alone: what was accepted before, what a person dropped, what the link
   * carries, what rules say. An attempt is counted before it is sent, and a refused password is never sent again, for
   * whichever mailbox of the service. A fault that is not about the password is thrown; the attempt stays counted unless
   * the service itself says that it cost nothing. Throws `PASSWORDS_HELD` while the service leaves verdicts open.
   */
  prove<Value>(request: ProofRequest<Value>, signal: AbortSignal): Promise<Proof<Value>>;
  /** A request to the service failed, and not by its own word: it must answer before another password is sent. */
  doubt(goal: Pick<PasswordGoal, "origin" | "client" | "ownAnswers">): void;
  /** The service refuses a password that it had accepted, in another request: it counts as one more attempt. */
  refusedLater(request: WaitingRequest): Promise<void>;
  /**
   * Whether a transfer that waits for a password would only go on waiting for the same reason. Changes nothing. Throws as
   * finding a password does.
   */
  isIdle(request: WaitingRequest, signal: AbortSignal): Promise<boolean>;
  /**
   * Names what somebody has supplied for it and was not refused: something else, or the same once more, has another name.
   * `undefined` where there is nothing.
   */
  supplied(mailbox: Mailbox, trackingId: string): Promise<string | undefined>;
  /** The round of a transfer has ended. An accepted password is kept until the transfer expires. */
  settled(mailbox: Mailbox, trackingId: string): void;
  /** Removes accepted passwords of transfers that have expired. */
  forgetExpired(): Promise<void>;
  /** Removes dropped passwords that came too late; those for transfers that are still to come stay. */
  forgetDropped(isSettled: (drop: Drop) => Promise<boolean>): Promise<void>;
}
