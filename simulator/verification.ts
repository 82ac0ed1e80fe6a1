/** Endpoints of client ids and the verification of addresses. */
import type { Call, Handler } from "./call.ts";
import { ServiceError } from "./errors.ts";
import { dataReply, formatDate, textReply } from "./reply.ts";
import { clientIdOf, parameter, readCallBody } from "./requests.ts";

export const createClientId: Handler = (_call, { accounts }) =>
  dataReply({ clientId: accounts.createClientId() });

export const showVerification: Handler = (call, { accounts }) => {
  const { address = "" } = call.path;
  const token = accounts.verification(clientIdOf(call), address, parameter(call, "verificationToken"));
  return dataReply({
    verified: token !== undefined,
    ...(token === undefined ? {} : { validUntil: formatDate(token.validUntilMs) }),
    verificationMethods: accounts.isRegistered(clientIdOf(call)) ? ["CLIENT_ID", "EMAIL"] : ["EMAIL"],
  });
};

export const mailCode: Handler = (call, { accounts }) => {
  const { address = "" } = call.path;
  if (!accounts.mailCode(clientIdOf(call), address)) throw new ServiceError("tooManyRequests");
  return textReply(200, "text/plain", "");
};

export const issueToken: Handler = async (call, { accounts, settings }) => {
  const { address = "" } = call.path;
  const clientId = clientIdOf(call);
  const code = await readCode(call);
  if (code === undefined && !accounts.isRegistered(clientId)) {
    throw new ServiceError("proofRefused", "the client id is not registered");
  }
  if (code !== undefined && !accounts.redeemCode(clientId, address, code)) {
    throw new ServiceError("proofRefused", "the code is wrong");
  }
  const waitMs = accounts.tokenWaitMs();
  if (waitMs > 0) {
    const isTold = settings.tokenLimit?.retryAfter === true;
    const headers = isTold ? { "Retry-After": String(Math.ceil(waitMs / 1_000)) } : {};
    throw new ServiceError("tooManyRequests", undefined, headers);
  }
  const { token, validUntilMs } = accounts.issueToken(clientId, address);
  return dataReply({ token, validUntil: formatDate(validUntilMs) });
};

async function readCode(call: Call): Promise<string | undefined> {
  const body = await readCallBody(call);
  if (body === undefined) return undefined;
  if (typeof body !== "object" || body === null)
    throw new ServiceError("badValue", "the body is not an object");
  const code = "verificationCode" in body ? (body.verificationCode ?? undefined) : undefined;
  if (code !== undefined && typeof code !== "string") throw new ServiceError("badValue", "verificationCode");
  return code;
}
