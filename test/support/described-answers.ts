/**
 * The answers that the published descriptions of the interface allow, by operation: types, bodies, statuses and error codes.
 * Written from the descriptions alone, so that it can judge the simulated service.
 */
import * as v from "valibot";

/** An answer as it arrived. `json`: its body, if it is JSON. */
export interface SeenAnswer {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly body: Buffer;
}

/** Why the answer is not one that the operation may give; `undefined` if it is. */
export function judgeAnswer(operation: string, answer: SeenAnswer): string | undefined {
  const described = OPERATIONS[operation];
  if (described === undefined) return `the operation ${operation} is not described`;
  return answer.status < 400 ? judgeSuccess(described, answer) : judgeError(described, answer);
}

/** Every operation that is described. */
export const describedOperations = (): string[] => Object.keys(OPERATIONS);

function judgeSuccess({ data: schema, type }: Described, answer: SeenAnswer): string | undefined {
  const { status, body } = answer;
  const isPart = status === 206 && schema === "bytes";
  if (status !== 200 && !isPart) return `status ${status}`;
  if (schema === "nothing") return body.length === 0 ? undefined : "a body, where none is described";
  const wanted = schema === "bytes" ? type : "application/json";
  if (wanted !== undefined && typeOf(answer) !== wanted) return `type ${typeOf(answer)}`;
  return schema === "bytes" ? undefined : mismatch(schema, body);
}

/** The server below the service judges methods, types and sizes: that is not described. */
function judgeError({ errors }: Described, answer: SeenAnswer): string | undefined {
  const { status, body } = answer;
  if ([405, 406, 413, 415].includes(status)) return undefined;
  const codes = errors[status];
  if (codes === undefined) return `status ${status}`;
  if (typeOf(answer) !== "application/json") return `an error of type ${typeOf(answer)}`;
  const errorMessage = v.pipe(v.string(), v.nonEmpty());
  return mismatch(v.strictObject({ errorCode: v.picklist(codes), errorMessage }), body);
}

function typeOf({ contentType = "" }: SeenAnswer): string {
  return contentType.split(";")[0]?.trim().toLowerCase() ?? "";
}

function mismatch(schema: v.GenericSchema, body: Buffer): string | undefined {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), body.toString());
  if (result.success) return undefined;
  return result.issues.map((issue) => `${v.getDotPath(issue) ?? "body"}: ${issue.message}`).join("; ");
}

interface Described {
  /** The body of a success. */
  readonly data: v.GenericSchema | "bytes" | "nothing";
  /** The type of bytes. */
  readonly type?: string;
  readonly errors: Readonly<Record<number, readonly number[]>>;
}

/** ISO 8601 with `T` and a numeric offset. */
const Time = v.pipe(v.string(), v.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d$/));
const Bytes = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Id = v.pipe(v.string(), v.nonEmpty());

/** Every key is known and may be missing: the descriptions require none. */
function record<const Entries extends v.ObjectEntries>(entries: Entries) {
  const optional = Object.entries(entries).map(([name, schema]) => [name, v.optional(schema)]);
  return v.strictObject(
    Object.fromEntries(optional) as { [Name in keyof Entries]: v.OptionalSchema<Entries[Name], undefined> },
  );
}

/** A success of the service. */
function data(schema: v.GenericSchema) {
  return v.strictObject({ data: schema, meta: v.optional(v.record(v.string(), v.unknown())) });
}

/** Two spellings are described. */
const State = v.pipe(
  v.string(),
  v.toUpperCase(),
  v.picklist([
    ..."ACTIVE DELETED_BY_ADMIN DELETED_BY_EXPIRATION DELETED_BY_REVOCATION DELETED_BY_SECURITY".split(" "),
    ..."FAILED PENDING PROCESSING UNKNOWN".split(" "),
  ]),
);

const RecipientStatus = record({
  mail: v.string(),
  id: Id,
  downloadUrl: v.nullable(v.string()),
  fileDownloads: v.array(
    record({
      id: Id,
      downloads: v.array(
        record({ downloadDate: Time, retrievalMethod: v.picklist(["DOWNLOADED", "VIEWED"]) }),
      ),
    }),
  ),
  notificationFailed: v.boolean(),
});

const Addressees = v.array(v.strictObject({ mail: v.string() }));
const FileEntries = {
  id: Id,
  fileName: v.string(),
  size: Bytes,
  checksum: v.string(),
  href: v.pipe(v.string(), v.startsWith("/")),
};

const Transfer = v.strictObject({
  trackingId: v.optional(Id),
  status: v.optional(
    record({
      emlCreationFailed: v.boolean(),
      files: v.array(record({ id: Id, removalCause: v.nullable(v.string()), removed: v.boolean() })),
      recipients: v.array(RecipientStatus),
      sender: record({ email: v.string(), notificationFailed: v.boolean() }),
      state: State,
      warnings: v.boolean(),
    }),
  ),
  transfer: v.optional(
    record({
      classificationId: v.string(),
      confidentialMessageFileId: v.nullable(Id),
      expirationDate: Time,
      fileChecksumAlgorithm: v.string(),
      files: v.array(
        record({ ...FileEntries, state: v.picklist(["ACTIVE", "INITIALIZED", "REMOVED", "UPLOADED"]) }),
      ),
      notificationMessage: record({ subject: v.string(), body: v.string() }),
      recipientLanguage: v.string(),
      recipients: record({ to: Addressees, cc: Addressees, bcc: Addressees }),
      securityMode: record({
        name: v.picklist(["EID", "ONE_TIME_PASSWORD", "QUICK"]),
        config: record({ passwordMode: v.picklist(["GENERATED", "MANUAL", "NONE"]) }),
      }),
      sendDownloadNotifications: v.boolean(),
      sender: record({ name: v.string(), phone: v.string() }),
      senderLanguage: v.string(),
    }),
  ),
});

const LegacyTransfer = record({
  trackingId: Id,
  state: State,
  recipients: v.array(RecipientStatus),
  href: v.pipe(v.string(), v.startsWith("/")),
});

const Rule = record({ name: v.pipe(v.string(), v.nonEmpty()), details: v.record(v.string(), v.unknown()) });

const Pack = record({
  id: Id,
  displayName: v.string(),
  locale: v.pipe(v.string(), v.regex(/^[a-z]{2,3}(-[a-z0-9]+)*$/i)),
  version: v.pipe(v.string(), v.regex(/^\d+\.\d+$/)),
  lastChangeTimestamp: v.nullable(Time),
  href: v.pipe(v.string(), v.startsWith("/api/")),
});

const Version = v.strictObject({ major: Bytes, minor: Bytes });

const COMMON = { 400: [1002, 1004, 1005], 403: [3001], 404: [1006, 2004], 500: [5000] };
const OF_TRANSFER = {
  ...COMMON,
  401: [3003],
  403: [2005, 3001],
  404: [1006, 2003, 2004],
  410: [2006],
  501: [5001, 5002],
};
const OF_ADDRESS = { ...COMMON, 401: [3002] };
const OF_PROOF = { ...COMMON, 403: [3001, 3002], 429: [2007] };
const OF_PACK = { ...COMMON, 404: [1005, 1006, 2003, 2004] };

/** The two lists of single recipients and senders came with version 1.12; the status came with 1.13. */
const OPERATIONS: Readonly<Record<string, Described>> = {
  status: {
    data: v.strictObject({ apiVersions: v.strictObject({ uiApiVersions: v.array(Version) }) }),
    errors: { 404: [1006] },
  },
  "client-id": {
    data: data(v.strictObject({ clientId: v.pipe(v.string(), v.regex(/^[A-Za-z0-9]{50,4000}$/)) })),
    errors: { ...COMMON, 400: [1002, 1004] },
  },
  verification: {
    data: data(
      record({
        verified: v.boolean(),
        validUntil: Time,
        verificationMethods: v.array(v.picklist(["CLIENT_ID", "EMAIL"])),
      }),
    ),
    errors: { ...COMMON, 403: [3001, 3002] },
  },
  "verification-code": { data: "nothing", errors: { ...COMMON, 429: [2007] } },
  "verification-token": { data: data(v.strictObject({ token: Id, validUntil: Time })), errors: OF_PROOF },
  received: { data: data(v.array(Transfer)), errors: OF_ADDRESS },
  sent: { data: data(v.array(Transfer)), errors: OF_ADDRESS },
  "sent-legacy": { data: data(v.array(LegacyTransfer)), errors: OF_ADDRESS },
  info: {
    data: data(v.strictObject({ totalSize: Bytes, checksumAlgorithm: v.string() })),
    errors: OF_TRANSFER,
  },
  files: { data: data(v.array(record(FileEntries))), errors: OF_TRANSFER },
  file: { data: "bytes", type: "application/octet-stream", errors: OF_TRANSFER },
  zip: { data: "bytes", type: "application/zip", errors: OF_TRANSFER },
  eml: { data: "bytes", type: "application/octet-stream", errors: OF_TRANSFER },
  checksums: { data: "bytes", type: "text/csv", errors: OF_TRANSFER },
  "password-generate": { data: data(v.strictObject({ password: Id })), errors: OF_ADDRESS },
  "password-check": {
    data: data(v.strictObject({ valid: v.boolean(), rulesNotFulfilled: v.array(Rule) })),
    errors: OF_ADDRESS,
  },
  "password-rules": { data: data(v.array(Rule)), errors: OF_ADDRESS },
  languages: { data: data(v.array(Pack)), errors: OF_PACK },
  language: { data: data(Pack), errors: OF_PACK },
  /** Its type depends on the file. */
  "language-file": { data: "bytes", errors: OF_PACK },
};
