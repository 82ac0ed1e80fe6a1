/** The `mailboxes` list: the settings of each mailbox, its passwords, and the service it uses. */
import { didYouMean } from "../base/nearest.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { CHECK } from "./check.ts";
import { type Spot, showValue, variableFor } from "./draft.ts";
import { HANDOFF } from "./handoff.ts";
import { describeWrongLayout, LAYOUT } from "./layout.ts";
import { PASSWORDS } from "./passwords.ts";
import { OTHERWISE, ROUTES } from "./routes.ts";
import {
  entry,
  group,
  INHERITED,
  key,
  list,
  PATH,
  READ,
  type Read,
  type ReadItems,
  type SchemaKeys,
  type SchemaNode,
  SWITCH,
} from "./schema-nodes.ts";
import { SERVICE, type ServiceSettings } from "./service.ts";
import { EXPECT, QUIET, SINCE } from "./times.ts";
import { DURATION } from "./units.ts";

/** Keys that `defaults` may set for all mailboxes. */
const SHARED_KEYS = {
  poll: key({ ...DURATION, default: "60s" }, "The time between two polls, at most 24h."),
  fetch: key(
    { type: "string", enum: ["auto", "files", "zip"], default: "auto" },
    "How to download the files of a transfer: `files` one by one, `zip` in one ZIP, `auto` in one ZIP if there are many small files. The delivered folder is the same.",
  ),
  verify: key(
    { type: "string", enum: ["require", "prefer"], default: "require" },
    "What to do if the service gives no checksum for some files of a transfer. `require`: quarantine it. `prefer`: deliver it, marked as not verified. A wrong checksum always leads to quarantine.",
  ),
  layout: key(
    { ...LAYOUT, default: "{mailbox}/{sender}/{trackingId}" },
    "The folder of a transfer inside the inbox. Placeholders: `{mailbox} {sender} {senderDomain} {trackingId} {transferId} {subject} {year} {month} {day}`. The date is the day of the discovery, in UTC. Without `handoff.deliver: files`, it must contain `{trackingId}` or `{transferId}`.",
  ),
  passwordAttempts: key(
    { type: "integer", minimum: 1, maximum: 10, default: 2 },
    "How many wrong passwords Inlet may send for a transfer. A service may lock or destroy a transfer after a few. An attempt with an unknown verdict counts too. From 2 on, rules leave the last attempt to an operator.",
  ),
  since: SINCE,
  quiet: QUIET,
} as const satisfies SchemaKeys;

export const DEFAULTS = group(SHARED_KEYS, "Settings for all mailboxes that do not set them themselves.");

const FORM = {
  ...entry("a mailbox", ["email"], {
    email: key(
      { type: "string", title: "an email address", pattern: "^[^\\s@.][^\\s@]*@[^\\s@]+$", maxLength: 254 },
      "The address whose received transfers to download.",
    ),
    name: key(
      {
        type: "string",
        title: "a name without slashes that does not begin with a dot",
        pattern: "^[^\\u0000-\\u001f/\\\\.][^\\u0000-\\u001f/\\\\]*$",
        maxLength: 100,
      },
      "What people call the mailbox. Default: the address. Its first name also names its folders and records, and that never changes: later names appear only in status, commands and messages.",
    ),
    ...SHARED_KEYS,
    passwords: PASSWORDS,
    paused: key({ ...SWITCH, default: false }, "Whether to stop polling this mailbox for now."),
    inbox: key(
      PATH,
      "The inbox of this mailbox, on the file system and mount of `work`. Default: the common `inbox`. A change applies to later deliveries.",
    ),
    expect: EXPECT,
    routes: ROUTES,
    otherwise: OTHERWISE,
    handoff: key(
      HANDOFF,
      "The hand-off of this mailbox. Each key set here replaces the same key of the common `handoff`.",
    ),
    check: key(
      CHECK,
      "The check of this mailbox. Each key set here replaces the same key of the common `check`.",
    ),
    service: key(
      SERVICE,
      "The service of this mailbox. Each key set here replaces the same key of the common `service`.",
    ),
  }),
  [INHERITED]: ["inbox", "service", "check", "handoff", ...Object.keys(SHARED_KEYS)],
} as const satisfies SchemaNode;

const MAILBOX = { ...FORM, [READ]: readMailbox } as const satisfies SchemaNode;

export const MAILBOXES = key(
  { ...list("a list of at least one mailbox", MAILBOX), minItems: 1, [READ]: readMailboxes },
  "The mailboxes to poll, at least one. No two mailboxes may have the same address or the same name.",
);

export interface MailboxSettings extends Mailbox {
  readonly service: ServiceSettings;
}

function readMailbox(read: Read<typeof FORM>, at: Spot): MailboxSettings | undefined {
  const { email, name = email, poll: pollMs, passwords = [], expect = [], service, ...others } = read;
  const { layout, handoff, inbox, routes = [], otherwise, ...shared } = others;
  const wrong = describeWrongLayout(layout, handoff.deliver === "files");
  if (wrong !== undefined) at.refuse(`${showValue(layout)} ${wrong}`, "layout");
  requireAddress(at.at("service"));
  if (service === undefined) return undefined;
  const isRouted = routes.length > 0 || otherwise !== OTHERWISE.default;
  return {
    ...shared,
    name,
    email,
    pollMs,
    layout,
    passwords,
    expect,
    service,
    rulesWithoutMode: service.rulesWithoutMode,
    inbox: at.sets("inbox") ? inbox : undefined,
    ...(at.sets("handoff") && { handoff }),
    routing: isRouted ? { routes, otherwise } : undefined,
  };
}

/** `service`: that of a mailbox, or the common one. */
export function requireAddress(service: Spot): void {
  const path = ["service", "baseUrl"];
  const { problems } = service.draft;
  if (service.isSet("baseUrl") || problems.has(path)) return;
  problems.add(path, `is missing: give the address of the service, or set ${variableFor(path)}`);
}

/** Folders and records use names and addresses without regard to case, so two must differ in more than case. */
function readMailboxes(mailboxes: ReadItems<typeof MAILBOX>, at: Spot): MailboxSettings[] {
  for (const key of ["email", "name"] as const) {
    const seen = new Map<string, number>();
    for (const [number, mailbox] of mailboxes.entries()) {
      if (mailbox === undefined) continue;
      const value = mailbox[key];
      const first = seen.get(canonicalAddress(value));
      if (first === undefined) seen.set(canonicalAddress(value), number);
      else {
        const shown = at.isSet(number, key) ? key : "email";
        at.refuse(`${showValue(value)} is already used by mailboxes[${first}]`, number, shown);
      }
    }
  }
  return mailboxes.filter((mailbox) => mailbox !== undefined);
}

export type Named = Readonly<Partial<Record<"name" | "email" | "label", string | undefined>>>;

/** The index of the mailbox with this label, address or key, case-insensitive; negative for none. */
export function findMailbox(mailboxes: readonly Named[], wanted: string): number {
  const key = canonicalAddress(wanted);
  const namesOf = ({ name, label = name, email }: Named) =>
    [label, email, name].map((each = "") => canonicalAddress(each));
  const found = [0, 1, 2].map((rank) => mailboxes.findIndex((mailbox) => namesOf(mailbox)[rank] === key));
  return found.find((at) => at >= 0) ?? -1;
}

export function describeUnknownMailbox(mailboxes: readonly Named[], wanted: string): string {
  const names = mailboxes.map(({ name, label = name, email = "" }) => label ?? email);
  const known = `known: ${names.join(", ") || "none"}`;
  return `there is no mailbox ${showValue(wanted)}, ${didYouMean(wanted, names, known)}`;
}
