/** How to reach the service, from the environment: which address, as whom, through what. */
import { readFile } from "node:fs/promises";
import { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ServiceSettings {
  readonly baseUrl: URL;
  /** Missing: the operations that need none still work. */
  readonly clientId: Secret | undefined;
  /** A token obtained before; missing: obtained on the strength of the client id. */
  readonly token: Secret | undefined;
  readonly acceptLanguage: string;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly proxy: { readonly http: string; readonly https: string; readonly except: string };
  readonly timeoutMs: number;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
const DURATION_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DEFAULT_TIMEOUT = "30s";

/** `baseUrl`, where given, wins over the environment. */
export async function readServiceSettings(
  env: Environment,
  baseUrl: string | undefined,
): Promise<ServiceSettings> {
  const { INLET_SERVICE__PROXY: proxy } = env;
  return {
    baseUrl: parseBaseUrl(env, baseUrl),
    clientId: parseClientId(env["INLET_SERVICE__CLIENTID"]),
    token: secretOf(env["INLET_SERVICE__VERIFICATION__TOKEN"]),
    acceptLanguage: env["INLET_SERVICE__ACCEPTLANGUAGE"] || "en",
    ca: await readPem(env, "INLET_SERVICE__CA"),
    cert: await readPem(env, "INLET_SERVICE__CERT"),
    key: await readPem(env, "INLET_SERVICE__KEY"),
    proxy: proxy === undefined ? proxyOfEnvironment(env) : { http: proxy, https: proxy, except: "" },
    timeoutMs: parseDuration("INLET_SERVICE__TIMEOUT", env["INLET_SERVICE__TIMEOUT"] || DEFAULT_TIMEOUT),
  };
}

function parseBaseUrl(env: Environment, given: string | undefined): URL {
  const text = given ?? env["INLET_SERVICE__BASEURL"];
  if (!text) throw invalid("no service is named: give --base-url or set INLET_SERVICE__BASEURL");
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.search + url.hash !== "") {
    throw invalid(`${JSON.stringify(withoutCredentials(text))} is not the address of a service`);
  }
  if (url.username + url.password !== "")
    throw invalid("the service's address must not hold a user or password");
  const mayBePlain = LOOPBACK.test(url.hostname) || env["INLET_SERVICE__ALLOWHTTP"] === "true";
  if (url.protocol === "http:" && !mayBePlain) {
    throw invalid(
      `${url.origin} would send secrets unencrypted: use https, or set INLET_SERVICE__ALLOWHTTP=true`,
    );
  }
  return url;
}

function withoutCredentials(text: string): string {
  return text.replace(/\/\/[^/]*@/, "//");
}

function parseClientId(text: string | undefined): Secret | undefined {
  if (!text) return undefined;
  if (!/^[A-Za-z0-9]{50,4000}$/.test(text)) {
    throw invalid("INLET_SERVICE__CLIENTID must be 50 to 4000 letters and digits");
  }
  return new Secret(text);
}

function secretOf(text: string | undefined): Secret | undefined {
  return text ? new Secret(text) : undefined;
}

async function readPem(env: Environment, name: string): Promise<string | undefined> {
  const path = env[name];
  if (!path) return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new Fault("CONFIG_INVALID", { detail: `${name}: ${path} cannot be read`, cause });
  }
}

/** The small-letter names win, as they do elsewhere. */
function proxyOfEnvironment(env: Environment): ServiceSettings["proxy"] {
  const either = (name: string) => env[name.toLowerCase()] ?? env[name] ?? "";
  return { http: either("HTTP_PROXY"), https: either("HTTPS_PROXY"), except: either("NO_PROXY") };
}

function parseDuration(name: string, text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const unitMs = DURATION_MS[unit ?? ""];
  if (count === undefined || unitMs === undefined || Number(count) === 0) {
    throw invalid(`${name}: ${JSON.stringify(text)} is not a duration such as 30s or 5m`);
  }
  return Number(count) * unitMs;
}

function invalid(detail: string): Fault {
  return new Fault("CONFIG_INVALID", { detail });
}
