/**
 * What a simulated service holds and how it misbehaves, as plain values: the same shapes serve tests in the
 * same process, scenario files (JSON) and the control interface.
 */

/** Everything that may be said about a simulated service; each part has a sensible default. */
export interface Scenario {
  /** Makes ids, passwords and generated content reproducible. Default 1. */
  readonly seed?: number;
  /** The REST API version it speaks, "major.minor". Default "1.15". */
  readonly apiVersion?: string;
  /** The client id that is registered for every address; default: one made from the seed. */
  readonly clientId?: string;
  /** How long a verification token is good for. Default one day. */
  readonly tokenSeconds?: number;
  /** What too many wrong passwords do. Default: five delete the transfer. */
  readonly wrongPasswords?: WrongPasswordReaction;
  /** Days after which expired transfers disappear from every list. Default 30. */
  readonly retentionDays?: number;
  /** The largest page it gives, whatever is asked for. Default 100. */
  readonly maxPageSize?: number;
  /** How the checksums CSV is written. */
  readonly csv?: CsvStyle;
  /** Which password rules apply; default: a usual set. */
  readonly passwordRules?: PasswordRules;
  /** Serves ZIP, EML and checksums under `/files/zip`, `/files/eml`, `/files/checksums` only. Default false. */
  readonly oldPaths?: boolean;
  /** Lists say whether there is a confidential message. Default true. */
  readonly showsMessage?: boolean;
  /**
   * Of transfers whose password mode is `NONE`: the link carries the password (`link`, the default), none is needed
   * (`open`), or one is needed and the link does not say it (`withheld`).
   */
  readonly noPassword?: "link" | "open" | "withheld";
  /** What it does with fields that the interface does not name. Default `select`. */
  readonly otherFields?: "select" | "refuse";
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
  /** `all` quotes every cell, `minimal` those that need it, `none` never. Default `minimal`. */
  readonly quote?: "all" | "minimal" | "none";
  readonly byteOrderMark?: boolean;
  readonly charset?: "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";
  /** Whether Content-Type names the charset. Default true. */
  readonly announceCharset?: boolean;
  readonly lineEnd?: "\n" | "\r\n" | "\r";
  /** `shown` (default), `empty` (the label without a value) or `missing` (no subject line at all). */
  readonly subject?: "shown" | "empty" | "missing";
}

/** Rules named as in the interface; one that is not named does not apply. */
export interface PasswordRules {
  readonly whitespacesDeclined?: true;
  readonly alphabeticalSequenceDeclined?: true;
  readonly numericSequenceDeclined?: true;
  readonly keyboardSequenceDeclined?: true;
  /** The characters that it forbids, or `true` for a few that often are. */
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

/** One transfer that somebody sent. Times are relative to the moment it is added. */
export interface TransferPlan {
  readonly from: string;
  /** The sender's name as people read it. */
  readonly fromName?: string;
  readonly to: readonly string[];
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
  readonly subject?: string;
  /** The text of a confidential message: there is an EML only where there is one. */
  readonly message?: string;
  readonly files: readonly FilePlan[];
  /** Default: made from the seed. */
  readonly password?: string;
  /** Default MANUAL where a password is given, else GENERATED. With NONE the download link carries the password. */
  readonly passwordMode?: "GENERATED" | "MANUAL" | "NONE";
  /** Default: made from seed and time, in the usual form. */
  readonly trackingId?: string;
  /** Seconds until it becomes active. Default 0. */
  readonly processingSeconds?: number;
  /** Seconds until it expires; may be negative. Default 14 days. */
  readonly expiresInSeconds?: number;
  /** Seconds until the sender revokes it. Default: never. */
  readonly revokedAfterSeconds?: number;
  /** It ends as `Failed` after processing. */
  readonly failed?: boolean;
  /** Algorithm of the checksums, `none` where the administrator switched them off. Default `SHA-256`. */
  readonly algorithm?: "SHA-256" | "SHA-1" | "MD5" | "SHA-512" | "none";
}

export interface FilePlan {
  readonly name: string;
  /** Literal text; or bytes as base64; or generated from a seed, of any size. Exactly one of the three. */
  readonly text?: string;
  readonly base64?: string;
  readonly generate?: { readonly bytes: number; readonly seed?: number };
  /** What the file list says of its checksum. Default `right`. */
  readonly listChecksum?: "right" | "wrong" | "missing";
  /** What the checksums CSV says of it; `missing` leaves its row out. Default `right`. */
  readonly csvChecksum?: "right" | "wrong" | "missing";
  /** A size other than the true one, in the file list and in the total. */
  readonly announcedBytes?: number;
}

/** A misbehaviour: where it strikes, how often, and what it does. */
export interface FaultPlan {
  /** Which operation. Default: every one. */
  readonly on?: Operation;
  /** Only requests that belong to this transfer (tracking-id or transfer-id). */
  readonly transfer?: string;
  /** Only requests for the file of this name. */
  readonly file?: string;
  /** Only requests for this page of a list, or a later one. */
  readonly fromPage?: number;
  /** How many of the matching requests to let pass first. Default 0. */
  readonly skip?: number;
  /** How many it strikes; `always` for all of them. Default 1. */
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
 * Bytes are counted in the body of the answer. Where several faults strike one request, each works on what those
 * before it made. `error`, `html`, `empty` and `redirect` stand before the service, which never sees the request; with
 * `late`, and with all others, the request takes effect, whatever becomes of its answer.
 */
export type Misbehaviour =
  /** Closes the connection with a reset: before any answer, or after so many bytes of the body. */
  | { readonly kind: "reset"; readonly afterBytes?: number }
  /**
   * Sends so many bytes of the body (without `afterBytes`: nothing at all, not even the head), then nothing more,
   * for so long or for ever; then goes on.
   */
  | { readonly kind: "stall"; readonly afterBytes?: number; readonly seconds?: number }
  /** Sends the body slowly: so many bytes at a time, with a pause after each. */
  | { readonly kind: "drip"; readonly bytes: number; readonly pauseMs: number }
  /** Ends the body early. With `announce` Content-Length promises the whole; without, the end looks regular. */
  | { readonly kind: "truncate"; readonly afterBytes: number; readonly announce?: boolean }
  /** Appends so many bytes that do not belong there; Content-Length counts them. */
  | { readonly kind: "lengthen"; readonly bytes: number }
  /** Flips a bit of the byte at this place of the body. */
  | { readonly kind: "corrupt"; readonly at?: number }
  /** Answers with this status and the service's error body. */
  | {
      readonly kind: "error";
      readonly status: number;
      readonly errorCode?: number;
      readonly errorMessage?: string;
      readonly retryAfter?: string;
    }
  /** Answers with a page for people, as a proxy does. Default status 200, as of a login page. */
  | { readonly kind: "html"; readonly status?: number; readonly late?: boolean }
  /** Answers with this status and nothing else. Default 204. */
  | { readonly kind: "empty"; readonly status?: number; readonly late?: boolean }
  /** Answers with this text instead, under the same status or another: half a document, the wrong shape, nothing. */
  | {
      readonly kind: "body";
      readonly text: string;
      readonly contentType?: string;
      readonly status?: number;
      /** How often the text stands in the answer. Default 1. */
      readonly repeat?: number;
    }
  /** Changes one value of the JSON answer, by its path (`data.0.trackingId`); without `value` it is taken away. */
  | { readonly kind: "alter"; readonly path: string; readonly value?: unknown }
  /** Sends the client elsewhere. */
  | { readonly kind: "redirect"; readonly to: string; readonly status?: 301 | 302 | 303 | 307 | 308 }
  /**
   * What it does with a Range header; requests without one pass uncounted. `honour` is the default behaviour of
   * file, zip and eml. `elsewhere` answers 206 with another range and says so; `lie` sends bytes from elsewhere
   * under the Content-Range that was asked for.
   */
  | { readonly kind: "range"; readonly mode: "honour" | "ignore" | "refuse" | "elsewhere" | "lie" }
  /** Leaves headers of the answer out: an entity tag, a length. */
  | { readonly kind: "omit"; readonly headers: readonly string[] }
  /** Sends the same body with another entity tag each time, as if the file had changed. */
  | { readonly kind: "change-etag" }
  /**
   * Inserts so many newer entries before the list each time a page is asked for (or drops as many, if negative),
   * so that pages shift. There is no transfer behind the new ones.
   */
  | { readonly kind: "shift"; readonly by: number }
  /** Every page begins with entries of the page before: so many. Made for `times: "always"`. */
  | { readonly kind: "repeat"; readonly entries: number }
  /** The list never ends: each page is full of entries never seen before. */
  | { readonly kind: "endless" }
  /** `gzip` compresses the body unasked; `br` claims an encoding that the body does not have. */
  | { readonly kind: "encoding"; readonly encoding: "gzip" | "br" };
