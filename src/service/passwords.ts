/** The service's rules for transfer passwords. */
import { Secret } from "../base/secret.ts";
import type { Http } from "./http.ts";
import type { PasswordCheck, PasswordRule } from "./port.ts";
import { decodeCheck, decodeGeneratedPassword, decodeRules } from "./wire.ts";

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

export async function fetchPasswordRules(http: Http, signal: AbortSignal): Promise<readonly PasswordRule[]> {
  const what = "the password rules";
  return decodeRules(await http.json({ what, path: ["password", "requirements"] }, signal), what);
}
