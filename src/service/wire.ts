/** The service's JSON → the model. The only file that knows how the service spells its fields. */
import * as v from "valibot";
import { Secret } from "../base/secret.ts";
import {
  type ListedTransfer,
  type Recipient,
  TRANSFER_STATES,
  type TransferFile,
  type TransferInformation,
  type TransferState,
} from "../model/transfer.ts";
import { check, type Decoder, decodeData, decodePage } from "./decoding.ts";
import { publicHref } from "./hrefs.ts";
import type {
  ApiVersion,
  LanguagePack,
  LegacyTransfer,
  Page,
  PasswordCheck,
  PasswordRule,
  VerificationStatus,
  VerificationToken,
} from "./port.ts";

/** What ends in ledger, in lines of the journal and in the environment of commands. */
const Short = v.pipe(v.string(), v.maxLength(1_000));
const Id = v.pipe(Short, v.nonEmpty());
/** Text that is printed as it is: nothing in it may move a cursor. */
const Plain = v.pipe(v.string(), v.regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u));
const Bytes = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** Absent, null and empty say the same. */
const orNothing = v.transform((text: string) => (text.trim() === "" ? undefined : text));
const Text = v.pipe(v.nullish(v.string(), ""), orNothing);
const ShortText = v.pipe(v.nullish(Short, ""), orNothing);

/** An unreadable or missing date is not worth losing an entry for. */
const Time = v.pipe(
  v.nullish(v.unknown(), null),
  v.transform((value) => {
    const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
    return Number.isNaN(time) ? undefined : new Date(time);
  }),
);

/** Only shown to people, so one of another type is not worth losing an entry for. */
const Href = v.pipe(
  v.nullish(v.unknown(), null),
  v.transform((value) => (typeof value === "string" && value !== "" ? publicHref(value) : undefined)),
);

/** Compared without regard to case; an unknown word is not an error. */
const State = v.pipe(
  Text,
  v.transform(
    (word): TransferState => TRANSFER_STATES.find((known) => known === word?.toLowerCase()) ?? "unknown",
  ),
);

const Recipients = v.nullish(
  v.array(
    v.pipe(
      v.object({ mail: v.nullish(v.string(), ""), id: ShortText, downloadUrl: Text }),
      v.transform(
        ({ mail, id, downloadUrl }): Recipient => ({
          mail,
          transferId: id,
          downloadUrl: downloadUrl === undefined ? undefined : new Secret(downloadUrl),
        }),
      ),
    ),
  ),
  [],
);

const Addressees = v.nullish(
  v.array(
    v.pipe(
      v.object({ mail: v.nullish(v.string(), "") }),
      v.transform(({ mail }) => mail),
    ),
  ),
  [],
);

const Listed = v.pipe(
  v.object({
    trackingId: Id,
    status: v.nullish(
      v.object({ sender: v.nullish(v.object({ email: ShortText })), recipients: Recipients, state: State }),
    ),
    transfer: v.nullish(
      v.object({
        recipients: v.nullish(v.object({ to: Addressees, cc: Addressees })),
        expirationDate: Time,
        securityMode: v.nullish(v.object({ config: v.nullish(v.object({ passwordMode: Text })) })),
      }),
    ),
  }),
  v.transform(
    ({ trackingId, status, transfer }): ListedTransfer => ({
      trackingId,
      state: status?.state ?? "unknown",
      sender: status?.sender?.email,
      recipients: status?.recipients ?? [],
      to: transfer?.recipients?.to ?? [],
      cc: transfer?.recipients?.cc ?? [],
      expires: transfer?.expirationDate,
      passwordMode: transfer?.securityMode?.config?.passwordMode,
    }),
  ),
);

const Legacy = v.object({ trackingId: Id, state: State, recipients: Recipients, href: Href });

const Information = v.pipe(
  v.object({ totalSize: Bytes, checksumAlgorithm: Text }),
  v.transform(
    ({ totalSize, checksumAlgorithm }): TransferInformation => ({
      totalBytes: totalSize,
      algorithm: checksumAlgorithm,
    }),
  ),
);

/** The href is left out on purpose: it may carry the password, and the ids say all that is needed. */
const File = v.pipe(
  v.object({ id: Id, fileName: v.string(), size: Bytes, checksum: Text }),
  v.transform(
    ({ id, fileName, size, checksum }): TransferFile => ({
      id,
      name: fileName,
      bytes: size,
      checksum: checksum?.trim(),
    }),
  ),
);

const Rule = v.object({ name: v.string(), details: v.nullish(v.record(v.string(), v.unknown()), {}) });

const Check = v.pipe(
  v.object({ valid: v.nullish(v.boolean()), rulesNotFulfilled: v.nullish(v.array(Rule), []) }),
  v.transform(
    ({ valid, rulesNotFulfilled: broken }): PasswordCheck => ({
      valid: valid ?? broken.length === 0,
      broken,
    }),
  ),
);

const Pack = v.pipe(
  v.object({
    id: Id,
    displayName: Text,
    locale: Text,
    version: v.nullish(v.union([v.string(), v.number()]), ""),
    lastChangeTimestamp: Time,
    href: Href,
  }),
  v.transform(
    (pack): LanguagePack => ({
      id: pack.id,
      displayName: pack.displayName ?? "",
      locale: pack.locale ?? "",
      version: String(pack.version),
      changed: pack.lastChangeTimestamp,
      href: pack.href,
    }),
  ),
);

const Verification = v.pipe(
  v.object({
    verified: v.boolean(),
    validUntil: Time,
    verificationMethods: v.nullish(v.array(v.string()), []),
  }),
  v.transform(({ verified, validUntil, verificationMethods }): VerificationStatus => {
    const methods = verificationMethods.map((word) => word.toLowerCase().replace(/[^a-z]/g, ""));
    return { verified, validUntil, methods };
  }),
);

const Token = v.pipe(
  v.object({ token: Plain, validUntil: Time }),
  v.transform(({ token, validUntil }): VerificationToken => ({ token: new Secret(token), validUntil })),
);

const Status = v.pipe(
  v.object({
    apiVersions: v.object({ uiApiVersions: v.array(v.object({ major: v.number(), minor: v.number() })) }),
  }),
  v.transform((status): readonly ApiVersion[] => status.apiVersions.uiApiVersions),
);

const decodeListedPage = decodePage(Listed);

/** Of one that is known nothing is looked at but its tracking-id. */
export function decodeListed(
  answer: unknown,
  what: string,
  isKnown: (trackingId: string) => boolean = () => false,
): Page<ListedTransfer> {
  return decodeListedPage(answer, what, (raw) => {
    const trackingId = (raw as { readonly trackingId?: unknown } | null)?.trackingId;
    return typeof trackingId === "string" && isKnown(trackingId) ? trackingId : undefined;
  });
}

export const decodeLegacy: Decoder<Page<LegacyTransfer>> = decodePage(Legacy);
export const decodeInformation: Decoder<TransferInformation> = decodeData(Information);
export const decodeFiles: Decoder<readonly TransferFile[]> = decodeData(v.array(File));
export const decodeRules: Decoder<readonly PasswordRule[]> = decodeData(v.array(Rule));
export const decodeCheck: Decoder<PasswordCheck> = decodeData(Check);
export const decodeLanguagePacks: Decoder<readonly LanguagePack[]> = decodeData(v.array(Pack));
export const decodeLanguagePack: Decoder<LanguagePack> = decodeData(Pack);
export const decodeVerification: Decoder<VerificationStatus> = decodeData(Verification);
export const decodeToken: Decoder<VerificationToken> = decodeData(Token);
export const decodeGeneratedPassword: Decoder<{ readonly password: string }> = decodeData(
  v.object({ password: Plain }),
);
export const decodeClientId: Decoder<{ readonly clientId: string }> = decodeData(
  v.object({ clientId: Plain }),
);
export const decodeStatus: Decoder<readonly ApiVersion[]> = (answer, what) => check(Status, answer, what);
