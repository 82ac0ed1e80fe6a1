/** The `service` group, common or of one mailbox: how to reach a transfer service, and as which client. */
import { inspect } from "node:util";
import type { Secret, SecretSource } from "../base/secret.ts";
import { readPemFiles, readSecretKey, SECRET } from "./credentials.ts";
import { type Draft, type Environment, type Given, type KeyPath, showValue } from "./draft.ts";
import { PATH, type SchemaKeys, SWITCH, TEXT, type WrittenKeys } from "./schema-nodes.ts";
import type { ServiceSettings } from "./settings.ts";
import { DURATION, readDuration } from "./units.ts";

/** The form of a client id. */
export const CLIENT_ID_PATTERN = "^[A-Za-z0-9]{50,4000}$";

export const SERVICE_KEYS = {
  baseUrl: {
    ...TEXT,
    title: "the address of a service",
    description:
      "The service's address: the part before `/api`. It must be https, unless it is on this machine or `allowHttp` is true, and hold no user, password, query or fragment.",
  },
  clientId: {
    ...SECRET,
    title: `50 to 4000 letters and digits, or one of ${SECRET.title.replace(/^.*?one of /, "")}`,
    pattern: CLIENT_ID_PATTERN,
    description:
      "The client id that the service's administrator has registered for the mailboxes. Where absent, one is made, kept in the state folder, and shown so that it can be registered.",
  },
  verification: {
    type: ["string", "object"],
    title: "clientId, or { token: … }",
    pattern: "^clientId$",
    properties: {
      token: {
        ...SECRET,
        description: "A token obtained before, for an address that was verified by a mailed code.",
      },
    },
    required: ["token"],
    additionalProperties: false,
    default: "clientId",
    description:
      "How the mailboxes prove that they own their address: by the registered client id, or by a token obtained before.",
    writeOnly: true,
  },
  acceptLanguage: {
    type: "string",
    title: "one or more languages such as en or de-CH,de;q=0.8",
    pattern: "^[A-Za-z0-9*][A-Za-z0-9*,;=. -]{0,199}$",
    default: "en",
    description: "The language of the service's own texts, such as the titles in its checksums file.",
  },
  fileIdList: {
    type: "string",
    enum: ["repeat", "comma"],
    default: "repeat",
    description:
      "How `inlet api zip --only` and `--except` send several file ids: `repeat` sends the parameter once for each, `comma` sends it once with commas between them. Try the other where the ZIP does not hold the files that were asked for.",
  },
  ca: {
    ...PATH,
    description: "A PEM file with certificate authorities to trust beside the usual ones.",
  },
  cert: { ...PATH, description: "A PEM file with the certificate we show, for mutual TLS. Needs `key`." },
  key: { ...PATH, description: "A PEM file with the private key that belongs to `cert`." },
  proxy: {
    ...TEXT,
    title: "the address of a proxy such as http://proxy.example.com:3128",
    description:
      "The proxy to go through. Where absent, the variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` count.",
    writeOnly: true,
  },
  timeout: {
    ...DURATION,
    default: "30s",
    description: "How long the service may be silent, at most 24h.",
  },
  allowHttp: {
    ...SWITCH,
    default: false,
    description:
      "Whether plain http may be used to other machines. Secrets then travel unencrypted: for tests only.",
  },
} as const satisfies SchemaKeys;

export type RawService = WrittenKeys<typeof SERVICE_KEYS>;

/** Some keys of a service, and the path of their group. */
export interface ServiceLayer {
  readonly raw: RawService;
  readonly path: KeyPath;
}

/** Names of this machine, to which plain http is harmless. */
export const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** For each key the first layer that has it counts. Problems go to the draft; `undefined` without an address. */
export async function readService(
  layers: readonly ServiceLayer[],
  draft: Draft,
): Promise<ServiceSettings | undefined> {
  const pick = createPick(layers);
  const timeout = pick("timeout") ?? { value: SERVICE_KEYS.timeout.default, path: [] };
  const baseUrl = readBaseUrl(pick, draft);
  const settings = {
    clientId: await readClientId(pick, draft),
    token: await readToken(pick, draft),
    acceptLanguage: pick("acceptLanguage")?.value ?? SERVICE_KEYS.acceptLanguage.default,
    idListForm: pick("fileIdList")?.value ?? SERVICE_KEYS.fileIdList.default,
    ...(await readPemFiles({ ca: pick("ca"), cert: pick("cert"), key: pick("key") }, draft)),
    proxy: readProxy(pick, draft),
    timeoutMs: readDuration(timeout.value, timeout.path, draft),
  };
  return baseUrl === undefined ? undefined : hideSecrets({ baseUrl, ...settings });
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

function readBaseUrl(pick: Pick, { problems }: Draft): URL | undefined {
  const given = pick("baseUrl");
  if (given === undefined) return undefined;
  const { value: text, path } = given;
  const refuse = (message: string): undefined => {
    problems.add(path, message);
  };
  const url = URL.parse(text);
  // The part before an @ or after a ? may be a secret.
  const shown = /[@?#]/.test(text) ? "this" : showValue(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    return refuse(`${shown} is not the address of a service such as https://transfer.example.com`);
  }
  if (url.username + url.password !== "") return refuse("must not hold a user or password");
  if (/[?#]/.test(text)) return refuse("must end before any ? or #");
  if (/\/api\/*$/.test(url.pathname)) return refuse(`${shown} ends with /api: give only the part before it`);
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

async function readClientId(pick: Pick, draft: Draft): Promise<SecretSource | undefined> {
  const given = pick("clientId");
  return given === undefined
    ? undefined
    : readSecretKey(given.value, given.path, draft, describeWrongClientId);
}

async function readToken(pick: Pick, draft: Draft): Promise<SecretSource | undefined> {
  const given = pick("verification");
  if (given === undefined || typeof given.value === "string" || given.value.token === undefined)
    return undefined;
  return readSecretKey(given.value.token, [...given.path, "token"], draft);
}

function readProxy(pick: Pick, draft: Draft): ServiceSettings["proxy"] {
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

/** The lower-case names win, as in other programs. */
function proxyOfEnvironment(env: Environment): ServiceSettings["proxy"] {
  const either = (name: string) => env[name.toLowerCase()] ?? env[name] ?? "";
  return { http: either("HTTP_PROXY"), https: either("HTTPS_PROXY"), except: either("NO_PROXY") };
}

/** Hides the private key, and a password in a proxy's address, when the settings are printed. */
function hideSecrets(settings: ServiceSettings): ServiceSettings {
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
