/** Parses scenarios and their parts from JSON. Problems are reported by key. */
import * as v from "valibot";
import { canonicalAddress } from "../src/model/transfer.ts";
import { ScenarioError } from "./errors.ts";
import { misbehaviour } from "./parse-misbehaviour.ts";
import { atLeastOne, count, describeIssues, seconds, secondsFromNow, shape, text } from "./parse-shape.ts";
import { type FaultPlan, OPERATIONS, type Scenario, type TransferPlan } from "./scenario.ts";

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

/** Bodies of the control interface. */
export const advanceBody = shape({ seconds: secondsFromNow });
export const replaceBody = shape({ old: text, new: text });

export function parseAs<Output>(schema: v.GenericSchema<unknown, Output>, json: unknown): Output {
  // A list would pass for an object without keys.
  const result = v.safeParse(schema, Array.isArray(json) ? null : json);
  if (result.success) return result.output;
  throw new ScenarioError(describeIssues(result.issues));
}

const filePlan = v.pipe(
  shape({
    name: v.string(),
    text: v.exactOptional(v.string()),
    base64: v.exactOptional(v.pipe(v.string(), v.check(isBase64, "is not base64"))),
    generate: v.exactOptional(
      shape({ bytes: count, seed: v.exactOptional(v.pipe(v.number(), v.integer())) }),
    ),
    listChecksum: v.exactOptional(v.picklist(["right", "wrong", "missing"])),
    csvChecksum: v.exactOptional(v.picklist(["right", "wrong", "missing"])),
    announcedBytes: v.exactOptional(count),
  }),
  v.check(
    (file) => [file.text, file.base64, file.generate].filter((given) => given !== undefined).length === 1,
    "needs exactly one of text, base64 and generate",
  ),
);

const transferPlan = v.pipe(
  shape({
    from: text,
    fromName: v.exactOptional(v.string()),
    to: v.array(text),
    cc: v.exactOptional(v.array(text)),
    bcc: v.exactOptional(v.array(text)),
    subject: v.exactOptional(v.string()),
    message: v.exactOptional(v.string()),
    files: v.array(filePlan),
    password: v.exactOptional(text),
    passwordMode: v.exactOptional(v.picklist(["GENERATED", "MANUAL", "NONE"])),
    securityMode: v.exactOptional(text),
    messageRow: v.exactOptional(v.picklist(["text", "eml", "wrong"])),
    trackingId: v.exactOptional(text),
    processingSeconds: v.exactOptional(seconds),
    expiresInSeconds: v.exactOptional(seconds),
    revokedAfterSeconds: v.exactOptional(seconds),
    failed: v.exactOptional(v.boolean()),
    algorithm: v.exactOptional(v.picklist(["SHA-256", "SHA-1", "MD5", "SHA-512", "none"])),
  }),
  v.check((plan) => recipientsOf(plan).length > 0, "needs a recipient in to, cc or bcc"),
  v.check(
    (plan) => new Set(recipientsOf(plan)).size === recipientsOf(plan).length,
    "names the same recipient twice",
  ),
);

const faultPlan = shape({
  on: v.exactOptional(v.picklist(OPERATIONS)),
  transfer: v.exactOptional(text),
  file: v.exactOptional(v.string()),
  fromPage: v.exactOptional(atLeastOne),
  skip: v.exactOptional(count),
  times: v.exactOptional(v.union([atLeastOne, v.literal("always")], 'must be a whole number or "always"')),
  does: misbehaviour,
});

const active = v.exactOptional(v.literal(true, "must be true, or left out"));

const passwordRules = shape({
  whitespacesDeclined: active,
  alphabeticalSequenceDeclined: active,
  numericSequenceDeclined: active,
  keyboardSequenceDeclined: active,
  blacklistedCharactersDeclined: v.exactOptional(v.union([v.literal(true), text])),
  repeatedCharactersDeclined: active,
  dictionaryWordsDeclined: active,
  minimumLengthRequired: v.exactOptional(atLeastOne),
  maximumLengthRequired: v.exactOptional(atLeastOne),
  lettersRequired: active,
  digitsRequired: active,
  specialCharactersRequired: active,
  upperCaseRequired: active,
  lowerCaseRequired: active,
});

const version = v.pipe(v.string(), v.regex(/^\d{1,4}\.\d{1,4}$/, "must be major.minor"));

const scenario = shape({
  seed: v.exactOptional(v.pipe(v.number(), v.integer())),
  apiVersion: v.exactOptional(version),
  clientId: v.exactOptional(
    v.pipe(v.string(), v.regex(/^[A-Za-z0-9]{50,4000}$/, "must be 50 to 4000 letters and digits")),
  ),
  tokenSeconds: v.exactOptional(secondsFromNow),
  wrongPasswords: v.exactOptional(
    shape({
      limit: atLeastOne,
      reaction: v.picklist(["delete", "lock"]),
      lockSeconds: v.exactOptional(secondsFromNow),
    }),
  ),
  retentionDays: v.exactOptional(v.pipe(v.number(), v.minValue(0))),
  maxPageSize: v.exactOptional(atLeastOne),
  csv: v.exactOptional(
    shape({
      delimiter: v.exactOptional(v.picklist([",", ";", "\t"])),
      quote: v.exactOptional(v.picklist(["all", "minimal", "none"])),
      byteOrderMark: v.exactOptional(v.boolean()),
      charset: v.exactOptional(v.picklist(["utf-8", "utf-16le", "utf-16be", "windows-1252"])),
      announceCharset: v.exactOptional(v.boolean()),
      lineEnd: v.exactOptional(v.picklist(["\n", "\r\n", "\r"])),
      subject: v.exactOptional(v.picklist(["shown", "empty", "missing"])),
    }),
  ),
  passwordRules: v.exactOptional(passwordRules),
  oldPaths: v.exactOptional(v.boolean()),
  showsMessage: v.exactOptional(v.boolean()),
  noPassword: v.exactOptional(v.picklist(["link", "open", "withheld"])),
  otherFields: v.exactOptional(v.picklist(["select", "refuse"])),
  ignoresActive: v.exactOptional(v.boolean()),
  wholeThreshold: v.exactOptional(v.boolean()),
  sessionLinks: v.exactOptional(v.boolean()),
  codesPerAddress: v.exactOptional(count),
  languagePacks: v.exactOptional(
    v.array(
      shape({
        locale: text,
        displayName: text,
        version,
        lastChangeTimestamp: v.exactOptional(v.nullable(v.string())),
        files: v.exactOptional(v.record(v.string(), v.string())),
      }),
    ),
  ),
  transfers: v.exactOptional(v.array(transferPlan)),
  faults: v.exactOptional(v.array(faultPlan)),
});

/** Without optional keys, so that a missing key shows. */
type Complete<Value> = Value extends readonly (infer Entry)[]
  ? readonly Complete<Entry>[]
  : Value extends object
    ? { readonly [Key in keyof Value]-?: Complete<Value[Key]> }
    : Value;

type Agree<A, B> = [Complete<A>, Complete<B>] extends [Complete<B>, Complete<A>] ? true : false;

// Does not compile if the schema and the types of a scenario differ in any key.
true satisfies Agree<v.InferOutput<typeof scenario>, Scenario>;

function recipientsOf(plan: {
  readonly to: readonly string[];
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
}): readonly string[] {
  return [...plan.to, ...(plan.cc ?? []), ...(plan.bcc ?? [])].map(canonicalAddress);
}

/** Decoding skips invalid characters, so the length shows whether there were any. */
function isBase64(encoded: string): boolean {
  const padding = /={0,2}$/.exec(encoded)?.[0].length ?? 0;
  return Buffer.from(encoded, "base64").length === (encoded.length / 4) * 3 - padding;
}
