/**
 * Transfers, independent of the service's wire format.
 *
 * A sender's *transfer* is identified by its tracking-id. Each recipient has a *transfer-id* of its own, and opens the
 * transfer with that id and the transfer's password. Ids are opaque text.
 */
import { hash } from "node:crypto";
import * as v from "valibot";
import { composed } from "../base/fold-name.ts";
import { Secret } from "../base/secret.ts";

/**
 * The service's states of a transfer, and what each means for us. `open`: it can be opened. `later`: it is not ready yet.
 * `gone`: the service no longer has it. `unknown` is any other word, or none. Polls request only active transfers, so an
 * unknown word does not prevent that a transfer is opened.
 */
export const TRANSFER_STATES = {
  active: "open",
  unknown: "open",
  processing: "later",
  pending: "later",
  failed: "gone",
  deleted_by_expiration: "gone",
  deleted_by_revocation: "gone",
  deleted_by_admin: "gone",
  deleted_by_security: "gone",
} as const satisfies Readonly<Record<string, "open" | "later" | "gone">>;

export type TransferState = keyof typeof TRANSFER_STATES;

export interface Recipient {
  readonly mail: string;
  /** Missing if the service withholds it. */
  readonly transferId: string | undefined;
  /** The link for people. With password mode `NONE` it carries the password. */
  readonly downloadUrl: Secret | undefined;
}

/**
 * What the service says of a field. `none`: that there is none. `unknown`: nothing, because it was not asked, did not answer,
 * or an intermediary has removed the field. Unknown never means "no".
 */
export type ListedField<Value> =
  | { readonly is: "given"; readonly value: Value }
  | { readonly is: "none" | "unknown" };

const Addresses = v.optional(v.pipe(v.array(v.string()), v.readonly()));

/** The addresses that a transfer was sent to. A missing list is unknown, an empty one is that of none. */
export const AddresseesShape = v.object({
  to: Addresses,
  cc: Addresses,
  /** How many more there are: too many to keep, or not given. */
  more: v.optional(v.number()),
});

export type Addressees = Readonly<v.InferOutput<typeof AddresseesShape>>;

/** One entry of a polling answer. Fields that were withheld, or not selected, are missing. */
export interface ListedTransfer {
  readonly trackingId: string;
  readonly state: TransferState;
  readonly sender: string | undefined;
  readonly recipients: readonly Recipient[];
  /** All of them, whether they are shown in `recipients` or not. */
  readonly addressees: Addressees;
  /** Of the files whose state it shows. */
  readonly removed: readonly RemovedFile[];
  readonly expires: Date | undefined;
  /** `GENERATED`, `MANUAL`, `NONE`, or a word of a later version. */
  readonly passwordMode: string | undefined;
  /** `ONE_TIME_PASSWORD`, or how else recipients prove who they are. A list never says that there is none: see `createModeFinder`. */
  readonly securityMode: ListedField<string>;
  /** Untrusted, and missing unless the service shows it in its lists. */
  readonly subject?: string | undefined;
  /** The confidential message, with the id of its file if that can be read. Recipients without access get `none`, too. */
  readonly message: ListedField<string | undefined>;
  /** What the service sent, without links and secrets, only if the query asks to keep it. */
  readonly raw?: unknown;
}

/** A file that the service no longer gives out. Both texts may be empty: the service need not tell. */
export interface RemovedFile {
  readonly id: string;
  /** For people. Untrusted text. */
  readonly cause: string;
}

export interface TransferInformation {
  readonly totalBytes: number;
  /** As the service spells it; missing or empty if checksums are switched off. */
  readonly algorithm: string | undefined;
}

export interface TransferFile {
  readonly id: string;
  readonly name: string;
  readonly bytes: number;
  /** Missing if checksums are switched off. */
  readonly checksum: string | undefined;
}

/** Finds a recipient by address, ignoring case and Unicode form. */
export function findRecipient(recipients: readonly Recipient[], address: string): Recipient | undefined {
  const wanted = canonicalAddress(address);
  return recipients.find((recipient) => canonicalAddress(recipient.mail) === wanted);
}

declare const folded: unique symbol;

/** Identifies a mailbox: its name in one spelling. Text from a file, a job or a person becomes an id where it enters. */
export type MailboxId = string & { readonly [folded]: true };

export function mailboxIdOf(name: string): MailboxId {
  return canonicalAddress(name) as MailboxId;
}

/** Names the files of a mailbox. */
export function digestOfMailbox(name: string): string {
  return hash("sha256", mailboxIdOf(name), "hex").slice(0, 32);
}

/** One spelling for all spellings of an address: case and Unicode form do not matter. */
export function canonicalAddress(address: string): string {
  return composed(address.trim()).toLowerCase();
}

/**
 * Whether Inlet may send a password by itself. In any other mode it could be a wrong authentication, which counts towards
 * the deletion of the transfer.
 */
export function takesAnyPassword(mode: ListedField<string>): boolean {
  return mode.is === "given" ? /^one[^a-z]*time[^a-z]*password$/i.test(mode.value) : mode.is === "none";
}

/** The link of a transfer without a password of its own is `…/download?id=…&password=…`. */
export function passwordOfLink(link: Secret): Secret | undefined {
  const address = withoutSession(link.reveal());
  const password = URL.parse(address, "https://service.invalid")?.searchParams.get("password");
  return password ? new Secret(password) : undefined;
}

/** Removes the id of a web session, which gives access like a password. */
export function withoutSession(address: string): string {
  return address.replace(/;jsessionid=[^/?#&;]*/gi, "");
}
