/** The `routes` of a mailbox: which transfers go where, which are held, and which are left out. */

import { ROUTE_ACTIONS, type Route, type RouteConditions, type Routing } from "../model/mailbox.ts";
import { ruleOf } from "../model/route.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { deliversFiles, HANDOFF, type RawHandoff, readHandoff } from "./handoff.ts";
import type { Layer } from "./layers.ts";
import { LAYOUT, readLayout } from "./layout.ts";
import { warnOfExpression } from "./patterns.ts";
import { group, PATH, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import { parseSize, SIZE } from "./units.ts";

const MAX_PATTERN = 254;

/** One pattern or a list of them. */
function patterns(description: string) {
  return {
    type: ["string", "array"],
    title: "a pattern or a list of patterns",
    minLength: 1,
    maxLength: MAX_PATTERN,
    items: { ...TEXT, maxLength: MAX_PATTERN },
    minItems: 1,
    description,
  } as const;
}

const ACTION = { type: "string", enum: ROUTE_ACTIONS, default: "deliver" } as const satisfies SchemaNode;

const ROUTE = {
  type: "object",
  title: "a route",
  properties: {
    name: {
      ...TEXT,
      maxLength: 100,
      description:
        "The name of the route in messages and records. A route that sets `inbox`, `layout` or `handoff` needs one. The name together with the conditions identifies the route: if you change either, the route no longer applies to transfers that it delivered before.",
    },
    sender: patterns(
      "The sender's address. In all patterns of a route, `*` matches any characters and `?` matches one. Case, width, invisible characters and extra blanks are ignored, and so are dots at the end of addresses and file names. If there are several patterns, one of them has to match.",
    ),
    subject: patterns(
      "The subject. If the service does not list subjects, Inlet knows it only after it has opened the transfer.",
    ),
    file: patterns(
      "The name of a file. At least one file of the transfer has to match. Inlet knows the names only after it has opened the transfer.",
    ),
    minSize: {
      ...SIZE,
      description:
        "The least size of all files together. Inlet knows the size only after it has opened the transfer.",
    },
    maxSize: {
      ...SIZE,
      description:
        "The largest size of all files together. Inlet knows the size only after it has opened the transfer.",
    },
    action: {
      ...ACTION,
      description:
        "`deliver`: deliver the transfer. `hold`: wait until you release or discard it. `ignore`: do not download it unless you retry it. For the conditions `file`, `minSize` and `maxSize`, Inlet has to open the transfer first, with its password if it has one. To hold or ignore transfers without opening them, put the route first, and use only `sender` and `subject`.",
    },
    inbox: { ...PATH, description: "Replaces the `inbox` of the mailbox." },
    layout: { ...LAYOUT, description: "Replaces the `layout` of the mailbox." },
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

export const OTHERWISE = {
  ...ACTION,
  description:
    "What to do with transfers that match no route: `deliver`, `hold` or `ignore`. For example, if the routes name all known senders, `hold` lets transfers from other senders wait for you.",
} as const satisfies SchemaNode;

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
  const { name = `routes[${at}]`, action = ACTION.default, inbox, layout } = raw;
  const when = readConditions(raw, path, draft);
  const [consequence] = (["inbox", "layout", "handoff"] as const).filter((key) => raw[key] !== undefined);
  if (raw.name === undefined && consequence !== undefined) {
    draft.problems.add(
      path,
      `sets ${consequence}, so it needs a name that deliveries are recorded with: add a line such as name: invoices`,
    );
  }
  const own = raw.handoff && [{ raw: raw.handoff, path: [...path, "handoff"] }, ...handoff];
  const isShared = deliversFiles(own ?? handoff);
  return {
    name,
    ...(raw.name !== undefined && { rule: ruleOf(name, when) }),
    when,
    action,
    ...(inbox && { inbox: draft.resolvePath([...path, "inbox"], inbox) }),
    ...(layout && { layout: readLayout(layout, [...path, "layout"], isShared, draft) }),
    ...(own && { handoff: await readHandoff(own, draft) }),
  };
}

function readConditions(raw: RawRoute, path: KeyPath, draft: Draft): RouteConditions {
  const sizeOf = (key: "minSize" | "maxSize") => {
    const given = raw[key];
    if (given === undefined) return undefined;
    const bytes = parseSize(String(given));
    if (bytes === undefined) draft.problems.add([...path, key], `${showValue(given)} is too large`);
    return bytes;
  };
  const [minBytes, maxBytes] = [sizeOf("minSize"), sizeOf("maxSize")];
  if (minBytes !== undefined && maxBytes !== undefined && minBytes > maxBytes) {
    draft.problems.add(
      [...path, "minSize"],
      `${showValue(raw.minSize)} is more than maxSize: no transfer matches`,
    );
  }
  for (const key of ["sender", "subject", "file"] as const) {
    for (const pattern of listOf(raw[key])) warnOfExpression(pattern, [...path, key], draft);
  }
  return {
    ...withPatterns("sender", raw.sender),
    ...withPatterns("subject", raw.subject),
    ...withPatterns("file", raw.file),
    ...(minBytes !== undefined && { minBytes }),
    ...(maxBytes !== undefined && { maxBytes }),
  };
}

function withPatterns(key: "sender" | "subject" | "file", given: RawPatterns | undefined): RouteConditions {
  return given === undefined ? {} : { [key]: listOf(given) };
}

type RawPatterns = string | readonly (string | undefined)[];

function listOf(given: RawPatterns = []): string[] {
  return typeof given === "string" ? [given] : given.filter((each) => each !== undefined);
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
