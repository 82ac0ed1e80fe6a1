/** The `mailboxes` list: the settings of each mailbox, its passwords, and the service it uses. */
import { nearestName } from "../base/nearest.ts";
import { PLACEHOLDERS } from "../model/mailbox.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { CHECK_KEYS, checkOf, type RawCheck, readCheck } from "./check.ts";
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
      description: "The address whose received transfers to download.",
    },
    name: {
      type: "string",
      title: "a name without slashes that does not begin with a dot",
      pattern: "^[^\\u0000-\\u001f/\\\\.][^\\u0000-\\u001f/\\\\]*$",
      maxLength: 100,
      description:
        "Its name in folders, records and messages. Default: the address. Do not change it later: a renamed mailbox downloads its transfers again.",
    },
    poll: {
      ...DURATION,
      default: "60s",
      description: "The time between two polls, at most 24h.",
    },
    fetch: {
      type: "string",
      enum: ["auto", "files", "zip"],
      default: "auto",
      description:
        "How to download: `files` one by one, all in one `zip`, or `auto`: a ZIP for many small files, else one by one. The delivered folder is the same.",
    },
    verify: {
      type: "string",
      enum: ["require", "prefer"],
      default: "require",
      description:
        "How to treat a transfer with files without checksums: `require` quarantines it, `prefer` delivers it marked as not verified. Files with a wrong checksum are never delivered.",
    },
    layout: {
      ...TEXT,
      title: "a relative path with placeholders",
      maxLength: 1000,
      default: "{mailbox}/{sender}/{trackingId}",
      description:
        "The folder of a transfer inside the inbox. Placeholders: `{mailbox} {sender} {senderDomain} {trackingId} {transferId} {subject} {year} {month} {day}` (UTC, when it was discovered). It must contain `{trackingId}` or `{transferId}`.",
    },
    passwords: PASSWORDS,
    passwordAttempts: {
      type: "integer",
      minimum: 1,
      maximum: 10,
      default: 2,
      description:
        "The most wrong passwords to send for a transfer: a service may lock or destroy it after a few. An attempt with an unknown verdict counts too. Rules leave the last attempt to a person, unless there is only one.",
    },
    paused: { ...SWITCH, default: false, description: "Whether to stop polling this mailbox for now." },
    quiet: QUIET,
    expect: EXPECT,
    check: group(
      CHECK_KEYS,
      "The check of this mailbox, where it differs from the common `check`: each key set here replaces the common one.",
    ),
    service: group(
      SERVICE_KEYS,
      "The service of this mailbox, where it differs from the common `service`: each key set here replaces the common one.",
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
  { service: common = {}, check }: { readonly service?: RawService; readonly check?: RawCheck },
  zone: string,
  draft: Draft,
): Promise<MailboxSettings[]> {
  let shared: Promise<ServiceSettings | undefined> | undefined;
  const readShared = () => {
    shared ??= requireService([{ raw: common, path: ["service"] }], draft);
    return shared;
  };
  if (common.baseUrl !== undefined || mailboxes.length === 0) await readShared();
  const commonCheck = readCheck(check, ["check"], draft);
  const settings: MailboxSettings[] = [];
  for (const [at, raw] of mailboxes.entries()) {
    if (raw === undefined) continue;
    const path = ["mailboxes", at];
    const service = raw.service
      ? await requireService(serviceLayers(common, raw.service, path), draft)
      : await readShared();
    const mailbox = await readMailbox(raw, path, zone, draft);
    const ownCheck = checkOf(readCheck(raw.check, [...path, "check"], draft, commonCheck));
    if (service !== undefined) settings.push({ ...mailbox, check: ownCheck, service });
  }
  checkUnique(mailboxes, draft);
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
function checkUnique(mailboxes: readonly (RawMailbox | undefined)[], { problems }: Draft): void {
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
      else problems.add(["mailboxes", at, key], `${showValue(value)} is already used by mailboxes[${first}]`);
    }
  }
}

interface Named {
  readonly name?: string;
  readonly email?: string;
}

/** The index of the mailbox with this name or address, case-insensitive; negative for none. */
export function findMailbox(mailboxes: readonly (Named | undefined)[], wanted: string): number {
  const key = canonicalAddress(wanted);
  return mailboxes.findIndex((mailbox) =>
    [mailbox?.name, mailbox?.email].some((name) => name && canonicalAddress(name) === key),
  );
}

export function describeUnknownMailbox(mailboxes: readonly (Named | undefined)[], wanted: string): string {
  const names = mailboxes.map((mailbox) => mailbox?.name ?? mailbox?.email ?? "");
  const nearest = nearestName(wanted, names);
  const known = nearest === undefined ? `known: ${names.join(", ") || "none"}` : `did you mean ${nearest}?`;
  return `there is no mailbox ${showValue(wanted)}, ${known}`;
}

const PLACEHOLDER_NAMES: readonly string[] = PLACEHOLDERS;

/** Layouts are relative, use known placeholders, and give each transfer its own folder. */
function describeWrongLayout(layout: string): string | undefined {
  if (layout.startsWith("/")) return "must be relative: it begins inside the inbox";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
  if (/[\\\u0000-\u001f]/.test(layout)) return "must not contain backslashes or control characters";
  const segments = layout.split("/");
  if (segments.some((segment) => segment.trim() === ""))
    return "must not contain an empty part between slashes";
  if (segments.some((segment) => segment.trim().startsWith("."))) {
    return "must not contain a part that begins with a dot";
  }
  const unknown = layout
    .match(/\{[^{}]*\}/g)
    ?.find((found) => !PLACEHOLDER_NAMES.includes(found.slice(1, -1)));
  if (unknown !== undefined) return describeUnknownPlaceholder(unknown);
  if (/[{}]/.test(layout.replace(/\{[^{}]*\}/g, ""))) return "contains an unmatched { or }";
  if (!/\{(trackingId|transferId)\}/.test(layout)) {
    return "must contain {trackingId} or {transferId}: otherwise two transfers could have the same folder";
  }
  return undefined;
}

function describeUnknownPlaceholder(found: string): string {
  const nearest = nearestName(found.slice(1, -1), PLACEHOLDER_NAMES);
  const known = PLACEHOLDER_NAMES.map((name) => `{${name}}`).join(" ");
  return `contains the unknown placeholder ${found}, ${nearest === undefined ? `known: ${known}` : `did you mean {${nearest}}?`}`;
}
