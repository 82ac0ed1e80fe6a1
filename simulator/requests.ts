/** Reads headers (or the query parameters that replace them), parameters and bodies of requests. Throws ServiceErrors. */
import type { IncomingMessage } from "node:http";
import type { Call, World } from "./call.ts";
import { ServiceError } from "./errors.ts";
import type { Settings } from "./settings.ts";

/** Parameters in a header, or in the query as its `twin`. */
export const PARAMETERS = {
  majorVersion: { header: "x-cs-majorapiversion", twin: "major-api-version" },
  minimumMinorVersion: { header: "x-cs-minimumminorapiversion", twin: "minimum-minor-api-version" },
  productKey: { header: "x-cs-productkey", twin: "product-key" },
  clientId: { header: "x-cs-clientid", twin: "client-id" },
  verificationToken: { header: "x-cs-verificationtoken", twin: "verification-token" },
  password: { header: "x-cs-password", twin: "password" },
} as const;

export type ParameterName = keyof typeof PARAMETERS;

export const PRODUCT_KEY = "api.rest";

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_INT32 = 2 ** 31 - 1;

/** The header, else its twin, as sent. */
export function parameter(call: Pick<Call, "headers" | "url">, name: ParameterName): string | undefined {
  const { header, twin } = PARAMETERS[name];
  const value = call.headers[header];
  return value === undefined ? (call.url.searchParams.get(twin) ?? undefined) : String(value);
}

/** Checks the parameters of every request. Only the request for a client id needs no client id. */
export function checkStandardParameters(call: Call, { version }: Settings, needsClientId: boolean): void {
  const major = parseInteger(required(call, "majorVersion"), PARAMETERS.majorVersion.header);
  const minimumMinor = parseInteger(
    required(call, "minimumMinorVersion"),
    PARAMETERS.minimumMinorVersion.header,
  );
  if (required(call, "productKey") !== PRODUCT_KEY) {
    throw new ServiceError("badValue", PARAMETERS.productKey.header);
  }
  if (needsClientId && !/^[A-Za-z0-9]{50,4000}$/.test(clientIdOf(call))) {
    throw new ServiceError("badValue", PARAMETERS.clientId.header);
  }
  if (major !== version.major || minimumMinor > version.minor) throw new ServiceError("versionNotServed");
}

export function clientIdOf(call: Call): string {
  return required(call, "clientId");
}

/** Refuses a client that has not verified the address. */
export function checkVerified(call: Call, { accounts }: World, address: string): void {
  const token = parameter(call, "verificationToken");
  if (token === undefined || accounts.verification(clientIdOf(call), address, token) === undefined) {
    throw new ServiceError("tokenRefused");
  }
}

/** The decoded transfer password. A query is already decoded, a header is not. */
export function passwordOf(call: Call): string {
  const { header } = PARAMETERS.password;
  if (call.headers[header] === undefined) return required(call, "password");
  try {
    return decodeURIComponent(required(call, "password"));
  } catch {
    throw new ServiceError("badValue", header);
  }
}

/** A whole number in the query, else the default. */
export function integerParameter(call: Call, name: string, fallback: number, atLeast: number): number {
  const text = call.url.searchParams.get(name);
  const value = text === null ? fallback : parseInteger(text, name);
  if (value < atLeast) throw new ServiceError("badValue", name);
  return value;
}

export function booleanParameter(call: Call, name: string): boolean | undefined {
  const text = call.url.searchParams.get(name);
  if (text === null) return undefined;
  if (text !== "true" && text !== "false") throw new ServiceError("badValue", name);
  return text === "true";
}

/** A path variable of a wrong form is refused before the operation looks for its thing. */
export function checkPath({ path }: Call): void {
  const { address, transfer } = path;
  if (address !== undefined && !/^[^@]+@[^@]+$/.test(address))
    throw new ServiceError("badPath", "email-address");
  if (transfer !== undefined && !/^[\w-]+$/.test(transfer)) throw new ServiceError("badPath", "transfer-id");
}

/** Refuses a client that names the types that it accepts, if the answer's is not among them. */
export function checkAccept({ headers }: Call, type: string): void {
  const { accept } = headers;
  if (accept === undefined) return;
  const names = accept.split(",").map((part) => part.split(";")[0]?.trim().toLowerCase());
  if (![type, type.replace(/\/.*/, "/*"), "*/*"].some((name) => names.includes(name))) {
    throw new ServiceError("notAcceptable");
  }
}

/** As `readJson`, for operations of the service, which take no other type. */
export async function readCallBody({ message, headers }: Call): Promise<unknown> {
  const body = await readJson(message, MAX_BODY_BYTES);
  const isJson = /^application\/json\b/i.test(headers["content-type"] ?? "");
  if (body !== undefined && !isJson) throw new ServiceError("wrongType");
  return body;
}

/** The body as JSON; `undefined` for an empty one. */
export async function readJson(message: IncomingMessage, maxBytes: number): Promise<unknown> {
  const text = (await readBody(message, maxBytes)).toString().trim();
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError("badValue", "the body is not JSON");
  }
}

function required(call: Call, name: ParameterName): string {
  const value = parameter(call, name);
  if (value === undefined || value === "")
    throw new ServiceError("parameterMissing", PARAMETERS[name].header);
  return value;
}

function parseInteger(text: string, name: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > MAX_INT32) throw new ServiceError("badValue", name);
  return Number(text);
}

async function readBody(message: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      // Read and drop the rest, so that the client receives the answer.
      message.resume();
      throw new ServiceError("bodyTooLarge");
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
