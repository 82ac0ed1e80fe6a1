/** Reads requests: headers and their query twins, parameters, bodies; what is missing or malformed is refused. */
import type { IncomingMessage } from "node:http";
import type { Call, World } from "./call.ts";
import { ServiceError } from "./errors.ts";
import type { Settings } from "./settings.ts";

/** What may come in a header or in the query. */
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

/** The header, or else its twin, as it was sent. */
export function parameter(call: Pick<Call, "headers" | "url">, name: ParameterName): string | undefined {
  const { header, twin } = PARAMETERS[name];
  const value = call.headers[header];
  return value === undefined ? (call.url.searchParams.get(twin) ?? undefined) : String(value);
}

/** Checks what every request carries; only the one that asks for a client id needs none. */
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

/** Refuses a client that has not shown that the address is its own. */
export function checkVerified(call: Call, { accounts }: World, address: string): void {
  const token = parameter(call, "verificationToken");
  if (token === undefined || !accounts.isVerified(clientIdOf(call), address, token)) {
    throw new ServiceError("tokenRefused");
  }
}

/** The transfer password, decoded. A query is decoded by its nature, a header here. */
export function passwordOf(call: Call): string {
  const { header } = PARAMETERS.password;
  if (call.headers[header] === undefined) return required(call, "password");
  try {
    return decodeURIComponent(required(call, "password"));
  } catch {
    throw new ServiceError("badValue", header);
  }
}

/** A whole number of the query, or the default where it is not given. */
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

/** The body as JSON; `undefined` where there is none. */
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
  if (!/^\d{1,15}$/.test(text)) throw new ServiceError("badValue", name);
  return Number(text);
}

async function readBody(message: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      // The rest is read and dropped, so that the client gets to see the answer.
      message.resume();
      throw new ServiceError("bodyTooLarge");
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
