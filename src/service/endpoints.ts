/** The service's endpoints apart from lists and downloads. */
import { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import type { TransferFile, TransferInformation } from "../model/transfer.ts";
import { headerOf, readAtMost } from "./bodies.ts";
import { type ChecksumReport, parseChecksums } from "./checksums.ts";
import type { Downloads } from "./downloads.ts";
import type { Http } from "./http.ts";
import type {
  ApiVersion,
  LanguagePack,
  PasswordCheck,
  PasswordPolicyRule,
  TransferAccess,
  VerificationStatus,
  VerificationToken,
} from "./port.ts";
import {
  decodeCheck,
  decodeClientId,
  decodeFile,
  decodeGeneratedPassword,
  decodeInformation,
  decodeLanguagePack,
  decodeLanguagePacks,
  decodeRules,
  decodeStatus,
  decodeToken,
  decodeVerification,
} from "./wire.ts";

/** Limits for the checksums CSV: a row is a name and a checksum, in UTF-16 at worst, after a subject. */
const CHECKSUM_BYTES = { most: 8 * 1024 * 1024, subject: 256 * 1024, row: 256, perCharacter: 3 };

const PACKS = ["products", "api.rest", "language-packs"];

export async function fetchInformation(
  http: Http,
  { transferId, password }: TransferAccess,
  signal: AbortSignal,
): Promise<TransferInformation> {
  const what = "the transfer's information";
  return decodeInformation(
    await http.json({ what, path: ["transfers", transferId], password, isAttempt: true }, signal),
    what,
  );
}

export async function fetchFiles(
  http: Http,
  { transferId, password }: TransferAccess,
  signal: AbortSignal,
  onCount: (count: number) => void = () => {},
): Promise<readonly TransferFile[]> {
  const what = "the list of files";
  const files: TransferFile[] = [];
  await http.entries({ what, path: ["transfers", transferId, "files"], password }, signal, (entry) => {
    files.push(decodeFile(entry, `${what}, entry ${files.length + 1}`));
    onCount(files.length);
  });
  if (new Set(files.map((file) => file.id)).size < files.length) {
    throw new Fault("BAD_ANSWER", { detail: `${what}: two files have the same id` });
  }
  return files;
}

export async function fetchChecksums(
  downloads: Downloads,
  access: TransferAccess,
  files: readonly TransferFile[],
  signal: AbortSignal,
): Promise<ChecksumReport> {
  const download = await downloads.openChecksums(access, signal);
  const { most, subject, row, perCharacter } = CHECKSUM_BYTES;
  const rows = files.reduce((sum, { name }) => sum + row + name.length * perCharacter, 0);
  const mostBytes = Math.min(most, subject + rows);
  const bytes = await readAtMost(download.body, mostBytes);
  if (bytes === undefined) {
    const detail = `more than ${mostBytes} bytes for ${files.length} files`;
    throw new Fault("CHECKSUMS_UNREADABLE", { detail });
  }
  return parseChecksums(bytes, download.contentType, files);
}

export async function fetchVerification(
  http: Http,
  email: string,
  token: Secret | undefined,
  signal: AbortSignal,
): Promise<VerificationStatus> {
  const what = `the verification of ${email}`;
  return decodeVerification(
    await http.json({ what, path: ["users", email, "verification"], token }, signal),
    what,
  );
}

export async function mailVerificationCode(http: Http, email: string, signal: AbortSignal): Promise<void> {
  const path = ["users", email, "verification", "code", "email"];
  await http.json({ what: `a verification code for ${email}`, method: "POST", path }, signal);
}

export async function obtainToken(
  http: Http,
  email: string,
  code: Secret | undefined,
  signal: AbortSignal,
): Promise<VerificationToken> {
  const what = `a verification token for ${email}`;
  const path = ["users", email, "verification", "token"];
  const json = code === undefined ? undefined : { verificationCode: code.reveal() };
  const secrets = code === undefined ? [] : [code];
  return decodeToken(await http.json({ what, method: "POST", path, json, secrets }, signal), what);
}

export async function requestClientId(http: Http, signal: AbortSignal): Promise<Secret> {
  const what = "a client id";
  const answer = await http.json({ what, path: ["clients"], anonymous: true }, signal);
  return new Secret(decodeClientId(answer, what).clientId);
}

export async function fetchApiVersions(
  http: Http,
  signal: AbortSignal,
): Promise<readonly ApiVersion[] | undefined> {
  const what = "the server status";
  try {
    return decodeStatus(await http.json({ what, path: ["status"], anonymous: true }, signal), what);
  } catch (error) {
    const absent = ["NO_SUCH_ENDPOINT", "NOT_FOUND", "API_VERSION"];
    if (error instanceof Fault && absent.includes(error.code)) return undefined;
    throw error;
  }
}

/** From the Date header of the status, which needs no token. */
export async function fetchServerTime(http: Http, signal: AbortSignal): Promise<Date | undefined> {
  const answer = await http.stream({ what: "the server status", path: ["status"], anonymous: true }, signal);
  answer.body.cancel();
  const time = Date.parse(headerOf(answer, "date") ?? "");
  return Number.isNaN(time) ? undefined : new Date(time);
}

export async function generatePassword(http: Http, signal: AbortSignal): Promise<Secret> {
  const what = "a generated password";
  return new Secret(
    decodeGeneratedPassword(await http.json({ what, path: ["password"] }, signal), what).password,
  );
}

export async function checkPassword(
  http: Http,
  password: Secret,
  signal: AbortSignal,
): Promise<PasswordCheck> {
  const what = "the check of a password";
  const json = { password: password.reveal() };
  const call = { what, method: "POST", path: ["password"], json, secrets: [password] } as const;
  return decodeCheck(await http.json(call, signal), what);
}

export async function fetchPasswordRules(
  http: Http,
  signal: AbortSignal,
): Promise<readonly PasswordPolicyRule[]> {
  const what = "the password rules";
  return decodeRules(await http.json({ what, path: ["password", "requirements"] }, signal), what);
}

export async function fetchLanguagePacks(
  http: Http,
  majorVersion: number | undefined,
  signal: AbortSignal,
): Promise<readonly LanguagePack[]> {
  const what = "the language packs";
  const query = majorVersion === undefined ? [] : [["major-version", String(majorVersion)] as const];
  return decodeLanguagePacks(await http.json({ what, path: PACKS, query }, signal), what);
}

export async function fetchLanguagePack(http: Http, id: string, signal: AbortSignal): Promise<LanguagePack> {
  const what = `the language pack ${id}`;
  return decodeLanguagePack(await http.json({ what, path: [...PACKS, id] }, signal), what);
}
