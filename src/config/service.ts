/** How to reach a service: which address, as whom, through what. */
import { inspect } from "node:util";
import type { Secret, SecretSource } from "../base/secret.ts";
import type { Draft } from "./draft.ts";
import type { Environment } from "./environment.ts";
import { parseSecret } from "./parse-secret.ts";
import { readPemFiles } from "./pem.ts";
import { type Given, type KeyPath, showValue } from "./problems.ts";
import type { RawService } from "./raw.ts";
import { CLIENT_ID_PATTERN, SERVICE_KEYS } from "./schema-service.ts";
import type { ServiceSettings } from "./settings.ts";
import { parseDuration } from "./units.ts";

/** Some keys of a service, and where they were written. */
export interface ServiceLayer {
  readonly raw: RawService;
  readonly path: KeyPath;
}

/** Names of this machine, to which plain http is harmless. */
export const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** For each key the first layer that has it counts. Problems go to the draft; `undefined` where there is no address. */
export async function parseService(
  layers: readonly ServiceLayer[],
  draft: Draft,
): Promise<ServiceSettings | undefined> {
  const pick = createPick(layers);
  const timeout = pick("timeout");
  const timeoutMs = parseDuration(timeout?.value ?? SERVICE_KEYS.timeout.default);
  if (timeout !== undefined && timeoutMs === undefined) {
    draft.problems.add(timeout.path, `${showValue(timeout.value)} is longer than 24h`);
  }
  const baseUrl = parseBaseUrl(pick, draft);
  const settings = {
    clientId: await parseClientId(pick, draft),
    token: await parseToken(pick, draft),
    acceptLanguage: pick("acceptLanguage")?.value ?? SERVICE_KEYS.acceptLanguage.default,
    idListForm: pick("fileIdList")?.value ?? SERVICE_KEYS.fileIdList.default,
    ...(await readPemFiles({ ca: pick("ca"), cert: pick("cert"), key: pick("key") }, draft)),
    proxy: parseProxy(pick, draft),
    timeoutMs: timeoutMs ?? 0,
  };
  return baseUrl === undefined ? undefined : concealing({ baseUrl, ...settings });
}

type Pick = <Key extends keyof RawService>(key: Key) => Given<NonNullable<RawService[Key]>> | undefined;

function createPick(layers: readonly ServiceLayer[]): Pick {
  return (key) => {
    for (const { raw, path } of layers) {
      const value = raw[key];
      if (value !== undefined) return { value, path: [...path, key] };
    }
    return undefined;
  };
}

function parseBaseUrl(pick: Pick, { problems }: Draft): URL | undefined {
  const given = pick("baseUrl");
  if (given === undefined) return undefined;
  const { value: text, path } = given;
  const refuse = (message: string): undefined => {
    problems.add(path, message);
  };
  const url = URL.parse(text);
  // What stands before an @ or behind a ? may be a secret.
  const shown = /[@?#]/.test(text) ? "this" : showValue(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    return refuse(`${shown} is not the address of a service such as https://transfer.example.com`);
  }
  if (url.username + url.password !== "") return refuse("must not hold a user or password");
  if (/[?#]/.test(text)) return refuse("must end before any ? or #");
  if (/\/api\/*$/.test(url.pathname))
    return refuse(`${shown} ends with /api: give only what stands before it`);
  const mayBePlain = LOOPBACK.test(url.hostname) || pick("allowHttp")?.value === true;
  if (url.protocol === "http:" && !mayBePlain) {
    return refuse(
      `${url.origin} would send secrets unencrypted: use https, or set service.allowHttp to true`,
    );
  }
  return url;
}

function describeWrongClientId(secret: Secret): string | undefined {
  const isRight = new RegExp(CLIENT_ID_PATTERN, "u").test(secret.reveal());
  return isRight ? undefined : "is no client id: that is 50 to 4000 letters and digits";
}

async function parseClientId(pick: Pick, draft: Draft): Promise<SecretSource | undefined> {
  const given = pick("clientId");
  return given === undefined ? undefined : parseSecret(given.value, given.path, draft, describeWrongClientId);
}

async function parseToken(pick: Pick, draft: Draft): Promise<SecretSource | undefined> {
  const given = pick("verification");
  if (given === undefined || given.value === "clientId" || given.value.token === undefined) return undefined;
  return parseSecret(given.value.token, [...given.path, "token"], draft);
}

function parseProxy(pick: Pick, draft: Draft): ServiceSettings["proxy"] {
  const given = pick("proxy");
  if (given === undefined) return proxyOfEnvironment(draft.env);
  const { value: proxy, path } = given;
  const url = URL.parse(proxy);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.hostname === "") {
    draft.problems.add(path, `must be ${SERVICE_KEYS.proxy.title}`);
  } else if (url.password !== "" && draft.variableOf(path) === undefined) {
    draft.plainSecrets.push(path);
  }
  return { http: proxy, https: proxy, except: "" };
}

/** The small-letter names win, as they do elsewhere. */
function proxyOfEnvironment(env: Environment): ServiceSettings["proxy"] {
  const either = (name: string) => env[name.toLowerCase()] ?? env[name] ?? "";
  return { http: either("HTTP_PROXY"), https: either("HTTPS_PROXY"), except: either("NO_PROXY") };
}

/** Keeps the private key, and a password in a proxy's address, out of whatever prints the settings. */
function concealing(settings: ServiceSettings): ServiceSettings {
  const shown = () => ({
    ...settings,
    key: settings.key && "[secret]",
    proxy: {
      ...settings.proxy,
      http: withoutUser(settings.proxy.http),
      https: withoutUser(settings.proxy.https),
    },
  });
  return Object.defineProperties(settings, {
    toJSON: { value: shown },
    [inspect.custom]: { value: shown },
  });
}

function withoutUser(address: string): string {
  return address.replace(/^.*@/, "[secret]@");
}
