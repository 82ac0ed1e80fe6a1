/**
 * What the rest of the program may ask of a transfer service.
 *
 * Every method sends one request (two where an older service keeps a path elsewhere) and never retries: who calls
 * knows whether a repetition is safe. Every failure is a `Fault`. `signal` ends the request, with the fault
 * `STOPPED`. Secrets come in as `Secret` and leave only in the headers of requests to the configured origin.
 */
import type { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { ListedTransfer, TransferFile, TransferInformation, TransferState } from "../model/transfer.ts";
import type { ChecksumReport } from "./checksums.ts";
import type { FieldSelection, FieldTree } from "./fields.ts";

/** An address with the token that proves it is ours. */
export interface VerifiedAddress {
  readonly email: string;
  readonly token: Secret;
}

/** What opens a transfer. Without a password none is sent, which only some transfers allow. */
export interface TransferAccess {
  readonly transferId: string;
  readonly password: Secret | undefined;
}

export interface PageQuery {
  /** Counted from 1. */
  readonly page?: number;
  /** At most 100; the service may give less. */
  readonly pageSize?: number;
}

export interface PollQuery extends PageQuery {
  /** `true`: only active transfers; `false`: only inactive ones; missing: both. */
  readonly active?: boolean;
  /** Missing: the service's own default. */
  readonly fields?: FieldSelection | FieldTree;
  /** Keeps what `fields` names and the model does not hold in `more` of each entry. */
  readonly keepMore?: boolean;
}

/** One page of a list. An entry that cannot be understood is rejected alone, so that it never hides the others. */
export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** The tracking-ids of those that were known before, and not looked at. */
  readonly known: readonly string[];
  readonly rejected: readonly Rejected[];
}

/** An entry of a list that cannot be understood. */
export interface Rejected {
  readonly fault: Fault;
  /** Missing where not even that can be read. */
  readonly trackingId: string | undefined;
}

/** An entry of the deprecated list of sent transfers. */
export interface LegacyTransfer {
  readonly trackingId: string;
  readonly state: TransferState;
  readonly recipients: ListedTransfer["recipients"];
  /** Of its status at the service; without its query where that may hold a secret. */
  readonly href: string | undefined;
}

/** Where to go on with a body of which a part is already there. */
interface ResumePoint {
  readonly offset: number;
  /** Without it a changed file cannot be told from the same one: who resumes must hash the whole. */
  readonly etag?: string;
}

export interface DownloadOptions {
  /** The body fails with `SIZE_MISMATCH` as soon as it is longer (counting what `resume` skips). */
  readonly maxBytes?: number;
}

export interface FileOptions extends DownloadOptions {
  /** A service may ignore it: look at `offset` of what comes back. */
  readonly resume?: ResumePoint;
}

/** How a list of file-ids is written in a query, which the interface does not say: a parameter for each, or one with commas. */
export type IdListForm = "repeat" | "comma";

export interface ZipOptions extends DownloadOptions {
  readonly includeChecksumFile?: boolean;
  /** Only these files, or all but these. */
  readonly only?: readonly string[];
  readonly except?: readonly string[];
  /** In place of the configured form. */
  readonly idListForm?: IdListForm;
}

interface EmlOptions extends DownloadOptions {
  /** The list says that there is one: it is also looked for where an older service keeps it. */
  readonly isExpected?: boolean;
  /** Largest size of the EML, in megabytes; without it every file is attached. */
  readonly thresholdMegabytes?: number;
}

/** A body that is being received. Read it to its end or call `cancel`: either gives the connection back. */
export interface Download {
  /** Where in the whole the first byte of this body stands: 0, or what `resume` asked for. */
  readonly offset: number;
  /** The size of the whole, where the service says it. */
  readonly totalBytes: number | undefined;
  readonly etag: string | undefined;
  /** The service says that it can send a part of it. */
  readonly canResume: boolean;
  readonly contentType: string | undefined;
  /** Fails with a `Fault`, also when it barely moves, or ends before its announced length. */
  readonly body: AsyncIterable<Uint8Array>;
  cancel(): void;
}

export interface PasswordRule {
  readonly name: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface PasswordCheck {
  readonly valid: boolean;
  readonly broken: readonly PasswordRule[];
}

export interface LanguagePack {
  readonly id: string;
  readonly displayName: string;
  readonly locale: string;
  readonly version: string;
  readonly changed: Date | undefined;
  /** Of its resources at the service; without its query where that may hold a secret. */
  readonly href: string | undefined;
}

export interface VerificationStatus {
  readonly verified: boolean;
  readonly validUntil: Date | undefined;
  /** In small letters, `clientid` and `email` as far as known. */
  readonly methods: readonly string[];
}

export interface VerificationToken {
  readonly token: Secret;
  readonly validUntil: Date | undefined;
}

export interface ApiVersion {
  readonly major: number;
  readonly minor: number;
}

export interface ServicePort {
  /** Where every request goes. */
  readonly origin: string;

  pollReceived(
    address: VerifiedAddress,
    query: PollQuery,
    signal: AbortSignal,
  ): Promise<Page<ListedTransfer>>;
  /**
   * Every received transfer once, page by page; entries that cannot be understood go to `onRejected`. The list is
   * complete only where the iteration ends without a fault. `isKnown` is asked for the tracking-id of each; those for which
   * it says so are not looked at and not given.
   */
  listReceived(
    address: VerifiedAddress,
    query: Omit<PollQuery, keyof PageQuery>,
    onRejected: (entry: Rejected) => void,
    signal: AbortSignal,
    isKnown?: (trackingId: string) => boolean,
  ): AsyncIterable<readonly ListedTransfer[]>;
  pollSent(address: VerifiedAddress, query: PollQuery, signal: AbortSignal): Promise<Page<ListedTransfer>>;
  /** Deprecated: exists in versions 1.x only. */
  pollSentLegacy(
    address: VerifiedAddress,
    query: PageQuery,
    signal: AbortSignal,
  ): Promise<Page<LegacyTransfer>>;

  information(access: TransferAccess, signal: AbortSignal): Promise<TransferInformation>;
  /** `onCount` gets the number of files after each, and may throw to end it. */
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
  /** `NOT_FOUND` where the transfer holds no confidential message. */
  openEml(access: TransferAccess, options: EmlOptions, signal: AbortSignal): Promise<Download>;
  openChecksums(access: TransferAccess, signal: AbortSignal): Promise<Download>;
  /** The checksums CSV, understood and matched to the file list. */
  checksums(
    access: TransferAccess,
    files: readonly TransferFile[],
    signal: AbortSignal,
  ): Promise<ChecksumReport>;

  generatePassword(signal: AbortSignal): Promise<Secret>;
  checkPassword(password: Secret, signal: AbortSignal): Promise<PasswordCheck>;
  passwordRules(signal: AbortSignal): Promise<readonly PasswordRule[]>;

  languagePacks(majorVersion: number | undefined, signal: AbortSignal): Promise<readonly LanguagePack[]>;
  languagePack(id: string, signal: AbortSignal): Promise<LanguagePack>;
  openLanguageFile(packId: string, path: string, signal: AbortSignal): Promise<Download>;

  /** With a token: whether that token still counts. */
  verification(email: string, token: Secret | undefined, signal: AbortSignal): Promise<VerificationStatus>;
  /** Has the service mail a code to the address. */
  mailVerificationCode(email: string, signal: AbortSignal): Promise<void>;
  /** Without a code: on the strength of the client id, which an administrator has registered. */
  obtainToken(email: string, code: Secret | undefined, signal: AbortSignal): Promise<VerificationToken>;
  /** A client id made by the service. */
  requestClientId(signal: AbortSignal): Promise<Secret>;

  /** The versions that the service speaks; `undefined` where it is too old to say (before 1.13). */
  apiVersions(signal: AbortSignal): Promise<readonly ApiVersion[] | undefined>;
  /** What its clock says, to the second; `undefined` where it does not tell. */
  serverTime(signal: AbortSignal): Promise<Date | undefined>;

  /** How many requests without a password it has answered in its own format. */
  ownAnswers(): number;
  /** By how much our clock is ahead of the service's, as its last answer said; `undefined` where none did lately. */
  clockAheadMs(): number | undefined;

  /** Ends idle connections at once, busy ones when they are done, and all after some seconds. */
  close(): Promise<void>;
}
