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

/** Chosen by the sender. Missing: not known yet. */
export interface RouteFacts {
  readonly sender: string;
  readonly subject: string | undefined;
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
  sender: string,
  { subject = "", files, unpacked = [] }: Contents,
): RouteFacts {
  const replaced = unpacked.filter(({ isDelivered }) => !isDelivered);
  const sent = [...files.filter(({ from }) => from === undefined), ...replaced];
  return {
    sender,
    subject,
    fileNames: [...files, ...replaced].flatMap(({ originalName, name }) => [originalName, name]),
    bytes: sent.reduce((sum, { size }) => sum + size, 0),
  };
}

/** The facts about an opened transfer. */
export function factsOf(
  { sender, subject = "" }: { readonly sender: string; readonly subject?: string | undefined },
  files: readonly { readonly name: string; readonly bytes: number }[],
): RouteFacts {
  const bytes = files.reduce((sum, each) => sum + each.bytes, 0);
  return { sender, subject, fileNames: files.map(({ name }) => name), bytes };
}

type Match = "yes" | "no" | "unknown";

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

/** `undefined` while it depends on facts that are not known yet. */
export async function decideRoute(
  { routes, otherwise }: Routing,
  facts: RouteFacts,
): Promise<RouteDecision | undefined> {
  for (const route of routes) {
    const { match, conditions } = await compareWith(route, facts);
    if (match === "unknown") return undefined;
    if (match === "no") continue;
    const why = conditions.map(({ text }) => text).join(", and ") || "it applies to every transfer";
    return { route, action: route.action, why };
  }
  return { route: undefined, action: otherwise, why: "no route matches" };
}

export async function compareWith(route: Route, facts: RouteFacts): Promise<Comparison> {
  const conditions = await conditionsOf(route, facts);
  const worst = (["no", "unknown"] as const).find((match) => conditions.some((it) => it.match === match));
  return { route, match: worst ?? "yes", conditions };
}

async function conditionsOf(
  { action, when: { sender, subject, file, minBytes, maxBytes } }: Route,
  facts: RouteFacts,
): Promise<Condition[]> {
  const subjects = facts.subject === undefined ? undefined : [facts.subject];
  const { bytes } = facts;
  const demandsValid = action === "deliver";
  return [
    sender && (await compareText("sender", [facts.sender], sender, addressForm, demandsValid)),
    subject && (await compareText("subject", subjects, subject, textForm, demandsValid)),
    file && (await compareText("file", facts.fileNames, file, fileNameForm, demandsValid)),
    minBytes === undefined ? undefined : compareBytes(bytes, (it) => it >= minBytes, `at least ${minBytes}`),
    maxBytes === undefined ? undefined : compareBytes(bytes, (it) => it <= maxBytes, `at most ${maxBytes}`),
  ].filter((condition) => condition !== undefined);
}

/** A text without a normal form matches nothing if `demandsValid`, otherwise everything. */
async function compareText(
  what: string,
  texts: readonly string[] | undefined,
  globs: readonly string[],
  form: NormalForm,
  demandsValid: boolean,
): Promise<Condition> {
  const wanted = globs.join(" or ");
  if (texts === undefined) return { match: "unknown", text: `the ${what} is not known yet (${wanted})` };
  const forms = globs.map(form);
  for await (const text of inTurns(texts)) {
    const own = form(text);
    if (own === undefined) {
      if (demandsValid) continue;
      return { match: "yes", text: `the ${what} ${quoted(text)} is not valid text, and may mean ${wanted}` };
    }
    const at = forms.findIndex((glob) => glob !== undefined && matchesGlob(own, glob));
    if (at >= 0) return { match: "yes", text: `the ${what} ${quoted(text)} matches ${globs[at]}` };
  }
  const [only = ""] = texts;
  const fails = form(only) === undefined ? "is not valid text, so it does not match" : "does not match";
  const given = texts.length === 1 ? `the ${what} ${quoted(only)} ${fails}` : `no ${what} matches`;
  return { match: "no", text: `${given} ${wanted}` };
}

function compareBytes(
  bytes: number | undefined,
  isWanted: (bytes: number) => boolean,
  wanted: string,
): Condition {
  if (bytes === undefined) return { match: "unknown", text: `the size is not known yet (${wanted} bytes)` };
  const match = isWanted(bytes) ? "yes" : "no";
  return { match, text: `its ${bytes} bytes are ${match === "yes" ? "" : "not "}${wanted}` };
}

const MAX_SHOWN = 80;

/** Untrusted text, cut. */
function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
}

/** Changes whenever a decision may change. `unpack`: of the mailbox, because names of unpacked files are compared too. */
export function fingerprintOf({ routes, otherwise }: Routing, unpack: Handoff["unpack"]): string {
  const conditions = routes.map(({ name, when, action, handoff }) => [name, when, action, handoff?.unpack]);
  return JSON.stringify([conditions, otherwise, unpack]);
}
