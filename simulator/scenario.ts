/**
 * Scenarios: the transfers and faults of a simulated service as plain values, for tests in the same process, scenario
 * files (JSON) and the control interface.
 */

/** A simulated service; every key has a sensible default. */
export interface Scenario {
  /** Makes ids, passwords and generated content reproducible. Default 1. */
  readonly seed?: number;
  /** Its REST API version, "major.minor". Default "1.15". */
  readonly apiVersion?: string;
  /** The client id that is registered for every address. Default: derived from the seed. */
  readonly clientId?: string;
  /** How long a verification token is valid. Default one day. */
  readonly tokenSeconds?: number;
  /** The reaction to too many wrong passwords. Default: five delete the transfer. */
  readonly wrongPasswords?: WrongPasswordReaction;
  /** Days after which expired transfers disappear from every list. Default 30. */
  readonly retentionDays?: number;
  /** The largest page, whatever is requested. Default 100. */
  readonly maxPageSize?: number;
  /** The format of the checksums CSV. */
  readonly csv?: CsvStyle;
  /** The password rules. Default: a typical set. */
  readonly passwordRules?: PasswordRules;
  /** Serves ZIP, EML and checksums only under `/files/zip`, `/files/eml`, `/files/checksums`. Default false. */
  readonly oldPaths?: boolean;
  /** Whether lists show that there is a confidential message. Default true. */
  readonly showsMessage?: boolean;
  /**
   * For transfers with password mode `NONE`: the link carries the password (`link`, the default), no password is needed
   * (`open`), or one is needed and the link lacks it (`withheld`).
   */
  readonly noPassword?: "link" | "open" | "withheld";
  /** The reaction to fields that the interface does not document. Default `select`. */
  readonly otherFields?: "select" | "refuse";
  /** Lists contain transfers in every state, although only active ones are requested. Default false. */
  readonly ignoresActive?: boolean;
  /** Answers a threshold that is not a whole number with 404, as some frameworks do. Default false. */
  readonly wholeThreshold?: boolean;
  /** Puts the id of a web session into the download links. Default false. */
  readonly sessionLinks?: boolean;
  /** How many codes an address gets in 15 minutes. Default: no limit. */
  readonly codesPerAddress?: number;
  readonly languagePacks?: readonly LanguagePackPlan[];
  readonly transfers?: readonly TransferPlan[];
  readonly faults?: readonly FaultPlan[];
}

interface WrongPasswordReaction {
  readonly limit: number;
  readonly reaction: "delete" | "lock";
  /** For `lock`: how long the transfer-id stays locked. Default 600. */
  readonly lockSeconds?: number;
}

export interface CsvStyle {
  readonly delimiter?: "," | ";" | "\t";
  /** `all` quotes every cell, `minimal` only cells that need it, `none` no cell. Default `minimal`. */
  readonly quote?: "all" | "minimal" | "none";
  readonly byteOrderMark?: boolean;
  readonly charset?: "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";
  /** Whether Content-Type names the charset. Default true. */
  readonly announceCharset?: boolean;
  readonly lineEnd?: "\n" | "\r\n" | "\r";
  /** `shown` (default), `empty` (the label without a value) or `missing` (no subject line). */
  readonly subject?: "shown" | "empty" | "missing";
}

/** Rules by their name in the interface; missing ones do not apply. */
export interface PasswordRules {
  readonly whitespacesDeclined?: true;
  readonly alphabeticalSequenceDeclined?: true;
  readonly numericSequenceDeclined?: true;
  readonly keyboardSequenceDeclined?: true;
  /** The forbidden characters, or `true` for some that often are. */
  readonly blacklistedCharactersDeclined?: true | string;
  readonly repeatedCharactersDeclined?: true;
  readonly dictionaryWordsDeclined?: true;
  readonly minimumLengthRequired?: number;
  readonly maximumLengthRequired?: number;
  readonly lettersRequired?: true;
  readonly digitsRequired?: true;
  readonly specialCharactersRequired?: true;
  readonly upperCaseRequired?: true;
  readonly lowerCaseRequired?: true;
}

export interface LanguagePackPlan {
  readonly locale: string;
  readonly displayName: string;
  /** "major.minor". */
  readonly version: string;
  /** ISO 8601, or null for never updated. */
  readonly lastChangeTimestamp?: string | null;
  /** Installed file name (with its locale suffix, like `messages_de.properties`) → text. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A sent transfer. Times are relative to the moment it is added. */
export interface TransferPlan {
  readonly from: string;
  /** The sender's display name. */
  readonly fromName?: string;
  readonly to: readonly string[];
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
  readonly subject?: string;
  /** The text of a confidential message. Without it, there is no EML. */
  readonly message?: string;
  readonly files: readonly FilePlan[];
  /** Default: derived from the seed. */
  readonly password?: string;
  /** Default MANUAL with a password, else GENERATED. With NONE the download link carries the password. */
  readonly passwordMode?: "GENERATED" | "MANUAL" | "NONE";
  /** Default `ONE_TIME_PASSWORD`. In any other mode the password is the agreed key. */
  readonly securityMode?: string;
  /** The message's row in the checksums file: of its text, of the EML, or with a wrong checksum. Default: no row. */
  readonly messageRow?: "text" | "eml" | "wrong";
  /** Default: derived from seed and time, in the usual form. */
  readonly trackingId?: string;
  /** Seconds until it becomes active. Default 0. */
  readonly processingSeconds?: number;
  /** Seconds until it expires; may be negative. Default 14 days. */
  readonly expiresInSeconds?: number;
  /** Seconds until the sender revokes it. Default: never. */
  readonly revokedAfterSeconds?: number;
  /** It ends as `Failed` after processing. */
  readonly failed?: boolean;
  /** The algorithm of the checksums, `none` without checksums. Default `SHA-256`. */
  readonly algorithm?: "SHA-256" | "SHA-1" | "MD5" | "SHA-512" | "none";
}

export interface FilePlan {
  readonly name: string;
  /** Exactly one of the three: literal text, bytes as base64, or generated content of any size. */
  readonly text?: string;
  readonly base64?: string;
  readonly generate?: { readonly bytes: number; readonly seed?: number };
  /** Its checksum in the file list. Default `right`. */
  readonly listChecksum?: "right" | "wrong" | "missing";
  /** Its checksum in the checksums CSV; `missing` leaves out its row. Default `right`. */
  readonly csvChecksum?: "right" | "wrong" | "missing";
  /** A wrong size, for the file list and the total. */
  readonly announcedBytes?: number;
}

/** A fault: which requests it strikes, how often, and what it does. */
export interface FaultPlan {
  /** Only requests for this operation. */
  readonly on?: Operation;
  /** Only requests that belong to this transfer (tracking-id or transfer-id). */
  readonly transfer?: string;
  /** Only requests for the file of this name. */
  readonly file?: string;
  /** Only requests for this page of a list, or a later one. */
  readonly fromPage?: number;
  /** How many matching requests to let pass first. Default 0. */
  readonly skip?: number;
  /** How many matching requests to strike; `always` for all. Default 1. */
  readonly times?: number | "always";
  readonly does: Misbehaviour;
}

export const OPERATIONS = [
  "status",
  "client-id",
  "verification",
  "verification-code",
  "verification-token",
  "received",
  "sent",
  "sent-legacy",
  "info",
  "files",
  "file",
  "zip",
  "eml",
  "checksums",
  "password-generate",
  "password-check",
  "password-rules",
  "languages",
  "language",
  "language-file",
] as const;

export type Operation = (typeof OPERATIONS)[number];

/**
 * Bytes are counted in the body of the answer. Several faults of one request are applied one after the other. `error`,
 * `html`, `empty` and `redirect` answer in front of the service, which never sees the request; with `late`, and with all
 * other kinds, the request takes effect, whatever happens to its answer.
 */
export type Misbehaviour =
  /** Resets the connection, before the answer or after `afterBytes` of the body. */
  | { readonly kind: "reset"; readonly afterBytes?: number }
  /**
   * Pauses after `afterBytes` of the body (by default before the head), for `seconds` or forever, then continues.
   */
  | { readonly kind: "stall"; readonly afterBytes?: number; readonly seconds?: number }
  /** Sends the body slowly: `bytes` at a time, with a pause after each. */
  | { readonly kind: "drip"; readonly bytes: number; readonly pauseMs: number }
  /** Ends the body early. With `announce` Content-Length announces the whole body; without, the end looks regular. */
  | { readonly kind: "truncate"; readonly afterBytes: number; readonly announce?: boolean }
  /** Appends wrong bytes; Content-Length includes them. */
  | { readonly kind: "lengthen"; readonly bytes: number }
  /** Flips a bit of the byte at this position of the body. */
  | { readonly kind: "corrupt"; readonly at?: number }
  /** Answers with this status and the service's error body. */
  | {
      readonly kind: "error";
      readonly status: number;
      readonly errorCode?: number;
      readonly errorMessage?: string;
      readonly retryAfter?: string;
    }
  /** Answers with an HTML page, like a proxy. Default status 200, like a login page. */
  | { readonly kind: "html"; readonly status?: number; readonly late?: boolean }
  /** Answers with this status and an empty body. Default 204. */
  | { readonly kind: "empty"; readonly status?: number; readonly late?: boolean }
  /** Answers with this text instead, such as half a document or the wrong shape. */
  | {
      readonly kind: "body";
      readonly text: string;
      readonly contentType?: string;
      readonly status?: number;
      /** How often to repeat the text. Default 1. */
      readonly repeat?: number;
    }
  /** Changes the value at a path (`data.0.trackingId`) of the JSON answer; without `value`, removes it. */
  | { readonly kind: "alter"; readonly path: string; readonly value?: unknown }
  | { readonly kind: "redirect"; readonly to: string; readonly status?: 301 | 302 | 303 | 307 | 308 }
  /**
   * The reaction to a Range header; requests without one are not counted. `honour` is the default behaviour of file, zip
   * and eml. `elsewhere` answers 206 with another range; `lie` sends another range under the requested Content-Range.
   */
  | { readonly kind: "range"; readonly mode: "honour" | "ignore" | "refuse" | "elsewhere" | "lie" }
  /** Leaves out headers of the answer, such as the entity tag or the length. */
  | { readonly kind: "omit"; readonly headers: readonly string[] }
  /** Sends the same body with another entity tag each time, as if the file had changed. */
  | { readonly kind: "change-etag" }
  /**
   * Inserts `by` newer entries at the start of the list at each request (or drops as many, if negative), so that pages
   * shift. The new entries have no transfer.
   */
  | { readonly kind: "shift"; readonly by: number }
  /** Every page starts with the last `entries` of the page before. For `times: "always"`. */
  | { readonly kind: "repeat"; readonly entries: number }
  /** The list never ends: each page is full of new entries. */
  | { readonly kind: "endless" }
  /** `gzip` compresses the body without being asked; `br` claims an encoding that the body does not have. */
  | { readonly kind: "encoding"; readonly encoding: "gzip" | "br" };
