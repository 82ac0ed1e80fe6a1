/** The `mailboxes` list: the settings of each mailbox, its passwords, and the service it uses. */
import { nearestName } from "../base/nearest.ts";
import { PLACEHOLDERS } from "../model/mailbox.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { type Draft, type KeyPath, showValue, variableFor } from "./draft.ts";
import { PASSWORDS, readPasswords } from "./passwords.ts";
import { group, type SchemaNode, SWITCH, TEXT, type Written } from "./schema-nodes.ts";
import { type RawService, readService, SERVICE_KEYS, type ServiceLayer } from "./service.ts";
import type { MailboxSettings, ServiceSettings } from "./settings.ts";
import { EXPECT, QUIET, readExpect, readQuiet } from "./times.ts";
import { DURATION, readDuration } from "./units.ts";

export const MAILBOX = {
  type: "object",
  title: "a mailbox",
  properties: {
    email: {
      type: "string",
      title: "an email address",
      pattern: "^[^\\s@.][^\\s@]*@[^\\s@]+$",
      maxLength: 254,
      description: "The address whose received transfers are downloaded.",
    },
    name: {
      type: "string",
      title: "a name without slashes that does not begin with a dot",
      pattern: "^[^\\u0000-\\u001f/\\\\.][^\\u0000-\\u001f/\\\\]*$",
      maxLength: 100,
      description:
        "What it is called in folders, records and messages. The address, where absent. Keep it: a renamed mailbox receives its transfers again.",
    },
    poll: {
      ...DURATION,
      default: "60s",
      description: "How long to wait between two polls, at most 24h.",
    },
    fetch: {
      type: "string",
      enum: ["auto", "files", "zip"],
      default: "auto",
      description:
        "How to download: `files` one by one, all as one `zip`, or `auto`, a ZIP for many small files and else one by one. The delivered folder is the same.",
    },
    verify: {
      type: "string",
      enum: ["require", "prefer"],
      default: "require",
      description:
        "What to do with files that the service has no checksums for: `require` puts the transfer into quarantine, `prefer` delivers it marked as not verified. A wrong checksum is never delivered.",
    },
    layout: {
      ...TEXT,
      title: "a relative path with placeholders",
      maxLength: 1000,
      default: "{mailbox}/{sender}/{trackingId}",
      description:
        "The folder of a transfer inside the inbox. Placeholders: `{mailbox} {sender} {senderDomain} {trackingId} {transferId} {subject} {year} {month} {day}` (UTC, when it was discovered). One of `{trackingId}` and `{transferId}` must be among them.",
    },
    passwords: PASSWORDS,
    passwordAttempts: {
      type: "integer",
      minimum: 1,
      maximum: 10,
      default: 2,
      description:
        "How many wrong passwords a transfer may cost, at most. A service may lock or destroy a transfer after a few. An attempt whose verdict is unknown counts too. Rules leave the last attempt to a person, unless there is only one.",
    },
    paused: { ...SWITCH, default: false, description: "Whether to leave this mailbox alone for now." },
    quiet: QUIET,
    expect: EXPECT,
    service: group(
      SERVICE_KEYS,
      "Where this mailbox's service differs from the common `service`: the keys given here win, one by one.",
    ),
  },
  required: ["email"],
  additionalProperties: false,
} as const satisfies SchemaNode;

type RawMailbox = Written<typeof MAILBOX>;

const KEYS = MAILBOX.properties;

/** Problems go to the draft; a mailbox with a problem may be missing from the result. */
export async function readMailboxes(
  mailboxes: readonly (RawMailbox | undefined)[] = [],
  common: RawService = {},
  zone: string,
  draft: Draft,
): Promise<MailboxSettings[]> {
  let shared: Promise<ServiceSettings | undefined> | undefined;
  const readShared = () => {
    shared ??= requireService([{ raw: common, path: ["service"] }], draft);
    return shared;
  };
  if (common.baseUrl !== undefined || mailboxes.length === 0) await readShared();
  const settings: MailboxSettings[] = [];
  for (const [at, raw] of mailboxes.entries()) {
    if (raw === undefined) continue;
    const path = ["mailboxes", at];
    const service = raw.service
      ? await requireService(serviceLayers(common, raw.service, path), draft)
      : await readShared();
    const mailbox = await readMailbox(raw, path, zone, draft);
    if (service !== undefined) settings.push({ ...mailbox, service });
  }
  checkDifferent(mailboxes, draft);
  return settings;
}

/** The mailbox's own keys before the common ones. */
export function serviceLayers(common: RawService, own: RawService, path: KeyPath): ServiceLayer[] {
  return [
    { raw: own, path: [...path, "service"] },
    { raw: common, path: ["service"] },
  ];
}

async function requireService(
  layers: readonly ServiceLayer[],
  draft: Draft,
): Promise<ServiceSettings | undefined> {
  const isNamed = layers.some(({ raw }) => raw.baseUrl !== undefined);
  const path = ["service", "baseUrl"];
  if (!isNamed && !draft.problems.has(path)) {
    draft.problems.add(path, `is missing: give the address of the service, or set ${variableFor(path)}`);
  }
  return readService(layers, draft);
}

async function readMailbox(raw: RawMailbox, path: KeyPath, zone: string, draft: Draft) {
  const layout = raw.layout ?? KEYS.layout.default;
  const wrong = describeWrongLayout(layout);
  if (wrong !== undefined) draft.problems.add([...path, "layout"], `${showValue(layout)} ${wrong}`);
  const email = raw.email ?? "";
  return {
    name: raw.name ?? email,
    email,
    pollMs: readDuration(raw.poll ?? KEYS.poll.default, [...path, "poll"], draft),
    fetch: raw.fetch ?? KEYS.fetch.default,
    verify: raw.verify ?? KEYS.verify.default,
    layout,
    passwords: await readPasswords(raw.passwords ?? [], [...path, "passwords"], draft),
    passwordAttempts: raw.passwordAttempts ?? KEYS.passwordAttempts.default,
    paused: raw.paused ?? KEYS.paused.default,
    quiet: readQuiet(raw.quiet, [...path, "quiet"], zone, draft),
    expect: readExpect(raw.expect ?? [], [...path, "expect"], zone, draft),
  };
}

/** Folders and records use names and addresses without regard to case, so two must differ in more than case. */
function checkDifferent(mailboxes: readonly (RawMailbox | undefined)[], { problems }: Draft): void {
  const emails = mailboxes.map((mailbox) => ({ key: "email", value: mailbox?.email }));
  const names = mailboxes.map((mailbox) =>
    mailbox?.name === undefined
      ? { key: "email", value: mailbox?.email }
      : { key: "name", value: mailbox.name },
  );
  for (const labels of [emails, names]) {
    const seen = new Map<string, number>();
    for (const [at, { key, value }] of labels.entries()) {
      if (value === undefined) continue;
      const first = seen.get(canonicalAddress(value));
      if (first === undefined) seen.set(canonicalAddress(value), at);
      else
        problems.add(["mailboxes", at, key], `${showValue(value)} is taken by mailboxes[${first}] already`);
    }
  }
}

interface Named {
  readonly name?: string;
  readonly email?: string;
}

/** The index of the mailbox with this name or address, in any case; below zero for none. */
export function findMailbox(mailboxes: readonly (Named | undefined)[], wanted: string): number {
  const key = canonicalAddress(wanted);
  return mailboxes.findIndex((mailbox) =>
    [mailbox?.name, mailbox?.email].some((name) => name && canonicalAddress(name) === key),
  );
}

export function describeUnknownMailbox(mailboxes: readonly (Named | undefined)[], wanted: string): string {
  const names = mailboxes.map((mailbox) => mailbox?.name ?? mailbox?.email ?? "");
  const nearest = nearestName(wanted, names);
  const known =
    nearest === undefined ? `known are ${names.join(", ") || "none"}` : `did you mean ${nearest}?`;
  return `there is no mailbox ${showValue(wanted)}, ${known}`;
}

const NAMES: readonly string[] = PLACEHOLDERS;

/** Layouts are relative, use known placeholders, and give each transfer a folder of its own. */
function describeWrongLayout(layout: string): string | undefined {
  if (layout.startsWith("/")) return "must be relative: it begins inside the inbox";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\\\u0000-\u001f]/.test(layout)) return "must not hold backslashes or control characters";
  const segments = layout.split("/");
  if (segments.some((segment) => segment.trim() === "")) return "must not hold an empty part between slashes";
  if (segments.some((segment) => segment.trim().startsWith("."))) {
    return "must not hold a part that begins with a dot";
  }
  const unknown = layout.match(/\{[^{}]*\}/g)?.find((found) => !NAMES.includes(found.slice(1, -1)));
  if (unknown !== undefined) return describeUnknownPlaceholder(unknown);
  if (/[{}]/.test(layout.replace(/\{[^{}]*\}/g, ""))) return "holds a { or } without its other half";
  if (!/\{(trackingId|transferId)\}/.test(layout)) {
    return "must hold {trackingId} or {transferId}: otherwise two transfers could have the same folder";
  }
  return undefined;
}

function describeUnknownPlaceholder(found: string): string {
  const nearest = nearestName(found.slice(1, -1), NAMES);
  const known = NAMES.map((name) => `{${name}}`).join(" ");
  return `holds the unknown placeholder ${found}, ${nearest === undefined ? `known are ${known}` : `did you mean {${nearest}}?`}`;
}
