/**
 * The client of a transfer service.
 *
 * Every method but `listReceived` sends one request, or two if an older service uses another path. None retries: the
 * caller knows whether a retry is safe. Every failure is a `Fault`. `signal` aborts the request with the fault `STOPPED`.
 * Secrets are passed as `Secret`, and sent only to the configured origin.
 */
import type { Secret } from "../base/secret.ts";
import type { ListedTransfer, TransferFile, TransferInformation } from "../model/transfer.ts";
import type { ChecksumReport } from "./checksums.ts";
import type * as wire from "./wire.ts";

export type { ChecksumRow } from "./checksums.ts";
export type { Page, Rejected } from "./wire.ts";

/** An address with the token that proves its ownership. */
export interface VerifiedAddress {
  readonly email: string;
  readonly token: Secret;
}

/** Gives access to a transfer. Only some transfers can be opened without a password. */
export interface TransferAccess {
  readonly transferId: string;
  readonly password: Secret | undefined;
}

export interface PageQuery {
  /** Counted from 1. */
  readonly page?: number;
  /** At most 100; the service may send less. */
  readonly pageSize?: number;
}

export interface PollQuery extends PageQuery {
  /** `true`: only active transfers; `false`: only inactive ones; missing: both. */
  readonly active?: boolean;
  /** An expression such as `trackingId,status(state)`. Missing: the service's default. */
  readonly fields?: string | undefined;
  /** Adds to each entry, as `raw`, what the service sent, without links and secrets. */
  readonly keepRaw?: boolean;
}

/** The point at which to continue a partial download. */
interface ResumePoint {
  readonly offset: number;
  /** Without it a changed file goes unnoticed: the caller must hash the whole file. */
  readonly etag?: string;
}

export interface DownloadOptions {
  /** A longer body fails with `SIZE_MISMATCH`. Includes the bytes that `resume` skips. */
  readonly maxBytes?: number;
}

export interface FileOptions extends DownloadOptions {
  /** The service may ignore it: check `offset` of the download. */
  readonly resume?: ResumePoint;
}

/** File-ids in a query: one parameter for each, or one with commas. The specification does not say. */
export type IdListForm = "repeat" | "comma";

export interface ZipOptions extends DownloadOptions {
  readonly includeChecksumFile?: boolean;
  /** Only these files, or all but these. */
  readonly only?: readonly string[];
  readonly except?: readonly string[];
}

interface EmlOptions extends DownloadOptions {
  /** The list announces a message: also try the path of older services. */
  readonly isExpected?: boolean;
  /** The largest size of the EML; without it every file is attached. */
  readonly thresholdMegabytes?: number;
}

/** A body that is being received. Read it to its end or call `cancel`: both free the connection. */
export interface Download {
  /** The offset of the body's first byte: 0, or the one of `resume`. */
  readonly offset: number;
  /** The size of the whole file, if the service sends it. */
  readonly totalBytes: number | undefined;
  readonly etag: string | undefined;
  /** The service can send a part of it. */
  readonly canResume: boolean;
  readonly contentType: string | undefined;
  /** Throws a `Fault`, also if it is too slow or shorter than announced. */
  readonly body: AsyncIterable<Uint8Array>;
  cancel(): void;
}

export interface ServicePort {
  /** Made from its base URL. Equal for all clients of the service. */
  readonly id: string;

  pollReceived(
    address: VerifiedAddress,
    query: PollQuery,
    signal: AbortSignal,
  ): Promise<wire.Page<ListedTransfer>>;
  /**
   * Yields each received transfer once, page by page, except those that `isKnown` names by tracking-id. Entries that cannot
   * be decoded go to `onRejected`. The list is complete only if the iteration ends without a fault.
   */
  listReceived(
    address: VerifiedAddress,
    query: Omit<PollQuery, keyof PageQuery>,
    onRejected: (entry: wire.Rejected) => void,
    signal: AbortSignal,
    isKnown?: (trackingId: string) => boolean,
  ): AsyncIterable<readonly ListedTransfer[]>;
  pollSent(
    address: VerifiedAddress,
    query: PollQuery,
    signal: AbortSignal,
  ): Promise<wire.Page<ListedTransfer>>;
  /** Deprecated: exists in versions 1.x only. */
  pollSentLegacy(
    address: VerifiedAddress,
    query: PageQuery,
    signal: AbortSignal,
  ): Promise<wire.Page<wire.LegacyTransfer>>;

  information(access: TransferAccess, signal: AbortSignal): Promise<TransferInformation>;
  /** `onCount` is called with the number of files after each, and may throw to stop. */
  files(
    access: TransferAccess,
    signal: AbortSignal,
    onCount?: (count: number) => void,
  ): Promise<readonly TransferFile[]>;
  openFile(
    access: TransferAccess,
    file: Pick<TransferFile, "id" | "name">,
    options: FileOptions,
    signal: AbortSignal,
  ): Promise<Download>;
  openZip(access: TransferAccess, options: ZipOptions, signal: AbortSignal): Promise<Download>;
  /** Throws `NOT_FOUND` if the transfer has no confidential message. */
  openEml(access: TransferAccess, options: EmlOptions, signal: AbortSignal): Promise<Download>;
  openChecksums(access: TransferAccess, signal: AbortSignal): Promise<Download>;
  /** The checksums CSV, parsed and matched to the file list. Requested before the list has arrived; throws its failure. */
  checksums(
    access: TransferAccess,
    files: readonly TransferFile[] | Promise<readonly TransferFile[]>,
    signal: AbortSignal,
  ): Promise<ChecksumReport>;

  generatePassword(signal: AbortSignal): Promise<Secret>;
  checkPassword(password: Secret, signal: AbortSignal): Promise<wire.PasswordCheck>;
  passwordRules(signal: AbortSignal): Promise<readonly wire.PasswordPolicyRule[]>;

  languagePacks(majorVersion: number | undefined, signal: AbortSignal): Promise<readonly wire.LanguagePack[]>;
  languagePack(id: string, signal: AbortSignal): Promise<wire.LanguagePack>;
  openLanguageFile(packId: string, path: string, signal: AbortSignal): Promise<Download>;

  /** With a token: whether that token is still valid. */
  verification(
    email: string,
    token: Secret | undefined,
    signal: AbortSignal,
  ): Promise<wire.VerificationStatus>;
  /** Makes the service send a code to the address. */
  mailVerificationCode(email: string, signal: AbortSignal): Promise<void>;
  /** Without a code the client id must be registered by an administrator. */
  obtainToken(email: string, code: Secret | undefined, signal: AbortSignal): Promise<wire.VerificationToken>;
  /** A new client id, made by the service. */
  requestClientId(signal: AbortSignal): Promise<Secret>;

  /** `undefined` for a service before version 1.13. */
  apiVersions(signal: AbortSignal): Promise<readonly wire.ApiVersion[] | undefined>;

  /** The number of requests without a password that the service has answered in its own format. */
  ownAnswers(): number;
  /** How far our clock is ahead of the service's by its last answer; `undefined` without a recent answer. */
  clockAheadMs(): number | undefined;

  /** Closes idle connections at once, busy ones when they are done, and all after some seconds. */
  close(): Promise<void>;
}
