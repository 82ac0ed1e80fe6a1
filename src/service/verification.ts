/** Who we are to the service: client id, verified addresses and their tokens, and the version it speaks. */
import { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { headerOf } from "./bodies.ts";
import type { Http } from "./http.ts";
import type { ApiVersion, VerificationStatus, VerificationToken } from "./port.ts";
import { decodeClientId, decodeStatus, decodeToken, decodeVerification } from "./wire.ts";

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

/** Every answer says when it was made: that of the status does for anybody who asks. */
export async function fetchServerTime(http: Http, signal: AbortSignal): Promise<Date | undefined> {
  const answer = await http.stream({ what: "the server status", path: ["status"], anonymous: true }, signal);
  answer.body.cancel();
  const time = Date.parse(headerOf(answer, "date") ?? "");
  return Number.isNaN(time) ? undefined : new Date(time);
}
