/**
 * Decodes the service's JSON into the model. The only file that knows the service's field names. An answer that does not fit
 * becomes a fault that names the field.
 */
import * as v from "valibot";
import { type AnsweredBy, Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import {
  type ListedField,
  type ListedTransfer,
  type Recipient,
  TRANSFER_STATES,
  type TransferFile,
  type TransferInformation,
  type TransferState,
  withoutSession,
} from "../model/transfer.ts";
import { addresseesOf, removedIn } from "./list-parts.ts";

/** One page of a list. An entry that cannot be decoded is rejected without affecting the others. */
export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** Tracking-ids of known entries, which were not decoded. */
  readonly known: readonly string[];
  readonly rejected: readonly Rejected[];
}

/** An entry of a list that cannot be decoded. */
export interface Rejected {
  readonly fault: Fault;
  /** Missing if it is unreadable, too. */
  readonly trackingId: string | undefined;
}

export type Decoder<Value> = (answer: unknown, what: string) => Value;

const MAX_CHARACTERS = 1_000;
const MAX_ID_CHARACTERS = 255;
/** A link with a password has a few hundred characters. */
const MAX_LINK_CHARACTERS = 2_000;
const MAX_SECRET_CHARACTERS = 8_000;
const MAX_NAME_CHARACTERS = 4_000;
const MAX_RECIPIENTS = 10_000;
const MAX_ENTRIES = 1_000;

/** Text that goes into the ledger, the journal and the environment of commands. */
const Short = v.pipe(v.string(), v.maxLength(MAX_CHARACTERS));
const Id = v.pipe(Short, v.nonEmpty());
/** The ids of a list are kept in memory between polls. Real ones have 24 characters. */
const TrackingId = v.pipe(v.string(), v.nonEmpty(), v.maxLength(MAX_ID_CHARACTERS));
/** Text that is printed unchanged, so it must not hold control characters. */
const Plain = v.pipe(
  v.string(),
  v.maxLength(MAX_SECRET_CHARACTERS),
  v.regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u),
);
const Bytes = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** Absent, null and empty mean the same. */
const emptyAsMissing = v.transform((text: string) => (text.trim() === "" ? undefined : text));
const OptionalShort = v.pipe(v.nullish(Short, ""), emptyAsMissing);

/** Text that also counts as missing if it is too long, or no text: the entry is useful without it. */
function lenientText(maxCharacters: number) {
  const text = v.nullish(v.pipe(v.string(), v.maxLength(maxCharacters)), "");
  return v.pipe(v.fallback(text, ""), emptyAsMissing);
}
const LenientText = lenientText(MAX_CHARACTERS);

/** An array whose length is checked before its entries are. */
function list<Output>(entry: v.GenericSchema<unknown, Output>, maxEntries: number) {
  return v.pipe(v.array(v.unknown()), v.maxLength(maxEntries), v.array(entry));
}

/** A value of another type counts as missing. */
function textOnly<Output>(read: (text: string) => Output) {
  return v.pipe(
    v.nullish(v.unknown(), null),
    v.transform((value) => (typeof value === "string" ? read(value) : undefined)),
  );
}

/** An unreadable date counts as missing: the entry is useful without it. */
const Time = textOnly((text) => {
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : new Date(time);
});

/** Only displayed. */
const Href = textOnly((text) => (text === "" ? undefined : publicHref(text)));

const STATES = Object.keys(TRANSFER_STATES) as TransferState[];

/** Ignores case; an unknown word is not an error. */
const State = v.pipe(
  LenientText,
  v.transform(
    (word = ""): TransferState => STATES.find((known) => known === word.toLowerCase()) ?? "unknown",
  ),
);

/** An id that is not text counts as missing. An id that is too long is an error: it might be ours. */
const RecipientId = v.pipe(
  v.nullish(v.unknown(), null),
  v.transform((id) => (typeof id === "string" ? id : undefined)),
  OptionalShort,
);

const RecipientShape = v.pipe(
  v.object({ mail: LenientText, id: RecipientId, downloadUrl: lenientText(MAX_LINK_CHARACTERS) }),
  v.transform(
    ({ mail = "", id, downloadUrl }): Recipient => ({
      mail,
      transferId: id,
      downloadUrl: downloadUrl === undefined ? undefined : new Secret(downloadUrl),
    }),
  ),
);

/** Skips entries that are not objects: the others are useful without them. */
const Recipients = v.pipe(
  v.nullish(v.array(v.unknown()), []),
  v.maxLength(MAX_RECIPIENTS),
  v.transform((all) => all.filter((it) => typeof it === "object" && it !== null)),
  v.array(RecipientShape),
);

/** A wrong part counts as missing: polling can do without it. */
function orMissing<Output>(schema: v.GenericSchema<unknown, Output>) {
  return v.fallback(v.nullish(schema), undefined);
}

/** Only a missing or empty name says nothing: a value that is not text is a mode that Inlet does not know. */
const ModeName = v.pipe(
  v.nullish(v.unknown(), ""),
  v.transform((name) => (typeof name === "string" ? name.trim().slice(0, MAX_CHARACTERS) : "unknown")),
  v.transform((value): ListedField<string> => (value === "" ? { is: "unknown" } : { is: "given", value })),
);

const Listed = v.pipe(
  v.object({
    trackingId: TrackingId,
    status: v.nullish(
      v.object({
        sender: orMissing(v.object({ email: LenientText })),
        recipients: Recipients,
        state: State,
        files: v.optional(v.unknown()),
      }),
    ),
    transfer: v.nullish(
      v.object({
        recipients: orMissing(v.object({ to: v.optional(v.unknown()), cc: v.optional(v.unknown()) })),
        files: v.optional(v.unknown()),
        expirationDate: Time,
        confidentialMessageFileId: v.optional(v.unknown()),
        securityMode: orMissing(
          v.object({ name: ModeName, config: orMissing(v.object({ passwordMode: LenientText })) }),
        ),
        notificationMessage: orMissing(v.object({ subject: LenientText })),
      }),
    ),
  }),
  v.transform(
    ({ trackingId, status, transfer }): ListedTransfer => ({
      trackingId,
      state: status?.state ?? "unknown",
      sender: status?.sender?.email,
      recipients: status?.recipients ?? [],
      addressees: addresseesOf(transfer?.recipients ?? {}),
      removed: [...removedIn(status?.files), ...removedIn(transfer?.files)],
      expires: transfer?.expirationDate,
      passwordMode: transfer?.securityMode?.config?.passwordMode,
      securityMode: transfer?.securityMode?.name ?? { is: "unknown" },
      message: messageOf(transfer?.confidentialMessageFileId),
      subject: transfer?.notificationMessage?.subject,
    }),
  ),
);

/** Only `null` means none. A missing or empty id, or a boolean, says nothing. */
function messageOf(id: unknown): ListedTransfer["message"] {
  if (id === null) return { is: "none" };
  if (id === undefined || id === "" || typeof id === "boolean") return { is: "unknown" };
  return { is: "given", value: v.is(Id, id) ? id : undefined };
}

/** An entry of the deprecated list of sent transfers. `href`: the address of its status. */
const Legacy = v.object({ trackingId: TrackingId, state: State, recipients: Recipients, href: Href });
export type LegacyTransfer = Readonly<v.InferOutput<typeof Legacy>>;

const Information = v.pipe(
  v.object({ totalSize: Bytes, checksumAlgorithm: LenientText }),
  v.transform(
    ({ totalSize, checksumAlgorithm }): TransferInformation => ({
      totalBytes: totalSize,
      algorithm: checksumAlgorithm,
    }),
  ),
);

/** Without the href, which may carry the password and is not needed. */
const File = v.pipe(
  v.object({
    id: Id,
    fileName: v.pipe(v.string(), v.maxLength(MAX_NAME_CHARACTERS)),
    size: Bytes,
    checksum: OptionalShort,
  }),
  v.transform(
    ({ id, fileName, size, checksum }): TransferFile => ({
      id,
      name: fileName,
      bytes: size,
      checksum: checksum?.trim(),
    }),
  ),
);

const NamedRule = v.object({ name: Short, details: v.nullish(v.record(v.string(), v.unknown()), {}) });
/** A rule of the service that transfer passwords must fulfil. */
type PasswordPolicyRule = Readonly<v.InferOutput<typeof NamedRule>>;

/** Some services send the name alone. */
const Rule = v.union([
  v.pipe(
    Short,
    v.transform((name): PasswordPolicyRule => ({ name, details: {} })),
  ),
  NamedRule,
]);
const Rules = list(Rule, MAX_ENTRIES);

const Check = v.pipe(
  v.object({ valid: v.nullish(v.boolean()), rulesNotFulfilled: v.nullish(Rules, []) }),
  v.transform(({ valid, rulesNotFulfilled: broken }) => ({ valid: valid ?? broken.length === 0, broken })),
);

const VersionPart = v.union([Short, v.number()]);
/** `2.1`, or `{ major: 2, minor: 1 }`. */
const Version = v.union([
  VersionPart,
  v.pipe(
    v.object({ major: VersionPart, minor: v.nullish(VersionPart, 0) }),
    v.transform(({ major, minor }) => `${major}.${minor}`),
  ),
]);

const Pack = v.pipe(
  v.object({
    id: Id,
    displayName: LenientText,
    locale: LenientText,
    version: v.nullish(Version, ""),
    lastChangeTimestamp: Time,
    href: Href,
  }),
  v.transform((pack) => ({
    id: pack.id,
    displayName: pack.displayName ?? "",
    locale: pack.locale ?? "",
    version: String(pack.version),
    changed: pack.lastChangeTimestamp,
    /** The address of its resources. */
    href: pack.href,
  })),
);

const Verification = v.pipe(
  v.object({
    verified: v.boolean(),
    validUntil: Time,
    verificationMethods: v.nullish(list(Short, MAX_ENTRIES), []),
  }),
  v.transform(({ verified, validUntil, verificationMethods }) => ({
    verified,
    validUntil,
    /** `clientid`, `email`. */
    methods: verificationMethods.map((word) => word.toLowerCase().replace(/[^a-z]/g, "")),
  })),
);

const Token = v.pipe(
  v.object({ token: Plain, validUntil: Time }),
  v.transform(({ token, validUntil }) => ({ token: new Secret(token), validUntil })),
);

const InterfaceVersion = v.object({ major: v.number(), minor: v.number() });
export type ApiVersion = Readonly<v.InferOutput<typeof InterfaceVersion>>;
const Status = v.object({ apiVersions: v.object({ uiApiVersions: list(InterfaceVersion, MAX_ENTRIES) }) });

export const decodeListed = decodePage(Listed);
export const decodeLegacy = decodePage(Legacy);
export const decodeInformation = decodeData(Information);
/** One entry of the list of files. */
export const decodeFile: Decoder<TransferFile> = (entry, what) => check(File, entry, what);
export const decodeRules = decodeData(Rules);
export const decodeCheck = decodeData(Check);
export const decodeLanguagePacks = decodeData(list(Pack, MAX_ENTRIES));
export const decodeLanguagePack = decodeData(Pack);
export const decodeVerification = decodeData(Verification);
export const decodeToken = decodeData(Token);
export const decodeGeneratedPassword = decodeData(v.object({ password: Plain }));
export const decodeClientId = decodeData(v.object({ clientId: Plain }));
export const decodeStatus: Decoder<readonly ApiVersion[]> = (answer, what) =>
  check(Status, answer, what).apiVersions.uiApiVersions;

/** For display: without a query, which may hold a secret, and without user and password before the host. */
function publicHref(href: string): string {
  return withoutSession(href.replace(/[?#].*/s, "")).replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/]*@/i, "$1//");
}

type Schema<Output> = v.GenericSchema<unknown, Output>;

/** Stop at the first problem: a hostile answer can have millions. */
const FIRST_PROBLEM = { abortEarly: true, abortPipeEarly: true };

/** All successful answers except the server status are wrapped: `{ data, meta }`. */
function decodeData<Output>(schema: Schema<Output>): Decoder<Output> {
  const envelope = v.object({ data: schema });
  return (answer, what) => check(envelope, answer, what).data;
}

/**
 * A list whose entries are decoded one by one, so that a bad entry does not spoil the others. Known entries are not decoded
 * beyond their tracking-id.
 */
function decodePage<Entry>(
  schema: Schema<Entry>,
): (answer: unknown, what: string, isKnown?: (trackingId: string) => boolean) => Page<Entry> {
  const decodeList = decodeData(v.array(v.unknown()));
  return (answer, what, isKnown = () => false) => {
    const list = decodeList(answer, what);
    if (list.length > MAX_ENTRIES) {
      const detail = `${what}: ${list.length} entries on one page`;
      throw new Fault("ANSWER_TOO_LARGE", { detail, answeredBy: "service" });
    }
    const entries: Entry[] = [];
    const known: string[] = [];
    const rejected: Rejected[] = [];
    for (const [at, raw] of list.entries()) {
      const trackingId = trackingIdOf(raw);
      if (trackingId !== undefined && isKnown(trackingId)) {
        known.push(trackingId);
        continue;
      }
      const result = v.safeParse(schema, raw, FIRST_PROBLEM);
      if (result.success) entries.push(result.output);
      else {
        const fault = mismatch(result.issues, `${what}, entry ${at + 1}`, "service");
        rejected.push({ fault, trackingId });
      }
    }
    return { entries, known, rejected };
  };
}

function trackingIdOf(raw: unknown): string | undefined {
  const trackingId = (raw as { readonly trackingId?: unknown } | null)?.trackingId;
  return typeof trackingId === "string" ? trackingId : undefined;
}

function check<Output>(schema: Schema<Output>, value: unknown, what: string): Output {
  const result = v.safeParse(schema, value, FIRST_PROBLEM);
  if (result.success) return result.output;
  throw mismatch(result.issues, what, isEnvelope(value) ? "service" : "intermediary");
}

function isEnvelope(value: unknown): boolean {
  return typeof value === "object" && value !== null && "data" in value;
}

/** Names the field and the expected type, but never the received value, which may be a secret. */
function mismatch(issues: readonly v.BaseIssue<unknown>[], what: string, answeredBy: AnsweredBy): Fault {
  const [first] = issues;
  const path = first?.path?.map((step) => String(step.key)).join(".") || "the answer";
  const expected =
    first?.type === "max_length"
      ? `at most ${first.expected?.replace("<=", "")} ${typeof first.input === "string" ? "characters long" : "entries"}`
      : (first?.expected ?? first?.type ?? "something else");
  return new Fault("BAD_ANSWER", { detail: `${what}: ${path} should be ${expected}`, answeredBy });
}
