/** The `http` group: the address and names of the console, and whether visitors may act. */
import type { Secret } from "../base/secret.ts";
import { READ_ACCESS, ROLES } from "../model/access.ts";
import { SECRET, secretWith } from "./credentials.ts";
import { type Draft, showValue } from "./draft.ts";
import {
  group,
  HOST_PATTERN,
  key,
  READ,
  type SchemaNode,
  SWITCH,
  TEXT,
  type Written,
} from "./schema-nodes.ts";
import { LOOPBACK } from "./service.ts";
import type { HttpSettings, TokenSettings } from "./settings.ts";

const TOKEN = {
  type: "object",
  title: "a name and a token",
  properties: {
    name: {
      ...TEXT,
      pattern: "^[\\p{L}\\p{N}._@-]{1,64}$",
      title: "a name of letters, digits and ._@-",
      description: "The name under which the history records the actions of this token.",
    },
    token: key(
      { ...SECRET, [READ]: secretWith(describeShortToken) },
      "The token, of at least 16 characters.",
    ),
    role: key(
      { type: "string", enum: ROLES, default: "operate" },
      "What the token allows: `read` to see everything, `operate` also to act.",
    ),
  },
  required: ["name", "token"],
  additionalProperties: false,
} as const satisfies SchemaNode;

export const HTTP = group(
  {
    listen: {
      type: ["string", "boolean"],
      title: "false, a host and a port such as 127.0.0.1:8460, or unix: and a path",
      pattern: `^(false|${HOST_PATTERN}:[0-9]{1,5}|unix:/.+)$`,
      default: "127.0.0.1:8460",
      description:
        "The address of the console: a host and a port, or a Unix socket such as `unix:/run/inlet/console.sock`. `false` disables the console. Everyone who can reach the address sees senders, subjects, names of files, states and the output of failed commands, but no content and no secret, unless `read` asks for a token; actions always need one.",
    },
    publicUrl: key(
      { ...TEXT, title: "an address such as https://inlet.example.com, without a slash at its end" },
      "The address under which people open the console, such as that of a proxy, with http or https. Mails and webhooks of `notify`, and chat messages of `handoff.webhook`, link to it. Its host name need not be in `hosts`. Default for `notify`: the address in `listen`, unless that is one of this machine only, or stands for all addresses; then there are no links.",
    ),
    actions: key(
      { ...SWITCH, default: false },
      "Whether visitors may supply passwords, and retry, release, discard and redeliver transfers, through the console and its API. Requires `token` or `tokens`. A Unix socket requires neither, because its permissions decide who may act.",
    ),
    read: key(
      { type: "string", enum: READ_ACCESS, default: "open" },
      "What needs a token to be read. `open`: nothing. `token`: the pages and the API, with a token of any role. `token-for-all`: also `/metrics` and `/readyz`; only `/healthz` stays open. Requires `token` or `tokens`. A Unix socket without tokens stays open to everyone who may use it.",
    ),
    token: key(
      TOKEN.properties.token,
      "The token with which visitors sign in, and which programs send as `Authorization: Bearer`. At least 16 characters. Its role is `operate`, and the history records its actions under the name `token`.",
    ),
    tokens: key(
      { type: "array", title: "a list of tokens", items: TOKEN },
      "More tokens, one for each person or program, so that the history says who did what.",
    ),
    hosts: {
      type: "array",
      title: "a list of host names",
      items: { type: "string", title: "a host name", pattern: `^${HOST_PATTERN}$` },
      description:
        "Additional host names under which browsers and scrapers may open the console, such as that of a proxy or a Kubernetes service. IP addresses, `localhost` and the machine's own name are always allowed. `/healthz` answers under every name.",
    },
  },
  "The console: web pages with an API, health checks and metrics.",
);

const KEYS = HTTP.properties;
const MAX_PORT = 65_535;
const MIN_TOKEN_CHARACTERS = 16;

/** Problems go to the draft. `undefined` without a console. */
export async function readHttp(
  raw: Written<typeof HTTP> = {},
  draft: Draft,
): Promise<HttpSettings | undefined> {
  const { listen: given = KEYS.listen.default, actions = false, read = KEYS.read.default, hosts = [] } = raw;
  const tokens = await readTokens(raw, draft);
  if (given === false || given === "false") return undefined;
  const listen = readListen(String(given), draft);
  const hasProblem = draft.problems.has(["http", "token"]) || draft.problems.has(["http", "tokens"]);
  const lacksToken = tokens.size === 0 && !("path" in listen) && !hasProblem;
  if (actions && lacksToken) {
    draft.problems.add(
      ["http", "actions"],
      "needs http.token or http.tokens: without one, everyone who can reach the address could act",
    );
  }
  if (read !== "open" && lacksToken) {
    draft.problems.add(["http", "read"], "needs http.token or http.tokens: without one, nobody could read");
  }
  const url = readPublicUrl(raw.publicUrl, draft);
  const names = [...hosts, url?.hostname].filter((name) => name !== undefined);
  return {
    listen,
    actions,
    tokens,
    read,
    hosts: names.map((name) => name.toLowerCase()),
    ...(url === undefined ? {} : { publicUrl: url.href.replace(/\/$/, "") }),
  };
}

/** Where people open the console; `undefined` if a link would not lead there. `opened`: the address that it listens on. */
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
function readPublicUrl(text: string | undefined, draft: Draft): URL | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  const isWeb = url !== null && ["http:", "https:"].includes(url.protocol) && !/[?#]|\/$/.test(text);
  if (isWeb && url.username + url.password === "") return url;
  const wrong = isWeb ? "must not contain a user or password" : `must be ${KEYS.publicUrl.title}`;
  draft.problems.add(["http", "publicUrl"], wrong);
  return undefined;
}

/** By name. */
async function readTokens(
  { token, tokens = [] }: Written<typeof HTTP>,
  draft: Draft,
): Promise<HttpSettings["tokens"]> {
  const read = new Map<string, TokenSettings>();
  const readToken = TOKEN.properties.token[READ];
  if (token !== undefined) {
    read.set("token", { source: await readToken(token, ["http", "token"], draft), role: "operate" });
  }
  for (const [at, named] of tokens.entries()) {
    if (named?.name === undefined || named.token === undefined) continue;
    const path = ["http", "tokens", at];
    if (read.has(named.name)) draft.problems.add([...path, "name"], `${showValue(named.name)} is used twice`);
    const source = await readToken(named.token, [...path, "token"], draft);
    read.set(named.name, { source, role: named.role ?? "operate" });
  }
  return read;
}

function describeShortToken(token: Secret): string | undefined {
  const { length } = token.reveal();
  if (length >= MIN_TOKEN_CHARACTERS) return undefined;
  return `is too short: a token needs at least ${MIN_TOKEN_CHARACTERS} characters, such as those of openssl rand -hex 16`;
}

function readListen(text: string, draft: Draft): HttpSettings["listen"] {
  const listen = parseListen(text);
  if (listen !== undefined) return listen;
  draft.problems.add(["http", "listen"], `${showValue(text)} is not ${KEYS.listen.title}`);
  return { host: "", port: 0 };
}

/** `undefined` for a text that is no address. */
export function parseListen(text: string): HttpSettings["listen"] | undefined {
  if (text.startsWith("unix:")) return { path: text.slice("unix:".length) };
  const { hostname = "", port = "" } = URL.parse(`http://${text}`) ?? {};
  // A URL leaves out the default port of its scheme.
  const number = Number(port || /\d+$/.exec(text)?.[0]);
  if (hostname === "" || !(number <= MAX_PORT)) return undefined;
  return { host: hostname.replace(/^\[|\]$/g, ""), port: number };
}
