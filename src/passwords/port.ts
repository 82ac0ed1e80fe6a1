/** Finds and proves the password of a transfer, and never spends more attempts than allowed. */
import type { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { PasswordObstacle, TransferRecord } from "../model/record.ts";
import type { Drop } from "./stored.ts";

/** The client of the service that a password goes to: a service may have several clients. */
export interface PasswordService {
  readonly id: string;
  /** How many requests without a password the service itself has answered, for this client. */
  ownAnswers(): number;
}

export interface PasswordRequest {
  readonly mailbox: Mailbox;
  readonly service: PasswordService;
  readonly record: TransferRecord;
  /** The listed link, which carries a password if the sender chose none. */
  link(): Promise<Secret | undefined>;
}

export interface ProofRequest<Value> extends PasswordRequest {
  /** One request with the password, or without one for `NO_PASSWORD`. Throws faults, `PASSWORD_REFUSED` among them. */
  send(password: Secret): Promise<Value>;
  /** Sends one request without a password. Throws faults. */
  probe(): Promise<void>;
  onRefused(): void;
}

export type Proof<Value> =
  | { readonly kind: "accepted"; readonly password: Secret; readonly value: Value }
  /** No candidate is left: `message` says why, and what a person can do. */
  | { readonly kind: "waiting"; readonly message: string; readonly obstacle: PasswordObstacle };

/** The other mailboxes of the same service that received a transfer: one password opens it for all of them. */
export interface CoRecipients {
  /** The id of a mailbox's service. */
  serviceOf(mailbox: string): string;
  /** The `passwordAttempts` of each co-recipient whose round is open, as far as records can be read. */
  openBudgets(mailbox: string, trackingId: string): Promise<readonly number[]>;
  /** Whether a mailbox of another service has an open transfer of the same tracking-id. */
  isElsewhere(mailbox: string, trackingId: string): Promise<boolean>;
}

export interface Passwords {
  /**
   * Tries candidates one after the other, each alone: accepted before, dropped by a person, carried by the link, named
   * by a rule; the last two only if the security mode allows that. An attempt is counted before it is sent. A refused password is never sent again, for any mailbox of the
   * service. Any other fault is thrown; the attempt stays counted unless the service itself says that it cost nothing.
   * Throws `PASSWORDS_HELD` while answers to attempts are being lost.
   */
  prove<Value>(request: ProofRequest<Value>, signal: AbortSignal): Promise<Proof<Value>>;
  /** A request failed, and not by the service's own answer: it must answer one before another password is sent. */
  doubt(service: PasswordService): void;
  /** The service refuses a password that it accepted before: this counts as one more attempt. */
  refusedLater(request: PasswordRequest): Promise<void>;
  /**
   * Whether a further attempt would change nothing for a transfer that waits for its password. Changes nothing. Throws
   * `SECRET_UNREADABLE` if a rule's secret cannot be read.
   */
  isIdle(request: PasswordRequest, signal: AbortSignal): Promise<boolean>;
  /**
   * A mark that changes with each supplied password. `undefined` if there is no supplied password, or the service has
   * refused all of them.
   */
  supplied(mailbox: Mailbox, trackingId: string): Promise<string | undefined>;
  /** Removes accepted passwords of transfers that have expired. */
  forgetExpired(): Promise<void>;
  /** Removes dropped passwords of settled transfers. Passwords for transfers that are still to come stay. */
  forgetDropped(isSettled: (drop: Drop) => Promise<boolean>): Promise<void>;
}
