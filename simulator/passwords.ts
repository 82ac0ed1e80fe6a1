/** Endpoints of transfer passwords: generate one, check one, list the rules. */
import type { Handler } from "./call.ts";
import { ServiceError } from "./errors.ts";
import { brokenRules, generatePassword, listRules } from "./password-rules.ts";
import { dataReply } from "./reply.ts";
import { readCallBody } from "./requests.ts";

/** Returns another password at each call. */
export function createPasswordGenerator(): Handler {
  let generated = 0;
  return (_call, { settings }) => {
    generated += 1;
    return dataReply({
      password: generatePassword(settings.passwordRules, settings.seed, `request ${generated}`),
    });
  };
}

export const checkPassword: Handler = async (call, { settings }) => {
  const body = await readCallBody(call);
  const isObject = typeof body === "object" && body !== null;
  if (!isObject || !("password" in body)) throw new ServiceError("parameterMissing", "password");
  if (typeof body.password !== "string") throw new ServiceError("badValue", "password");
  const rulesNotFulfilled = brokenRules(body.password, settings.passwordRules);
  return dataReply({ valid: rulesNotFulfilled.length === 0, rulesNotFulfilled });
};

export const showRules: Handler = (_call, { settings }) => dataReply(listRules(settings.passwordRules));
