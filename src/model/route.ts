/**
 * Routes of a mailbox: the first one that a transfer matches decides whether and how it is delivered.
 *
 * The service's list shows the sender, and usually the subject. File names and sizes are known once the transfer was
 * opened. Until then, a route that depends on them leaves the decision open, and no later route is considered.
 *
 * Texts and patterns are compared in their normal form. A text without one matches no condition of a route that delivers,
 * and every condition of a route that holds or ignores: a sender gains nothing by such a text.
 */

import { hash } from "node:crypto";
import { addressForm, fileNameForm, matchesGlob, type NormalForm, textForm } from "../base/normal-form.ts";
import { inTurns } from "../base/timers.ts";
import type { Handoff, Mailbox, Route, RouteAction, RouteConditions, Routing } from "./mailbox.ts";
import type { Contents } from "./manifest.ts";
import type { Addressees } from "./transfer.ts";

/** Chosen by the sender. Missing: not known yet. */
export interface RouteFacts {
  readonly sender: string;
  readonly subject: string | undefined;
  /** Missing: the service does not say. */
  readonly recipients: Addressees | undefined;
  /** All names of all files, such as the name as sent and the name as delivered. One of them has to match. */
  readonly fileNames: readonly string[] | undefined;
  /** Of all files together. */
  readonly bytes: number | undefined;
}

/**
 * The facts about complete content. The size is that of the files as sent, even if archives were replaced by their files; the
 * names include those of unpacked files. Each file counts under its name as sent and its name as delivered.
 */
export function factsOfContents(
  { sender, recipients }: Sent,
  { subject = "", files, missing = [], unpacked = [] }: Contents,
): RouteFacts {
  const replaced = unpacked.filter(({ isDelivered }) => !isDelivered);
  const sent = [...files.filter(({ from }) => from === undefined), ...replaced, ...missing];
  const delivered = [...files, ...replaced].map(({ name }) => name);
  return {
    sender,
    subject,
    recipients,
    fileNames: [...[...files, ...replaced, ...missing].map((file) => file.originalName), ...delivered],
    bytes: sent.reduce((sum, { size }) => sum + size, 0),
  };
}

/** What the list shows. */
export interface Sent {
  readonly sender: string;
  readonly subject?: string | undefined;
  readonly recipients?: Addressees | undefined;
}

/** The facts about an opened transfer; without files, about a listed one. */
export function factsOf(
  { sender, subject, recipients }: Sent,
  files?: readonly { readonly name: string; readonly bytes: number }[],
): RouteFacts {
  if (files === undefined) return { sender, subject, recipients, fileNames: undefined, bytes: undefined };
  const bytes = files.reduce((sum, each) => sum + each.bytes, 0);
  return { sender, subject: subject ?? "", recipients, fileNames: files.map(({ name }) => name), bytes };
}

/** `later`: not known before the transfer is opened. `unknown`: the service does not say. */
type Match = "yes" | "no" | "later" | "unknown";

interface Condition {
  readonly match: Match;
  /** Such as `the sender anna@supplier.example matches *@supplier.example`. */
  readonly text: string;
}

/** How a transfer compares with one route. */
export interface Comparison {
  readonly route: Route;
  readonly match: Match;
  readonly conditions: readonly Condition[];
}

export interface RouteDecision {
  /** `undefined`: no route matches. */
  readonly route: Route | undefined;
  readonly action: RouteAction;
  /** For people: why the route matches. */
  readonly why: string;
  /** The route of which it is unknown whether it matches. */
  readonly doubt?: string;
}

/** The route that a record names, unless it is no longer configured. One of that name with other conditions does not count. */
export function routeOf(
  { routing }: Pick<Mailbox, "routing">,
  { rule }: { readonly rule?: string | undefined },
): Route | undefined {
  return rule === undefined ? undefined : routing?.routes.find((route) => route.rule === rule);
}

/** Identifies a route by its name together with its conditions. */
export function ruleOf(name: string, when: RouteConditions): string {
  return hash("sha256", JSON.stringify([name, when]), "hex").slice(0, 16);
}

/**
 * `undefined` while it depends on facts that are not known yet. What the service does not say at all may not send a transfer the
 * wrong way: an operator decides.
 */
export async function decideRoute(
  { routes, otherwise }: Routing,
  facts: RouteFacts,
): Promise<RouteDecision | undefined> {
  for (const { route, match, conditions } of await compareRoutes(routes, facts)) {
    if (match === "later") return undefined;
    if (match === "no") continue;
    const why = conditions.map(({ text }) => text).join(", and ") || "it applies to every transfer";
    if (match === "unknown") return { route: undefined, action: "hold", why, doubt: route.name };
    return { route, action: route.action, why };
  }
  return { route: undefined, action: otherwise, why: "no route matches" };
}

export async function compareRoutes(routes: readonly Route[], facts: RouteFacts): Promise<Comparison[]> {
  const { sender, subject, recipients, fileNames, bytes } = facts;
  const { to, cc, more } = recipients ?? {};
  const isEveryone = to !== undefined && cc !== undefined && more === undefined;
  const texts = [
    await compareTexts(routes, "sender", [sender], addressForm),
    await compareTexts(routes, "subject", subject === undefined ? undefined : [subject], textForm),
    await compareTexts(routes, "recipient", [...(to ?? []), ...(cc ?? [])], addressForm, isEveryone),
    await compareTexts(routes, "file", fileNames, fileNameForm),
  ];
  return routes.map((route) => {
    const { minBytes, maxBytes } = route.when;
    const conditions = [
      ...texts.map((compared) => compared.get(route)),
      minBytes === undefined
        ? undefined
        : compareBytes(bytes, (it) => it >= minBytes, `at least ${minBytes}`),
      maxBytes === undefined ? undefined : compareBytes(bytes, (it) => it <= maxBytes, `at most ${maxBytes}`),
    ].filter((condition) => condition !== undefined);
    const worst = (["no", "later", "unknown"] as const).find((match) =>
      conditions.some((it) => it.match === match),
    );
    return { route, match: worst ?? "yes", conditions };
  });
}

/**
 * The condition of each route that has one. A text gets its form once for all routes, and none is kept: all may be long. `isAll`:
 * there are no other texts.
 */
async function compareTexts(
  routes: readonly Route[],
  what: "sender" | "subject" | "recipient" | "file",
  texts: readonly string[] | undefined,
  form: NormalForm,
  isAll = true,
): Promise<ReadonlyMap<Route, Condition>> {
  const compared = new Map<Route, Condition>();
  const open = new Map<Route, readonly (string | undefined)[]>();
  for (const route of routes) if (route.when[what]) open.set(route, route.when[what].map(form));
  const withRoutes = function* () {
    for (const text of texts ?? []) {
      if (open.size === 0) return;
      const own = form(text);
      for (const [route, globs] of open) yield { text, own, route, globs };
    }
  };
  const wantedBy = ({ when }: Route) => when[what]?.join(" or ");
  for await (const { text, own, route, globs } of inTurns(withRoutes())) {
    const at = globs.findIndex((glob) => own !== undefined && glob !== undefined && matchesGlob(own, glob));
    if (at < 0 && (own !== undefined || route.action === "deliver")) continue;
    const doubt = `is not valid text, and may mean ${wantedBy(route)}`;
    const why = at < 0 ? doubt : `matches ${route.when[what]?.[at]}`;
    compared.set(route, { match: "yes", text: `the ${what} ${quoted(text)} ${why}` });
    open.delete(route);
  }
  const [only = ""] = texts ?? [];
  const fails = only.isWellFormed() ? "does not match" : "is not valid text, so it does not match";
  const given = texts?.length === 1 ? `the ${what} ${quoted(only)} ${fails}` : `no ${what} matches`;
  const later = {
    match: "later",
    text: (wanted: string) => `the ${what} is not known yet (${wanted})`,
  } as const;
  const hidden = {
    match: "unknown",
    text: (wanted: string) => `the service does not name each ${what} (${wanted})`,
  } as const;
  const none = { match: "no", text: (wanted: string) => `${given} ${wanted}` } as const;
  const { match, text } = texts === undefined ? later : isAll ? none : hidden;
  for (const route of open.keys()) compared.set(route, { match, text: text(wantedBy(route) ?? "") });
  return compared;
}

function compareBytes(
  bytes: number | undefined,
  isWanted: (bytes: number) => boolean,
  wanted: string,
): Condition {
  if (bytes === undefined) return { match: "later", text: `the size is not known yet (${wanted} bytes)` };
  const match = isWanted(bytes) ? "yes" : "no";
  return { match, text: `its ${bytes} bytes are ${match === "yes" ? "" : "not "}${wanted}` };
}

const MAX_SHOWN = 80;

/** Untrusted text, cut. */
function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
}

/** Changes whenever a decision may change. `unpack`: of the mailbox, because names of unpacked files are compared too. */
export function fingerprintOf(
  { routes, otherwise }: Routing,
  unpack: Handoff["unpack"],
  { recipients }: Pick<Sent, "recipients">,
): string {
  const conditions = routes.map(({ name, when, action, handoff }) => [name, when, action, handoff?.unpack]);
  // Of routes that name no recipient, it is as before.
  const isNamed = routes.some(({ when }) => when.recipient !== undefined);
  return JSON.stringify([conditions, otherwise, unpack, ...(isNamed ? [recipients ?? null] : [])]);
}
