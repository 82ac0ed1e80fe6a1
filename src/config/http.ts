/** The `http` group: the address and names of the status page, and whether visitors may act. */
import { readSecretKey, SECRET } from "./credentials.ts";
import { type Draft, showValue } from "./draft.ts";
import { group, HOST_PATTERN, SWITCH, type Written } from "./schema-nodes.ts";
import type { HttpSettings } from "./settings.ts";

export const HTTP = group(
  {
    listen: {
      type: ["string", "boolean"],
      title: "false, a host and a port such as 127.0.0.1:8460, or unix: and a path",
      pattern: `^(false|${HOST_PATTERN}:[0-9]{1,5}|unix:/.+)$`,
      default: "127.0.0.1:8460",
      description:
        "The address of the status page, its API, health and metrics. Everyone who can reach it sees senders, names and states, but no file and no secret. `unix:/run/inlet/inlet.sock` is a Unix socket; `false` disables it.",
    },
    actions: {
      ...SWITCH,
      default: false,
      description:
        "Whether visitors may supply passwords, and retry, release and discard transfers, through the page and its API. Requires `token`, except on a Unix socket, whose permissions decide who may act.",
    },
    token: {
      ...SECRET,
      description: "The token that visitors sign in with, and programs send as `Authorization: Bearer`.",
    },
    hosts: {
      type: "array",
      title: "a list of host names",
      items: { type: "string", title: "a host name", pattern: `^${HOST_PATTERN}$` },
      description:
        "Host names under which browsers may open the page, such as that of a proxy, in addition to IP addresses, `localhost` and the machine's own name. Health and metrics answer under every name.",
    },
  },
  "The status page.",
);

const KEYS = HTTP.properties;
const MAX_PORT = 65_535;

/** Problems go to the draft. `undefined` without a page. */
export async function readHttp(
  raw: Written<typeof HTTP> = {},
  draft: Draft,
): Promise<HttpSettings | undefined> {
  const { listen: given = KEYS.listen.default, actions = false, token, hosts = [] } = raw;
  const secret = token === undefined ? undefined : await readSecretKey(token, ["http", "token"], draft);
  if (given === false || given === "false") return undefined;
  const listen = readListen(String(given), draft);
  if (actions && secret === undefined && !("path" in listen) && !draft.problems.has(["http", "token"])) {
    draft.problems.add(
      ["http", "actions"],
      "needs http.token: without it, everyone who can reach the address could act",
    );
  }
  const names = hosts.filter((name) => name !== undefined).map((name) => name.toLowerCase());
  return { listen, actions, token: secret, hosts: names };
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
