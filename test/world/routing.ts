/** What routes mean, written a second time: the world judges the program by it. */
import type { RawHandoff, RawRoute, Site } from "./plan.ts";
import { BOX } from "./plan.ts";
import type { SentTransfer } from "./service.ts";

export interface Decision {
  readonly route: RawRoute | undefined;
  readonly action: "deliver" | "hold" | "ignore";
}

/** Only the first mailbox has routes. `isAllowed`: an operator wants it, whatever the action is. */
export function decide(
  site: Site,
  mailbox: string,
  transfer: SentTransfer,
  isAllowed: boolean = false,
): Decision {
  if (mailbox.toLowerCase() !== BOX) return { route: undefined, action: "deliver" };
  const sent = transfer.files.map(({ name }) => name);
  const first = decideBy(site, transfer, sent);
  const unpack = first.route?.handoff?.unpack ?? site.handoff.unpack;
  if ((first.action !== "deliver" && !isAllowed) || unpack !== "instead") return first;
  const members = transfer.files.flatMap((file) => file.members?.map(({ name }) => name) ?? []);
  return decideBy(site, transfer, [...sent, ...members]);
}

function decideBy(site: Site, transfer: SentTransfer, names: readonly string[]): Decision {
  const route = site.routes.find((each) => matches(each, transfer, names));
  return { route, action: route === undefined ? site.otherwise : (route.action ?? "deliver") };
}

function matches(
  { sender, subject, file }: RawRoute,
  transfer: SentTransfer,
  names: readonly string[],
): boolean {
  return (
    (sender === undefined || fits(transfer.sender, sender)) &&
    (subject === undefined || fits(transfer.subject, subject)) &&
    (file === undefined || names.some((name) => fits(name, file)))
  );
}

function fits(text: string, pattern: string): boolean {
  const [start = "", end = ""] = pattern.split("*", 2);
  if (pattern.startsWith("*") && pattern.endsWith("*")) return text.includes(pattern.slice(1, -1));
  return text.startsWith(start) && text.endsWith(end);
}

/** Identifies a rule: its name and what it matches. */
export function identityOf(route: RawRoute | undefined): string {
  if (route === undefined) return "none";
  const { name, sender, subject, file, handoff } = route;
  // Without a name it has no consequences of its own.
  if (name === undefined && handoff === undefined) return "none";
  return JSON.stringify({ name, sender, subject, file });
}

/** The hand-off that a site has for a rule; `undefined` without that rule. */
export function handoffFor(site: Site, identity: string): RawHandoff | undefined {
  if (identity === "none") return site.handoff;
  const route = site.routes.find((each) => identityOf(each) === identity);
  return route && { ...site.handoff, ...route.handoff };
}
