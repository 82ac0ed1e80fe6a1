/**
 * Transfers as Inlet sees them, free of how the service spells them.
 *
 * Words: a *transfer* is what a sender sent, known by its tracking-id. Each recipient of it has a *transfer-id*
 * of its own, and opens the transfer with that and the transfer's password. Ids are opaque text.
 */
import { Secret } from "../base/secret.ts";

export const TRANSFER_STATES = [
  "active",
  "deleted_by_expiration",
  "deleted_by_revocation",
  "deleted_by_admin",
  "deleted_by_security",
  "processing",
  "failed",
] as const;

/** What the service says of a transfer; `unknown` for any word that this program does not know. */
export type TransferState = (typeof TRANSFER_STATES)[number] | "unknown";

export interface Recipient {
  readonly mail: string;
  /** Missing where the service withholds it. */
  readonly transferId: string | undefined;
  /** The link for people; it carries the password where the password mode is `NONE`. */
  readonly downloadUrl: Secret | undefined;
}

/** One entry of a polling answer. What was not selected, or withheld, is missing. */
export interface ListedTransfer {
  readonly trackingId: string;
  readonly state: TransferState;
  readonly sender: string | undefined;
  readonly recipients: readonly Recipient[];
  readonly to: readonly string[];
  readonly cc: readonly string[];
  readonly expires: Date | undefined;
  /** `GENERATED`, `MANUAL`, `NONE`, or a word of a later version. */
  readonly passwordMode: string | undefined;
  /** Of the confidential message. `none` is also said to those who may not know. */
  readonly messageFile: "present" | "none" | undefined;
  /** Further fields as the service sent them, only where they were asked for. */
  readonly more?: unknown;
}

export interface TransferInformation {
  readonly totalBytes: number;
  /** As the service spells it; missing or empty where checksums are switched off. */
  readonly algorithm: string | undefined;
}

export interface TransferFile {
  readonly id: string;
  readonly name: string;
  readonly bytes: number;
  /** Missing where checksums are switched off. */
  readonly checksum: string | undefined;
}

/** Finds the entry of an address among the recipients, whatever the case of its letters and their order. */
export function findRecipient(recipients: readonly Recipient[], address: string): Recipient | undefined {
  const wanted = canonicalAddress(address);
  return recipients.find((recipient) => canonicalAddress(recipient.mail) === wanted);
}

/** One spelling for all spellings of an address: case and Unicode form do not tell mailboxes apart. */
export function canonicalAddress(address: string): string {
  return address.trim().normalize("NFC").toLowerCase();
}

/** With no password of its own, a transfer's link for people reads `…/download?id=…&password=…`. */
export function passwordOfLink(link: Secret): Secret | undefined {
  const password = URL.parse(link.reveal(), "https://service.invalid")?.searchParams.get("password");
  return password ? new Secret(password) : undefined;
}
