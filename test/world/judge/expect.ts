/** What a configuration means, written a second time: the world judges the program by it. */
import type { SentTransfer } from "../plan/sent.ts";
import type { Action, Box, RawHandoff, RawRoute, Site } from "../plan/site.ts";

export interface Decision {
  readonly route: RawRoute | undefined;
  readonly action: Action;
}

/** One spelling for all spellings of an address. */
export function fold(address: string): string {
  return address.trim().normalize("NFC").toLowerCase();
}

/** A mailbox is an address at a service, whatever its name and place in the file. */
export function boxOf(site: Site, address: string): Box | undefined {
  return site.boxes.find(({ email }) => fold(email) === fold(address));
}

/** `isAllowed`: an operator wants it, whatever the action is. */
export function decide(site: Site, address: string, transfer: SentTransfer, isAllowed = false): Decision {
  const box = boxOf(site, address);
  if (box === undefined) return { route: undefined, action: "deliver" };
  const sent = transfer.files.map(({ name }) => name);
  const first = decideBy(box, transfer, sent);
  const unpack = handoffOf(site, address, first.route).unpack;
  if ((first.action !== "deliver" && !isAllowed) || unpack === undefined || unpack === "none") return first;
  const members = transfer.files.flatMap((file) => file.members?.map(({ name }) => name) ?? []);
  return decideBy(box, transfer, [...sent, ...members]);
}

function decideBy(box: Box, transfer: SentTransfer, names: readonly string[]): Decision {
  const route = box.routes.find((each) => matches(each, transfer, names));
  return { route, action: route === undefined ? box.otherwise : (route.action ?? "deliver") };
}

function matches(route: RawRoute, transfer: SentTransfer, names: readonly string[]): boolean {
  const { sender, subject, file, action = "deliver" } = route;
  // What a sender writes in an odd way never evades a rule that holds or leaves out.
  const isFit = (text: string, pattern: string) =>
    text.isWellFormed() ? fits(text, pattern) : action !== "deliver";
  return (
    (sender === undefined || isFit(transfer.sender, sender)) &&
    (subject === undefined || isFit(transfer.subject, subject)) &&
    (file === undefined || names.some((name) => isFit(name, file)))
  );
}

function fits(text: string, pattern: string): boolean {
  const folded = text.normalize("NFKC").toLowerCase();
  const [start = "", end = ""] = pattern.toLowerCase().split("*", 2);
  if (pattern.startsWith("*") && pattern.endsWith("*"))
    return folded.includes(pattern.toLowerCase().slice(1, -1));
  return folded.startsWith(start) && folded.endsWith(end);
}

/** Identifies a rule: its name and what it matches. */
export function identityOf(route: RawRoute | undefined): string {
  if (route === undefined) return "none";
  const { name, sender, subject, file, handoff, inbox, layout } = route;
  // Without a name it has no consequences of its own.
  if (name === undefined && handoff === undefined && inbox === undefined && layout === undefined)
    return "none";
  return JSON.stringify({ name, sender, subject, file });
}

export function handoffOf(site: Site, address: string, route?: RawRoute): RawHandoff {
  return { ...site.handoff, ...boxOf(site, address)?.handoff, ...route?.handoff };
}

/** Of each of these sites: the hand-off of a transfer that is delivered. */
export function handoffsOf(sites: readonly Site[], address: string, transfer: SentTransfer): RawHandoff[] {
  return sites.map((site) => handoffOf(site, address, decide(site, address, transfer, true).route));
}

/** The hand-off that a site has for a rule of a mailbox; `undefined` without that mailbox or rule. */
export function handoffFor(site: Site, address: string, identity: string): RawHandoff | undefined {
  const box = boxOf(site, address);
  // What all mailboxes have in common outlives them.
  if (identity === "none") return handoffOf(site, address);
  if (box === undefined) return undefined;
  const route = box.routes.find((each) => identityOf(each) === identity);
  return route && handoffOf(site, address, route);
}

/** The command that the owner of a delivery's hand-off has in a site; `undefined` without the owner, or the rule that decided. */
export function commandFor(
  site: Site,
  address: string,
  identity: string,
  owner: string | undefined,
): readonly string[] | undefined {
  const route = boxOf(site, address)?.routes.find((each) => identityOf(each) === identity);
  if (identity !== "none" && route === undefined) return undefined;
  if (owner === "common") return site.handoff.command;
  return ownerOf("command", site, address, route) === owner
    ? handoffOf(site, address, route).command
    : undefined;
}

/** Who configures a step that follows a delivery: the route, the mailbox, or all of them in common. */
export function ownerOf(
  step: "command" | "webhook",
  site: Site,
  address: string,
  route?: RawRoute,
): string | undefined {
  if (route?.handoff?.[step] !== undefined) return `route ${identityOf(route)}`;
  if (boxOf(site, address)?.handoff?.[step] !== undefined) return `mailbox ${fold(address)}`;
  return site.handoff[step] === undefined ? undefined : "common";
}
