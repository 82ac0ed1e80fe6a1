/** What it takes to find and prove the password of a transfer. */
import type { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { PasswordObstacle, TransferRecord } from "../model/record.ts";

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
  /** Whether a mailbox of another service has, or had, a transfer of the same tracking-id. */
  isElsewhere(mailbox: string, trackingId: string): Promise<boolean>;
}
