/**
 * Scenarios: the transfers and faults of a simulated service as plain values, for tests in the same process, scenario files
 * (JSON) and the control interface. Each type follows from its schema. Problems are reported by key.
 */
import * as v from "valibot";
import { describeUnknownKey } from "../src/base/nearest.ts";
import { canonicalAddress } from "../src/model/transfer.ts";
import { ScenarioError } from "./errors.ts";

export type Scenario = Shape<typeof scenario>;
export type CsvStyle = Shape<typeof csvStyle>;
export type PasswordRules = Shape<typeof passwordRules>;
export type LanguagePackPlan = Shape<typeof languagePackPlan>;
export type TransferPlan = Shape<typeof transferPlan>;
export type FilePlan = Shape<typeof filePlan>;
export type FaultPlan = Shape<typeof faultPlan>;
export type Misbehaviour = Shape<typeof misbehaviour>;
export type Operation = (typeof OPERATIONS)[number];

/** Throws a ScenarioError that names every wrong key. */
export function parseScenario(json: unknown): Scenario {
  return parseAs(scenario, json);
}

export function parseTransferPlan(json: unknown): TransferPlan {
  return parseAs(transferPlan, json);
}

export function parseFaultPlan(json: unknown): FaultPlan {
  return parseAs(faultPlan, json);
}

export function parseAs<Output>(schema: v.GenericSchema<unknown, Output>, json: unknown): Output {
  // A list would pass for an object without keys.
  const result = v.safeParse(schema, Array.isArray(json) ? null : json);
  if (result.success) return result.output;
  throw new ScenarioError(describeIssues(result.issues));
}

type Shape<Schema extends v.GenericSchema> = ReadonlyDeep<v.InferOutput<Schema>>;

type ReadonlyDeep<Value> = Value extends object
  ? { readonly [Key in keyof Value]: ReadonlyDeep<Value[Key]> }
  : Value;

/** An object with exactly these keys; the message about an unknown key names the nearest known one. */
export function shape<const Entries extends v.ObjectEntries>(entries: Entries) {
  const known = Object.keys(entries);
  return v.strictObject(entries, (issue) => {
    if (issue.expected === "never") return describeUnknownKey(issue.received.replace(/^"|"$/g, ""), known);
    return issue.expected === "Object" ? "must be an object" : "is required";
  });
}

/** One line per issue: its path and message. */
function describeIssues(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues
    .map((issue) => {
      const path = v.getDotPath(issue);
      return path === null ? issue.message : `${path}: ${issue.message}`;
    })
    .join("\n");
}

const optional = v.exactOptional;

/** Text that is not empty and has no unpaired surrogates. */
export const text = v.pipe(
  v.string(),
  v.nonEmpty("must not be empty"),
  v.check((value) => value.isWellFormed(), "has half a character"),
);

const integer = v.pipe(v.number(), v.integer());

const wholeNumber = v.pipe(v.number(), v.safeInteger("must be a whole number"));
const count = v.pipe(wholeNumber, v.minValue(0));
const atLeastOne = v.pipe(wholeNumber, v.minValue(1));

/** Seconds from now, negative in the past, within the range of dates. */
const seconds = v.pipe(v.number(), v.minValue(-1e10), v.maxValue(1e10));
export const secondsFromNow = v.pipe(seconds, v.minValue(0));

const filePlan = v.pipe(
  shape({
    name: v.string(),
    /** Exactly one of the three: literal text, bytes as base64, or generated content of any size. */
    text: optional(v.string()),
    base64: optional(v.pipe(v.string(), v.check(isBase64, "is not base64"))),
    generate: optional(shape({ bytes: count, seed: optional(integer) })),
    /** Its checksum in the file list. Default `right`. */
    listChecksum: optional(v.picklist(["right", "wrong", "missing"])),
    /** Its checksum in the checksums CSV; `missing` leaves out its row. Default `right`. */
    csvChecksum: optional(v.picklist(["right", "wrong", "missing"])),
    /** A wrong size, for the file list and the total. */
    announcedBytes: optional(count),
    /** The service has removed the file, for this cause. It is listed, but not given out. */
    removed: optional(text),
  }),
  v.check(
    (file) => [file.text, file.base64, file.generate].filter((given) => given !== undefined).length === 1,
    "needs exactly one of text, base64 and generate",
  ),
);

/** A sent transfer. Times are relative to the moment it is added. */
const transferPlan = v.pipe(
  shape({
    from: text,
    /** The sender's display name. */
    fromName: optional(v.string()),
    to: v.array(text),
    cc: optional(v.array(text)),
    bcc: optional(v.array(text)),
    subject: optional(v.string()),
    /** The text of a confidential message. Without it, there is no EML. */
    message: optional(v.string()),
    files: v.array(filePlan),
    /** Default: derived from the seed. */
    password: optional(text),
    /** Default MANUAL with a password, else GENERATED. With NONE the download link carries the password. */
    passwordMode: optional(v.picklist(["GENERATED", "MANUAL", "NONE"])),
    /** Default `ONE_TIME_PASSWORD`. In any other mode the password is the agreed key. */
    securityMode: optional(text),
    /** Every request for it is answered 501, with 5001 for `QUICK` and 5002 for `eID`, whatever the password. */
    unsupported: optional(v.picklist(["QUICK", "eID"])),
    /** The message's row in the checksums file: of its text, of the EML, or with a wrong checksum. Default: no row. */
    messageRow: optional(v.picklist(["text", "eml", "wrong"])),
    /** Default: derived from seed and time, in the usual form. */
    trackingId: optional(text),
    /** Seconds until it becomes active. Default 0. */
    processingSeconds: optional(seconds),
    /** Seconds until it expires; may be negative. Default 14 days. */
    expiresInSeconds: optional(seconds),
    /** Seconds until the sender revokes it. Default: never. */
    revokedAfterSeconds: optional(seconds),
    /** It ends as `Failed` after processing. */
    failed: optional(v.boolean()),
    /** The algorithm of the checksums, `none` without checksums. Default `SHA-256`. */
    algorithm: optional(v.picklist(["SHA-256", "SHA-1", "MD5", "SHA-512", "none"])),
  }),
  v.check((plan) => recipientsOf(plan).length > 0, "needs a recipient in to, cc or bcc"),
  v.check(
    (plan) => new Set(recipientsOf(plan)).size === recipientsOf(plan).length,
    "names the same recipient twice",
  ),
);

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

const status = v.pipe(integer, v.minValue(200), v.maxValue(599));
const headerValue = v.pipe(v.string(), v.regex(/^[\x20-\x7e]+$/));

/**
 * Bytes are counted in the body of the answer. Several faults of one request are applied one after the other. `error`,
 * `html`, `empty` and `redirect` answer in front of the service, which never sees the request; with `late`, and with all
 * other kinds, the request takes effect, whatever happens to its answer.
 */
const misbehaviour = v.variant("kind", [
  /** Resets the connection, before the answer or after `afterBytes` of the body. */
  shape({ kind: v.literal("reset"), afterBytes: optional(count) }),
  /** Pauses after `afterBytes` of the body (by default before the head), for `seconds` or forever, then continues. */
  shape({ kind: v.literal("stall"), afterBytes: optional(count), seconds: optional(secondsFromNow) }),
  /** Sends the body slowly: `bytes` at a time, with a pause after each. */
  shape({ kind: v.literal("drip"), bytes: atLeastOne, pauseMs: v.pipe(v.number(), v.minValue(0)) }),
  /** Ends the body early. With `announce` Content-Length announces the whole body; without, the end looks regular. */
  shape({ kind: v.literal("truncate"), afterBytes: count, announce: optional(v.boolean()) }),
  /** Appends wrong bytes; Content-Length includes them. */
  shape({ kind: v.literal("lengthen"), bytes: count }),
  /** Flips a bit of the byte at this position of the body. */
  shape({ kind: v.literal("corrupt"), at: optional(count) }),
  /** Answers with this status and the service's error body. */
  shape({
    kind: v.literal("error"),
    status,
    errorCode: optional(integer),
    errorMessage: optional(v.string()),
    retryAfter: optional(headerValue),
  }),
  /** Answers with an HTML page, like a proxy. Default status 200, like a login page. */
  shape({ kind: v.literal("html"), status: optional(status), late: optional(v.boolean()) }),
  /** Answers with this status and an empty body. Default 204. */
  shape({ kind: v.literal("empty"), status: optional(status), late: optional(v.boolean()) }),
  /** Answers with this text instead, such as half a document or the wrong shape. `repeat`: how often; default 1. */
  shape({
    kind: v.literal("body"),
    text: v.string(),
    contentType: optional(headerValue),
    status: optional(status),
    repeat: optional(count),
  }),
  /** Changes the value at a path (`data.0.trackingId`) of the JSON answer; without `value`, removes it. */
  shape({ kind: v.literal("alter"), path: v.string(), value: optional(v.unknown()) }),
  shape({
    kind: v.literal("redirect"),
    to: v.pipe(v.string(), v.regex(/^[\x21-\x7e]+$/, "must be a URL without spaces")),
    status: optional(v.picklist([301, 302, 303, 307, 308])),
  }),
  /**
   * The reaction to a Range header; requests without one are not counted. `honour` is the default behaviour of file, zip
   * and eml. `elsewhere` answers 206 with another range; `lie` sends another range under the requested Content-Range.
   */
  shape({ kind: v.literal("range"), mode: v.picklist(["honour", "ignore", "refuse", "elsewhere", "lie"]) }),
  /** Leaves out headers of the answer, such as the entity tag or the length. */
  shape({ kind: v.literal("omit"), headers: v.array(text) }),
  /** Sends the same body with another entity tag each time, as if the file had changed. */
  shape({ kind: v.literal("change-etag") }),
  /**
   * Inserts `by` newer entries at the start of the list at each request (or drops as many, if negative), so that pages
   * shift. The new entries have no transfer.
   */
  shape({ kind: v.literal("shift"), by: v.pipe(v.number(), v.safeInteger()) }),
  /** Every page starts with the last `entries` of the page before. For `times: "always"`. */
  shape({ kind: v.literal("repeat"), entries: count }),
  /** The list never ends: each page is full of new entries. */
  shape({ kind: v.literal("endless") }),
  /** `gzip` compresses the body without being asked; `br` claims an encoding that the body does not have. */
  shape({ kind: v.literal("encoding"), encoding: v.picklist(["gzip", "br"]) }),
]);

/** A fault: which requests it strikes, how often, and what it does. */
const faultPlan = shape({
  /** Only requests for this operation. */
  on: optional(v.picklist(OPERATIONS)),
  /** Only requests that belong to this transfer (tracking-id or transfer-id). */
  transfer: optional(text),
  /** Only requests for the file of this name. */
  file: optional(v.string()),
  /** Only requests for this page of a list, or a later one. */
  fromPage: optional(atLeastOne),
  /** How many matching requests to let pass first. Default 0. */
  skip: optional(count),
  /** How many matching requests to strike; `always` for all. Default 1. */
  times: optional(v.union([atLeastOne, v.literal("always")], 'must be a whole number or "always"')),
  does: misbehaviour,
});

const csvStyle = shape({
  delimiter: optional(v.picklist([",", ";", "\t"])),
  /** `all` quotes every cell, `minimal` only cells that need it, `none` no cell. Default `minimal`. */
  quote: optional(v.picklist(["all", "minimal", "none"])),
  byteOrderMark: optional(v.boolean()),
  charset: optional(v.picklist(["utf-8", "utf-16le", "utf-16be", "windows-1252"])),
  /** Whether Content-Type names the charset. Default true. */
  announceCharset: optional(v.boolean()),
  lineEnd: optional(v.picklist(["\n", "\r\n", "\r"])),
  /** `shown` (default), `empty` (the label without a value) or `missing` (no subject line). */
  subject: optional(v.picklist(["shown", "empty", "missing"])),
});

const active = optional(v.literal(true, "must be true, or left out"));

/** Rules by their name in the interface; missing ones do not apply. */
const passwordRules = shape({
  whitespacesDeclined: active,
  alphabeticalSequenceDeclined: active,
  numericSequenceDeclined: active,
  keyboardSequenceDeclined: active,
  /** The forbidden characters, or `true` for some that often are. */
  blacklistedCharactersDeclined: optional(v.union([v.literal(true), text])),
  repeatedCharactersDeclined: active,
  dictionaryWordsDeclined: active,
  minimumLengthRequired: optional(atLeastOne),
  maximumLengthRequired: optional(atLeastOne),
  lettersRequired: active,
  digitsRequired: active,
  specialCharactersRequired: active,
  upperCaseRequired: active,
  lowerCaseRequired: active,
});

const version = v.pipe(v.string(), v.regex(/^\d{1,4}\.\d{1,4}$/, "must be major.minor"));

const languagePackPlan = shape({
  locale: text,
  displayName: text,
  version,
  /** ISO 8601, or null for never updated. */
  lastChangeTimestamp: optional(v.nullable(v.string())),
  /** Installed file name (with its locale suffix, like `messages_de.properties`) → text. */
  files: optional(v.record(v.string(), v.string())),
});

/** A simulated service; every key has a sensible default. */
const scenario = shape({
  /** Makes ids, passwords and generated content reproducible. Default 1. */
  seed: optional(integer),
  /** Its REST API version. Default "1.15". */
  apiVersion: optional(version),
  /** The client id that is registered for every address. Default: derived from the seed. */
  clientId: optional(
    v.pipe(v.string(), v.regex(/^[A-Za-z0-9]{50,4000}$/, "must be 50 to 4000 letters and digits")),
  ),
  /** How long a verification token is valid. Default one day. */
  tokenSeconds: optional(secondsFromNow),
  /** Of so many tokens in so many seconds, any more are refused with 429, perhaps with `Retry-After`. Default: no limit. */
  tokenLimit: optional(
    shape({
      tokens: atLeastOne,
      seconds: v.pipe(seconds, v.minValue(0.001)),
      retryAfter: optional(v.boolean()),
    }),
  ),
  /** The reaction to too many wrong passwords. Default: five delete the transfer. `lock` locks the transfer-id. */
  wrongPasswords: optional(
    shape({
      limit: atLeastOne,
      reaction: v.picklist(["delete", "lock"]),
      /** Default 600. */
      lockSeconds: optional(secondsFromNow),
    }),
  ),
  /** Days after which expired transfers disappear from every list. Default 30. */
  retentionDays: optional(v.pipe(v.number(), v.minValue(0))),
  /** The largest page, whatever is requested. Default 100. */
  maxPageSize: optional(atLeastOne),
  /** The format of the checksums CSV. */
  csv: optional(csvStyle),
  /** The password rules. Default: a typical set. */
  passwordRules: optional(passwordRules),
  /** Serves ZIP, EML and checksums, or those that are named, only under `/files/zip` and so on. Default false. */
  oldPaths: optional(v.union([v.boolean(), v.array(v.picklist(["zip", "eml", "checksums"]))])),
  /** Whether lists show that there is a confidential message. Default true. */
  showsMessage: optional(v.boolean()),
  /**
   * For transfers with password mode `NONE`: the link carries the password (`link`, the default), no password is needed
   * (`open`), or one is needed and the link lacks it (`withheld`).
   */
  noPassword: optional(v.picklist(["link", "open", "withheld"])),
  /** The reaction to fields that the interface does not document. Default `select`. */
  otherFields: optional(v.picklist(["select", "refuse"])),
  /** Parts of transfers that `fields` may not name, such as `transfer.recipients`. Default: none. */
  refusedFields: optional(v.array(v.pipe(text, v.regex(/^\w+\.\w+$/, "must be two names with a dot")))),
  /** Lists contain transfers in every state, although only active ones are requested. Default false. */
  ignoresActive: optional(v.boolean()),
  /** A ZIP always has all files, whichever are requested. Default false. */
  ignoresFileIds: optional(v.boolean()),
  /** Answers a threshold that is not a whole number with 404, as some frameworks do. Default false. */
  wholeThreshold: optional(v.boolean()),
  /** Which thresholds are not answered with 400: `number` (the default), `int32`, or none (`refused`). */
  threshold: optional(v.picklist(["number", "int32", "refused"])),
  /** Puts the id of a web session into the download links. Default false. */
  sessionLinks: optional(v.boolean()),
  /** How many codes an address gets in 15 minutes. Default: no limit. */
  codesPerAddress: optional(count),
  languagePacks: optional(v.array(languagePackPlan)),
  transfers: optional(v.array(transferPlan)),
  faults: optional(v.array(faultPlan)),
});

interface Recipients {
  readonly to: readonly string[];
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
}

function recipientsOf({ to, cc = [], bcc = [] }: Recipients): readonly string[] {
  return [...to, ...cc, ...bcc].map(canonicalAddress);
}

/** Decoding skips invalid characters, so the length shows whether there were any. */
function isBase64(encoded: string): boolean {
  const padding = /={0,2}$/.exec(encoded)?.[0].length ?? 0;
  return Buffer.from(encoded, "base64").length === (encoded.length / 4) * 3 - padding;
}
