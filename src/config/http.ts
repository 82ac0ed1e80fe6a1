/** The `http` group: the address and names of the console, and whether visitors may act. */
import type { Secret, SecretSource } from "../base/secret.ts";
import { READ_ACCESS, ROLES, type Role } from "../model/order.ts";
import { SECRET, secretWith } from "./credentials.ts";
import { type Spot, showValue } from "./draft.ts";
import {
  entry,
  group,
  HOST_PATTERN,
  key,
  list,
  READ,
  type Read,
  type ReadItems,
  type SchemaNode,
  SWITCH,
  TEXT,
} from "./schema-nodes.ts";
import { LOOPBACK } from "./service.ts";

const LISTEN = "false, a host and a port such as 127.0.0.1:8460, or unix: and a path";
const PUBLIC_URL = "an address such as https://inlet.example.com, without a slash at its end";

const TOKEN_FORM = entry("a name and a token", ["name", "token"], {
  name: key(
    { ...TEXT, pattern: "^[\\p{L}\\p{N}._@-]{1,64}$", title: "a name of letters, digits and ._@-" },
    "The name under which the history records the actions of this token.",
  ),
  token: key({ ...SECRET, [READ]: secretWith(describeShortToken) }, "The token, of at least 16 characters."),
  role: key(
    { type: "string", enum: ROLES, default: "operate" },
    "What the token allows: `read` to see everything, `operate` also to act.",
  ),
});

const TOKENS = list("a list of tokens", TOKEN_FORM);

const FORM = group(
  {
    listen: key(
      {
        type: ["string", "boolean"],
        title: LISTEN,
        pattern: `^(false|${HOST_PATTERN}:[0-9]{1,5}|unix:/.+)$`,
        default: "127.0.0.1:8460",
        [READ]: readListen,
      },
      "The address of the console: a host and a port, or a Unix socket such as `unix:/run/inlet/console.sock`. `false` disables the console. Unless `read` asks for a token, everyone who can reach it sees senders, subjects, names of files, states and the output of failed commands, but no content and no secret.",
    ),
    publicUrl: key(
      { ...TEXT, title: PUBLIC_URL, [READ]: readPublicUrl },
      "The address under which people open the console, such as that of a proxy. Mails and chat messages link to it. Its host name need not be in `hosts`. Default for `notify`: the address in `listen`, if other machines can reach it under that address.",
    ),
    actions: key(
      { ...SWITCH, default: false },
      "Whether visitors may act on transfers and mailboxes, through the console and its API. Requires `token` or `tokens`. A Unix socket requires neither: its permissions decide who may act.",
    ),
    read: key(
      { type: "string", enum: READ_ACCESS, default: "open" },
      "What needs a token to be read. `open`: nothing. `token`: the pages and the API, with a token of any role. `token-for-all`: also `/metrics` and `/readyz`; only `/healthz` stays open. Requires `token` or `tokens`. A Unix socket without tokens stays open to everyone who may use it.",
    ),
    token: key(
      TOKEN_FORM.properties.token,
      "The token with which visitors sign in, and which programs send as `Authorization: Bearer`. At least 16 characters. It has the role `operate` and the name `token`.",
    ),
    tokens: key(
      { ...TOKENS, [READ]: readTokens },
      "More tokens, one for each person or program, so that the history says who did what.",
    ),
    hosts: key(
      {
        type: "array",
        title: "a list of host names",
        items: { type: "string", title: "a host name", pattern: `^${HOST_PATTERN}$` },
      },
      "More host names under which the console may be opened, such as that of a proxy or a Kubernetes service. IP addresses, `localhost` and the machine's own name are always allowed. `/healthz` answers under every name.",
    ),
  },
  "The console: web pages with an API, health checks and metrics.",
);

export const HTTP = { ...FORM, [READ]: readHttp } as const satisfies SchemaNode;

const MAX_PORT = 65_535;
const MIN_TOKEN_CHARACTERS = 16;

export type HttpSettings = NonNullable<ReturnType<typeof readHttp>>;

/** Port 0 is any free one. */
type Listen = { readonly host: string; readonly port: number } | { readonly path: string };

interface TokenSettings {
  readonly source: SecretSource;
  readonly role: Role;
}

/** `undefined` without a console. */
function readHttp({ token, publicUrl, ...read }: Read<typeof FORM>, at: Spot) {
  const { listen, actions, tokens = new Map<string, TokenSettings>(), hosts = [] } = read;
  if (tokens.has("token") && token !== undefined) {
    const entries = at.at("tokens").entries();
    const number = entries.findIndex((entry) => entry.at("name").raw === "token");
    at.refuse('"token" is used twice', "tokens", number, "name");
  }
  if (token !== undefined) tokens.set("token", { source: token, role: "operate" });
  if (listen === undefined) return undefined;
  const isTokenRefused = at.isRefused("token") || at.isRefused("tokens");
  // The permissions of a Unix socket decide who may use it.
  const lacksToken = tokens.size === 0 && !isTokenRefused && !("path" in listen);
  const needed = "needs http.token or http.tokens: without one,";
  if (actions && lacksToken) at.refuse(`${needed} everyone who can reach the address could act`, "actions");
  if (read.read !== "open" && lacksToken) at.refuse(`${needed} nobody could read`, "read");
  const names = [...hosts, publicUrl?.hostname ?? []].flat();
  const lowerNames: readonly string[] = names.map((name) => name.toLowerCase());
  return {
    ...read,
    listen,
    /** By name. */
    tokens,
    hosts: lowerNames,
    ...(publicUrl && { publicUrl: publicUrl.href.replace(/\/$/, "") }),
  };
}

/** The console's address for links; `undefined` if other machines cannot reach it. `opened`: the address that it listens on. */
export function linkableAddress(
  http: Pick<HttpSettings, "publicUrl"> | undefined,
  opened: string | undefined,
): string | undefined {
  if (http?.publicUrl !== undefined) return http.publicUrl;
  const { protocol, hostname = "", origin } = URL.parse(opened ?? "") ?? {};
  const isOwn = LOOPBACK.test(hostname) || WILDCARDS.includes(hostname);
  return protocol === "http:" && !isOwn ? origin : undefined;
}

const WILDCARDS = ["0.0.0.0", "[::]"];

/** Does not quote the address, which may hold a password. */
function readPublicUrl(text: string, at: Spot): URL | undefined {
  const url = URL.parse(text);
  const isWeb = url !== null && ["http:", "https:"].includes(url.protocol) && !/[?#]|\/$/.test(text);
  if (isWeb && url.username + url.password === "") return url;
  return at.refuse(isWeb ? "must not contain a user or password" : `must be ${PUBLIC_URL}`);
}

function readTokens(entries: ReadItems<typeof TOKEN_FORM>, at: Spot): Map<string, TokenSettings> {
  const read = new Map<string, TokenSettings>();
  for (const [number, entry] of entries.entries()) {
    if (entry === undefined) continue;
    const { name, token: source, role } = entry;
    if (read.has(name)) at.refuse(`${showValue(name)} is used twice`, number, "name");
    read.set(name, { source, role });
  }
  return read;
}

function describeShortToken(token: Secret): string | undefined {
  const { length } = token.reveal();
  if (length >= MIN_TOKEN_CHARACTERS) return undefined;
  return `is too short: a token needs at least ${MIN_TOKEN_CHARACTERS} characters, such as those of openssl rand -hex 16`;
}

function readListen(given: string | boolean, at: Spot): Listen | undefined {
  if (String(given) === "false") return undefined;
  return parseListen(String(given)) ?? at.refuse(`${showValue(given)} is not ${LISTEN}`);
}

function parseListen(text: string): Listen | undefined {
  if (text.startsWith("unix:")) return { path: text.slice("unix:".length) };
  const { hostname = "", port = "" } = URL.parse(`http://${text}`) ?? {};
  // A URL leaves out the default port of its scheme.
  const number = Number(port || /\d+$/.exec(text)?.[0]);
  if (hostname === "" || !(number <= MAX_PORT)) return undefined;
  return { host: hostname.replace(/^\[|\]$/g, ""), port: number };
}
