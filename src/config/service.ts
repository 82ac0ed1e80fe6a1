/** The `service` group, common or of one mailbox: address, client id and connection of a transfer service. */
import { inspect } from "node:util";
import type { Secret, SecretSource } from "../base/secret.ts";
import { defaultUserAgent } from "../base/version.ts";
import { CERTIFICATES, PRIVATE_KEY, type RawSecret, SECRET, secretWith } from "./credentials.ts";
import { type Draft, type Environment, type Given, type KeyPath, showValue } from "./draft.ts";
import { type Layer, pick, readKeys } from "./layers.ts";
import { key, READ, type SchemaKeys, SWITCH, TEXT, type WrittenKeys } from "./schema-nodes.ts";
import { DURATION } from "./units.ts";

/** The form of a client id. */
export const CLIENT_ID_PATTERN = "^[A-Za-z0-9]{50,4000}$";

export const SERVICE_KEYS = {
  baseUrl: {
    ...TEXT,
    title: "the address of a service",
    description:
      "The service's address: the part before `/api`. It must use https, unless the service is on this machine or `allowHttp` is true. It must not contain a user, password, query or fragment.",
  },
  clientId: {
    ...SECRET,
    title: `50 to 4000 letters and digits, or one of ${SECRET.title.replace(/^.*?one of /, "")}`,
    pattern: CLIENT_ID_PATTERN,
    [READ]: secretWith(describeWrongClientId),
    description:
      "The client id that the service's administrator has registered for the mailboxes. Default: Inlet creates a client id in a file in the state folder, and logs the path of that file, so that you can have the client id registered.",
  },
  verification: {
    type: ["string", "object"],
    title: "clientId, or { token: … }",
    pattern: "^clientId$",
    properties: {
      token: key(SECRET, "A token of an address that was verified with a mailed code."),
    },
    required: ["token"],
    additionalProperties: false,
    default: "clientId",
    description:
      "How mailboxes prove that they own their address: with the registered client id, or with an existing token.",
    writeOnly: true,
    [READ]: readToken,
  },
  acceptLanguage: {
    type: "string",
    title: "one or more languages such as en or de-CH,de;q=0.8",
    pattern: "^[A-Za-z0-9*][A-Za-z0-9*,;=. -]{0,199}$",
    default: "en",
    description: "The language of the service's own texts, such as the column titles of its checksums file.",
  },
  userAgent: {
    type: "string",
    title: "1 to 200 printable ASCII characters",
    pattern: "^[!-~]([ -~]{0,198}[!-~])?$",
    description:
      "How Inlet names itself in each request, in the header `User-Agent`. Some firewalls let only known names pass. Default: `inlet/VERSION (+HOMEPAGE)`.",
  },
  fileIdList: key(
    { type: "string", enum: ["repeat", "comma"], default: "repeat" },
    "How `inlet api zip --only` and `--except` send several file ids: `repeat` sends one parameter per id, `comma` sends one parameter with commas. Try the other if the ZIP does not contain the requested files.",
  ),
  ca: key(CERTIFICATES, "A PEM file with additional certificate authorities to trust."),
  cert: key(CERTIFICATES, "A PEM file with the client certificate, for mutual TLS. Requires `key`."),
  key: key(PRIVATE_KEY, "A PEM file with the private key of `cert`."),
  proxy: {
    ...TEXT,
    title: "the address of a proxy such as http://proxy.example.com:3128",
    description: "The proxy to use. Default: the variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.",
    writeOnly: true,
    [READ]: readProxy,
  },
  timeout: key(
    { ...DURATION, default: "30s" },
    "The longest silence of the service before a request fails, at most 24h.",
  ),
  allowHttp: key(
    { ...SWITCH, default: false },
    "Whether to allow plain http to other machines. Secrets then travel unencrypted: for tests only.",
  ),
} as const satisfies SchemaKeys;

export type RawService = WrittenKeys<typeof SERVICE_KEYS>;

/** The address for each scheme; empty for none. */
type ProxySettings = Readonly<Record<"http" | "https" | "except", string>>;

/** Names of this machine, for which plain http is harmless. */
export const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Captures an address without its scheme, and without a final `/api`: a host with a dot, maybe a port and a path. */
const BARE_HOST = /^(?:\/\/)?([\w-]+(?:\.[\w-]+)+(?::\d+)?(?:\/[\w./-]*?)?)\/*(?:\/api\/*)?$/;

/**
 * `ca`, `cert` and `key` are PEM texts. Without a client id, the daemon creates one in the state folder; without a token, it
 * obtains one with the client id.
 */
export type ServiceSettings = NonNullable<Awaited<ReturnType<typeof readService>>>;

/** Takes each key from the first layer that has it. Problems go to the draft; `undefined` without an address. */
export async function readService(layers: readonly Layer<RawService>[], draft: Draft) {
  const baseUrl = readBaseUrl(layers, draft);
  requireBoth(pick(layers, "cert"), pick(layers, "key"), draft);
  const read = await readKeys(SERVICE_KEYS, layers, draft);
  if (baseUrl === undefined) return undefined;
  const { verification: token, fileIdList: idListForm, timeout: timeoutMs, allowHttp, ...settings } = read;
  const { proxy = proxyOfEnvironment(draft.env), userAgent = defaultUserAgent() } = read;
  const service = { ...settings, baseUrl, token, proxy, userAgent, idListForm, timeoutMs };
  return shownAs(service, () => ({ ...service, key: service.key && "[secret]" }));
}

function readBaseUrl(layers: readonly Layer<RawService>[], { problems }: Draft): URL | undefined {
  const given = pick(layers, "baseUrl");
  if (given === undefined) return undefined;
  const { value: text, path } = given;
  const refuse = (message: string): undefined => {
    problems.add(path, message);
  };
  const url = URL.parse(text);
  // The part before an @ or after a ? may be a secret.
  const shown = /[@?#]/.test(text) ? "this" : showValue(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    const [, host] = BARE_HOST.exec(text) ?? [];
    if (host !== undefined) return refuse(`${shown} is not the address of a service: write https://${host}`);
    return refuse(`${shown} is not the address of a service such as https://transfer.example.com`);
  }
  if (url.username + url.password !== "") return refuse("must not contain a user or password");
  if (/[?#]/.test(text)) return refuse("must not contain ? or #");
  if (/\/api\/*$/.test(url.pathname)) return refuse(`${shown} ends with /api: give only the part before it`);
  const mayBePlain = LOOPBACK.test(url.hostname) || pick(layers, "allowHttp")?.value === true;
  if (url.protocol === "http:" && !mayBePlain) {
    return refuse(
      `${url.origin} would send secrets unencrypted: write https://${url.host}, or set service.allowHttp to true`,
    );
  }
  return url;
}

/** Does not quote the client id; `undefined` for a valid one. */
export function describeWrongClientId(secret: Secret): string | undefined {
  const isRight = new RegExp(CLIENT_ID_PATTERN, "u").test(secret.reveal());
  return isRight ? undefined : "is not a client id, which has 50 to 4000 letters and digits";
}

async function readToken(
  raw: string | { readonly token?: RawSecret },
  path: KeyPath,
  draft: Draft,
): Promise<SecretSource | undefined> {
  if (typeof raw === "string" || raw.token === undefined) return undefined;
  return SECRET[READ](raw.token, [...path, "token"], draft);
}

function requireBoth(
  cert: Given<string> | undefined,
  privateKey: Given<string> | undefined,
  { problems }: Draft,
): void {
  if (cert && !privateKey) problems.add(cert.path, "needs its private key too: set key");
  if (privateKey && !cert) problems.add(privateKey.path, "needs its certificate too: set cert");
}

function readProxy(proxy: string, path: KeyPath, draft: Draft): ProxySettings {
  const url = URL.parse(proxy);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.hostname === "") {
    draft.problems.add(path, `must be ${SERVICE_KEYS.proxy.title}`);
  } else if (url.password !== "" && draft.variableOf(path) === undefined) {
    draft.plainSecrets.push(path);
  }
  return hidden({ http: proxy, https: proxy, except: "" });
}

/** Lower-case names take precedence, as in other programs. */
export function proxyOfEnvironment(env: Environment): ProxySettings {
  const either = (name: string) => env[name.toLowerCase()] ?? env[name] ?? "";
  return hidden({ http: either("HTTP_PROXY"), https: either("HTTPS_PROXY"), except: either("NO_PROXY") });
}

/** Hides a proxy's password when the settings are printed. */
function hidden(proxy: ProxySettings): ProxySettings {
  const { http, https } = proxy;
  return shownAs(proxy, () => ({ ...proxy, http: withoutUser(http), https: withoutUser(https) }));
}

function shownAs<Value extends object>(value: Value, shown: () => object): Value {
  return Object.defineProperties(value, { toJSON: { value: shown }, [inspect.custom]: { value: shown } });
}

function withoutUser(address: string): string {
  return address.replace(/^.*@/, "[secret]@");
}
