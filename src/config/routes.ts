/** The `routes` of a mailbox: which transfers go where, which are held, and which are left out. */
import { ROUTE_ACTIONS, type Route } from "../model/mailbox.ts";
import { ruleOf } from "../model/route.ts";
import { type Spot, showValue } from "./draft.ts";
import { HANDOFF } from "./handoff.ts";
import { describeWrongLayout, LAYOUT, warnOfExpression } from "./layout.ts";
import {
  INHERITED,
  key,
  list,
  PATH,
  READ,
  type Read,
  type ReadItems,
  type SchemaNode,
  TEXT,
} from "./schema-nodes.ts";
import { SIZE } from "./units.ts";

/** The longest address that mail allows. */
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

const FORM = {
  type: "object",
  title: "a route",
  properties: {
    name: key(
      { ...TEXT, maxLength: 100 },
      "The name of the route in messages and records. Required with `inbox`, `layout` or `handoff`. If you change the name or the conditions, the route no longer applies to transfers that it delivered before.",
    ),
    sender: key(
      PATTERNS,
      "The sender's address. In all patterns of a route, `*` matches any characters and `?` matches one; case, width, invisible characters, extra blanks and dots at the end are ignored. Of several patterns, one has to match.",
    ),
    subject: key(PATTERNS, "The subject. Some services show it only after the transfer was opened."),
    recipient: key(
      PATTERNS,
      "One address that the transfer was sent to (`to` or `cc`). If the service does not name the recipients, the transfer is held: see [Configuring](configuring.md#route-transfers-by-sender-recipient-subject-file-name-or-size).",
    ),
    file: key(PATTERNS, "The name of at least one file. Known only after the transfer was opened."),
    minSize: key(SIZE, "The least size of all files together. Known only after the transfer was opened."),
    maxSize: key(SIZE, "The largest size of all files together. Known only after the transfer was opened."),
    action: key(
      ACTION,
      "`deliver`: deliver the transfer. `hold`: wait until you release or discard it. `ignore`: do not download it unless you retry it. To hold or ignore transfers without opening them, put the route first, and use only `sender`, `subject` and `recipient`.",
    ),
    inbox: key(PATH, "Replaces the `inbox` of the mailbox."),
    layout: key(LAYOUT, "Replaces the `layout` of the mailbox."),
    handoff: key(
      HANDOFF,
      "The hand-off of this route. Each key set here replaces the same key of the mailbox.",
    ),
  },
  additionalProperties: false,
  [INHERITED]: ["inbox", "layout", "handoff"],
} as const satisfies SchemaNode;

const ROUTE = { ...FORM, [READ]: readRoute } as const satisfies SchemaNode;

export const ROUTES = key(
  { ...list("a list of routes", ROUTE), [READ]: readRoutes },
  "Rules that treat some transfers differently. A transfer takes the first route whose conditions all match; `inlet route` explains it.",
);

export const OTHERWISE = key(
  ACTION,
  "What to do with transfers that match no route: `deliver`, `hold` or `ignore`.",
);

function readRoute(read: Read<typeof FORM>, at: Spot): Route {
  const { name = `routes[${at.own.at(-1)}]`, action, layout, minSize: minBytes, maxSize: maxBytes } = read;
  const { sender, subject, recipient, file } = read;
  if (minBytes !== undefined && maxBytes !== undefined && minBytes > maxBytes) {
    at.refuse(`${showValue(at.at("minSize").raw)} is more than maxSize: no transfer matches`, "minSize");
  }
  const own = onlySet({ inbox: read.inbox, layout, handoff: read.handoff }, (key) => at.sets(key));
  const [consequence] = Object.keys(own);
  if (read.name === undefined && consequence !== undefined) {
    at.refuse(
      `sets ${consequence}, so it needs a name that deliveries are recorded with: add a line such as name: invoices`,
    );
  }
  // The layout of the mailbox may not fit the hand-off of the route.
  const isOwn = own.layout !== undefined || own.handoff !== undefined;
  const wrong = isOwn && layout && describeWrongLayout(layout, read.handoff.deliver === "files");
  if (wrong) at.first.refuse(`${showValue(layout)} ${wrong}`, "layout");
  const when = onlySet({ sender, subject, recipient, file, minBytes, maxBytes });
  const rule = read.name === undefined ? undefined : ruleOf(name, when);
  return { name, when, action, ...onlySet({ rule }), ...own };
}

/** Drops the keys that are not set, or not wanted. */
function onlySet<Keys extends object>(keys: Keys, isWanted = (_key: string) => true): Partial<Keys> {
  const entries = Object.entries(keys).filter(([key, value]) => value !== undefined && isWanted(key));
  return Object.fromEntries(entries) as Partial<Keys>;
}

function readPatterns(given: string | readonly (string | undefined)[], at: Spot): readonly string[] {
  const patterns = [given].flat().filter((each) => each !== undefined);
  for (const pattern of patterns) warnOfExpression(pattern, at);
  return patterns;
}

/** Records name the route, so two need different names. */
function readRoutes(all: ReadItems<typeof ROUTE>, at: Spot): Route[] {
  const routes = all.filter((route) => route !== undefined);
  for (const [number, route] of all.entries()) {
    const isTaken = all.slice(0, number).some((it) => it?.name === route?.name);
    if (route && isTaken)
      at.refuse(`${showValue(route.name)} is already used by another route`, number, "name");
  }
  const unconditional = all.findIndex((route) => route && Object.keys(route.when).length === 0);
  if (unconditional >= 0 && unconditional < all.length - 1) {
    const why = "matches every transfer, so the routes after it are never used";
    at.refuse(`${why}: give it a condition, or put it last`, unconditional);
  }
  return routes;
}
