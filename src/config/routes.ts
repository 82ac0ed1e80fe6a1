/** The `routes` of a mailbox: which transfers go where, which are held, and which are left out. */

import { ROUTE_ACTIONS, type Route, type Routing } from "../model/mailbox.ts";
import { ruleOf } from "../model/route.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { deliversFiles, HANDOFF, type RawHandoff, readHandoff } from "./handoff.ts";
import { type Layer, readKeys } from "./layers.ts";
import { LAYOUT, readLayout } from "./layout.ts";
import { warnOfExpression } from "./patterns.ts";
import { group, key, PATH, READ, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import { SIZE } from "./units.ts";

const MAX_PATTERN = 254;

/** One pattern or a list of them. */
const PATTERNS = {
  type: ["string", "array"],
  title: "a pattern or a list of patterns",
  minLength: 1,
  maxLength: MAX_PATTERN,
  items: { ...TEXT, maxLength: MAX_PATTERN },
  minItems: 1,
  [READ]: readPatterns,
} as const satisfies SchemaNode;

const ACTION = { type: "string", enum: ROUTE_ACTIONS, default: "deliver" } as const satisfies SchemaNode;

const ROUTE = {
  type: "object",
  title: "a route",
  properties: {
    name: key(
      { ...TEXT, maxLength: 100 },
      "The name of the route in messages and records. A route that sets `inbox`, `layout` or `handoff` needs one. The name together with the conditions identifies the route: if you change either, the route no longer applies to transfers that it delivered before.",
    ),
    sender: key(
      PATTERNS,
      "The sender's address. In all patterns of a route, `*` matches any characters and `?` matches one. Case, width, invisible characters and extra blanks are ignored, and so are dots at the end of addresses and file names. If there are several patterns, one of them has to match.",
    ),
    subject: key(
      PATTERNS,
      "The subject. If the service does not list subjects, Inlet knows it only after it has opened the transfer.",
    ),
    file: key(
      PATTERNS,
      "The name of a file. At least one file of the transfer has to match. Inlet knows the names only after it has opened the transfer.",
    ),
    minSize: key(
      SIZE,
      "The least size of all files together. Inlet knows the size only after it has opened the transfer.",
    ),
    maxSize: key(
      SIZE,
      "The largest size of all files together. Inlet knows the size only after it has opened the transfer.",
    ),
    action: key(
      ACTION,
      "`deliver`: deliver the transfer. `hold`: wait until you release or discard it. `ignore`: do not download it unless you retry it. For the conditions `file`, `minSize` and `maxSize`, Inlet has to open the transfer first, with its password if it has one. To hold or ignore transfers without opening them, put the route first, and use only `sender` and `subject`.",
    ),
    inbox: key(PATH, "Replaces the `inbox` of the mailbox."),
    layout: key(LAYOUT, "Replaces the `layout` of the mailbox."),
    handoff: group(
      HANDOFF.properties,
      "The hand-off of this route. Each key set here replaces the same key of the mailbox.",
    ),
  },
  additionalProperties: false,
} as const satisfies SchemaNode;

export const ROUTES = {
  type: "array",
  title: "a list of routes",
  items: ROUTE,
  description:
    "Rules that treat some transfers differently. A transfer takes the first route whose conditions all match. `inlet route` shows which route a transfer takes, and why.",
} as const satisfies SchemaNode;

export const OTHERWISE = key(
  ACTION,
  "What to do with transfers that match no route: `deliver`, `hold` or `ignore`. For example, if the routes name all known senders, `hold` lets transfers from other senders wait for you.",
);

type RawRoute = Written<typeof ROUTE>;

/**
 * `layout`, `handoff`: those of the mailbox. `undefined` if the mailbox treats all transfers alike. Problems go to the draft.
 */
export async function readRouting(
  given: { readonly routes?: Written<typeof ROUTES>; readonly otherwise?: Written<typeof OTHERWISE> },
  path: KeyPath,
  layout: string,
  handoff: readonly Layer<RawHandoff>[],
  draft: Draft,
): Promise<Routing | undefined> {
  const { routes: raw = [], otherwise = OTHERWISE.default } = given;
  const routes: Route[] = [];
  for (const [at, each] of raw.entries()) {
    if (each === undefined) continue;
    const ownPath = [...path, "routes", at];
    const route = await readRoute(each, at, ownPath, handoff, draft);
    // The layout of the mailbox may not fit the hand-off of the route.
    if (each.handoff && !each.layout) {
      const isShared = route.handoff?.deliver === "files";
      readLayout(layout, [...ownPath, "layout"], isShared, draft);
    }
    routes.push(route);
  }
  checkNames(routes, raw, path, draft);
  return routes.length === 0 && otherwise === OTHERWISE.default ? undefined : { routes, otherwise };
}

async function readRoute(
  raw: RawRoute,
  at: number,
  path: KeyPath,
  handoff: readonly Layer<RawHandoff>[],
  draft: Draft,
): Promise<Route> {
  const { handoff: _, ...keys } = ROUTE.properties;
  const read = await readKeys(keys, [{ raw, path }], draft);
  const { name = `routes[${at}]`, minSize: minBytes, maxSize: maxBytes, ...others } = read;
  const { sender, subject, file, action, inbox, layout } = others;
  if (minBytes !== undefined && maxBytes !== undefined && minBytes > maxBytes) {
    const why = "is more than maxSize: no transfer matches";
    draft.problems.add([...path, "minSize"], `${showValue(raw.minSize)} ${why}`);
  }
  const when = given({ sender, subject, file, minBytes, maxBytes });
  const [consequence] = (["inbox", "layout", "handoff"] as const).filter((key) => raw[key] !== undefined);
  if (raw.name === undefined && consequence !== undefined) {
    draft.problems.add(
      path,
      `sets ${consequence}, so it needs a name that deliveries are recorded with: add a line such as name: invoices`,
    );
  }
  const own = raw.handoff && [{ raw: raw.handoff, path: [...path, "handoff"] }, ...handoff];
  if (layout) readLayout(layout, [...path, "layout"], deliversFiles(own ?? handoff), draft);
  const rule = raw.name === undefined ? undefined : ruleOf(name, when);
  return {
    name,
    when,
    action,
    ...given({ rule, inbox, layout, handoff: own && (await readHandoff(own, draft)) }),
  };
}

/** Without the keys that are not set. */
function given<Keys extends object>(keys: Keys): Partial<Keys> {
  return Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined)) as Partial<Keys>;
}

function readPatterns(
  raw: string | readonly (string | undefined)[],
  path: KeyPath,
  draft: Draft,
): readonly string[] {
  const patterns = [raw].flat().filter((each) => each !== undefined);
  for (const pattern of patterns) warnOfExpression(pattern, path, draft);
  return patterns;
}

/** Records name the route, so two need different names. */
function checkNames(
  routes: readonly Route[],
  raw: readonly (RawRoute | undefined)[],
  path: KeyPath,
  { problems }: Draft,
): void {
  const seen = new Set<string>();
  for (const { name } of routes) {
    if (seen.has(name)) {
      const at = raw.findLastIndex((each) => each?.name === name);
      problems.add([...path, "routes", at, "name"], `${showValue(name)} is already used by another route`);
    }
    seen.add(name);
  }
  const all = routes.findIndex(({ when }) => Object.keys(when).length === 0);
  if (all >= 0 && all < routes.length - 1) {
    problems.add(
      [...path, "routes", all],
      "matches every transfer, so the routes after it are never used: give it a condition, or put it last",
    );
  }
}
