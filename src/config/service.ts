/** The `service` group, common or of one mailbox: address, client id and connection of a transfer service. */
import { inspect } from "node:util";
import type { ConnectionOptions } from "../base/connection.ts";
import type { Secret } from "../base/secret.ts";
import { defaultUserAgent } from "../base/version.ts";
import { CLIENT_ID_PATTERN } from "../model/token.ts";
import { CERTIFICATES, PRIVATE_KEY, type RawSecret, SECRET, secretWith } from "./credentials.ts";
import { type Environment, type Spot, showValue } from "./draft.ts";
import {
  group,
  key,
  READ,
  type Read,
  type SchemaKeys,
  type SchemaNode,
  SWITCH,
  TEXT,
} from "./schema-nodes.ts";
import { DURATION } from "./units.ts";

const PROXY_TITLE = "the address of a proxy such as http://proxy.example.com:3128";

export const SERVICE_KEYS = {
  baseUrl: key(
    { ...TEXT, title: "the address of a service" },
    "The service's address: the part before `/api`. It must use https, unless the service is on this machine or `allowHttp` is true.",
  ),
  clientId: key(
    {
      ...SECRET,
      title: `50 to 4000 letters and digits, or one of ${SECRET.title.replace(/^.*?one of /, "")}`,
      pattern: CLIENT_ID_PATTERN,
      [READ]: secretWith(describeWrongClientId),
    },
    "The client id that the service's administrator has registered for the mailboxes. Default: Inlet creates one in the state folder, and logs where.",
  ),
  verification: key(
    {
      type: ["string", "object"],
      title: "clientId, or { token: … }",
      pattern: "^clientId$",
      properties: { token: key(SECRET, "A token of an address that was verified with a mailed code.") },
      required: ["token"],
      additionalProperties: false,
      default: "clientId",
      writeOnly: true,
      [READ]: readToken,
    },
    "How mailboxes prove that they own their address: with the registered client id, or with an existing token.",
  ),
  acceptLanguage: key(
    {
      type: "string",
      title: "one or more languages such as en or de-CH,de;q=0.8",
      pattern: "^[A-Za-z0-9*][A-Za-z0-9*,;=. -]{0,199}$",
      default: "en",
    },
    "The language of the service's own texts, such as the column titles of its checksums file.",
  ),
  userAgent: key(
    { type: "string", title: "1 to 200 printable ASCII characters", pattern: "^[!-~]([ -~]{0,198}[!-~])?$" },
    "The header `User-Agent` of each request. Default: `inlet/VERSION (+HOMEPAGE)`.",
  ),
  fileIdList: key(
    { type: "string", enum: ["repeat", "comma"], default: "repeat" },
    "How a request for some files of a ZIP (after one broke off, or by `inlet api zip --only`) sends their ids: as one parameter per id, or as one with commas. Try the other if the ZIP has the wrong files.",
  ),
  rulesWithoutMode: key(
    SWITCH,
    "Whether rules and links open a transfer whose security mode the service does not name, though it has named others. Unset: such transfers wait, and the status asks. `false`: a person supplies a password for each. A service that never names modes needs no answer.",
  ),
  ca: key(CERTIFICATES, "A PEM file with additional certificate authorities to trust."),
  cert: key(CERTIFICATES, "A PEM file with the client certificate, for mutual TLS. Requires `key`."),
  key: key(PRIVATE_KEY, "A PEM file with the private key of `cert`."),
  proxy: key(
    { ...TEXT, title: PROXY_TITLE, writeOnly: true, [READ]: readProxy },
    "The proxy to use. Default: the variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.",
  ),
  timeout: key(
    { ...DURATION, default: "30s" },
    "The longest silence of the service before a request fails, at most 24h.",
  ),
  allowHttp: key(
    { ...SWITCH, default: false },
    "Whether to allow plain http to other machines. Secrets then travel unencrypted: for tests only.",
  ),
} as const satisfies SchemaKeys;

const FORM = group(SERVICE_KEYS, "The transfer service, for every mailbox without its own.");

export const SERVICE = { ...FORM, [READ]: readService } as const satisfies SchemaNode;

type ProxySettings = ConnectionOptions["proxy"];

/** Names of this machine, for which plain http is harmless. */
export const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Captures an address without its scheme, and without a final `/api`: a host with a dot, maybe a port and a path. */
const BARE_HOST = /^(?:\/\/)?([\w-]+(?:\.[\w-]+)+(?::\d+)?(?:\/[\w./-]*?)?)\/*(?:\/api\/*)?$/;

/**
 * `ca`, `cert` and `key` are PEM texts. Without a client id, the daemon creates one in the state folder; without a token, it
 * obtains one with the client id.
 */
export type ServiceSettings = NonNullable<ReturnType<typeof readService>>;

function readService(read: Read<typeof FORM>, at: Spot) {
  const { verification: token, fileIdList: idListForm, timeout: timeoutMs, allowHttp, ...settings } = read;
  if (at.isSet("cert") && !at.isSet("key")) at.refuse("needs its private key too: set key", "cert");
  if (at.isSet("key") && !at.isSet("cert")) at.refuse("needs its certificate too: set cert", "key");
  const { proxy = proxyOfEnvironment(at.draft.env), userAgent = defaultUserAgent() } = read;
  const baseUrl = read.baseUrl && readBaseUrl(read.baseUrl, allowHttp, at.at("baseUrl"));
  if (!baseUrl) return undefined;
  const service = { ...settings, baseUrl, token, proxy, userAgent, idListForm, timeoutMs };
  return shownAs(service, () => ({ ...service, key: service.key && "[secret]" }));
}

function readBaseUrl(text: string, allowHttp: boolean, at: Spot): URL | undefined {
  const url = URL.parse(text);
  // The part before an @ or after a ? may be a secret.
  const shown = /[@?#]/.test(text) ? "this" : showValue(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    const [, host] = BARE_HOST.exec(text) ?? [];
    const hint = host === undefined ? " such as https://transfer.example.com" : `: write https://${host}`;
    return at.refuse(`${shown} is not the address of a service${hint}`);
  }
  if (url.username + url.password !== "") return at.refuse("must not contain a user or password");
  if (/[?#]/.test(text)) return at.refuse("must not contain ? or #");
  if (/\/api\/*$/.test(url.pathname))
    return at.refuse(`${shown} ends with /api: give only the part before it`);
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowHttp) {
    return at.refuse(
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

/** `undefined`: the client id verifies. */
function readToken(raw: string | { readonly token?: RawSecret }, at: Spot) {
  const token = typeof raw === "string" ? undefined : raw.token;
  return token === undefined ? undefined : SECRET[READ](token, at.at("token"));
}

function readProxy(proxy: string, at: Spot): ProxySettings {
  const url = URL.parse(proxy);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.hostname === "") {
    at.refuse(`must be ${PROXY_TITLE}`);
  } else if (url.password !== "" && at.variable === undefined) {
    at.draft.plainSecrets.push(at.path);
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

/** The same object, which is shown in another way when it is printed, as JSON too. */
function shownAs<Value extends object>(value: Value, shown: () => object): Value {
  return Object.defineProperties(value, { toJSON: { value: shown }, [inspect.custom]: { value: shown } });
}

function withoutUser(address: string): string {
  return address.replace(/^.*@/, "[secret]@");
}
