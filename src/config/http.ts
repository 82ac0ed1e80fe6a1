/** Where the status page is served, by which names, and whether visitors may act. */
import type { Draft } from "./draft.ts";
import { parseSecret } from "./parse-secret.ts";
import { showValue } from "./problems.ts";
import { SCHEMA } from "./schema.ts";
import type { HttpSettings } from "./settings.ts";

const KEYS = SCHEMA.properties.http.properties;
const MOST_PORTS = 65_535;

/** Problems go to the draft. `undefined` for nowhere. */
export async function parseHttp(draft: Draft): Promise<HttpSettings | undefined> {
  const { listen: given = KEYS.listen.default, actions = false, token, hosts = [] } = draft.raw.http ?? {};
  const secret = token === undefined ? undefined : await parseSecret(token, ["http", "token"], draft);
  if (given === false || given === "false") return undefined;
  const listen = parseListen(String(given), draft);
  if (actions && secret === undefined && !("path" in listen) && !draft.problems.has(["http", "token"])) {
    draft.problems.add(
      ["http", "actions"],
      "needs http.token: else anybody who reaches the address could act",
    );
  }
  const names = hosts.filter((name) => name !== undefined).map((name) => name.toLowerCase());
  return { listen, actions, token: secret, hosts: names };
}

function parseListen(text: string, draft: Draft): HttpSettings["listen"] {
  if (text.startsWith("unix:")) return { path: text.slice("unix:".length) };
  const { hostname = "", port = "" } = URL.parse(`http://${text}`) ?? {};
  // A URL leaves out the port that is usual for it.
  const number = Number(port || /\d+$/.exec(text)?.[0]);
  if (hostname === "" || !(number <= MOST_PORTS)) {
    draft.problems.add(["http", "listen"], `${showValue(text)} is not ${KEYS.listen.title}`);
  }
  return { host: hostname.replace(/^\[|\]$/g, ""), port: number };
}
