/** The `mailboxes` list: the settings of each mailbox, its passwords, and the service it uses. */
import { nearestName } from "../base/nearest.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { CHECK_KEYS, type RawCheck, readCheck } from "./check.ts";
import { type Draft, type KeyPath, showValue, variableFor } from "./draft.ts";
import { deliversFiles, HANDOFF, type RawHandoff, readHandoff } from "./handoff.ts";
import { type Layer, layersWithin, pick, readKeys } from "./layers.ts";
import { LAYOUT, readLayout } from "./layout.ts";
import { type COMMON_PASSWORDS, PASSWORDS, readCommonPasswords } from "./passwords.ts";
import { OTHERWISE, ROUTES, readRouting } from "./routes.ts";
import { group, key, PATH, type SchemaKeys, type SchemaNode, SWITCH, type Written } from "./schema-nodes.ts";
import { type RawService, readService, SERVICE_KEYS } from "./service.ts";
import type { MailboxSettings, ServiceSettings } from "./settings.ts";
import { EXPECT, QUIET, SINCE } from "./times.ts";
import { DURATION } from "./units.ts";

/** Keys that `defaults` may set for all mailboxes. */
const SHARED_KEYS = {
  poll: key({ ...DURATION, default: "60s" }, "The time between two polls, at most 24h."),
  fetch: key(
    { type: "string", enum: ["auto", "files", "zip"], default: "auto" },
    "How to download the files of a transfer. `files`: one by one. `zip`: all in one ZIP. `auto`: in one ZIP if there are many small files, otherwise one by one. The delivered folder is the same.",
  ),
  verify: key(
    { type: "string", enum: ["require", "prefer"], default: "require" },
    "How to treat a transfer if the service gives no checksum for some of its files. `require`: quarantine it. `prefer`: deliver it, marked as not verified. A file with a wrong checksum is never delivered, unless an operator releases the transfer.",
  ),
  layout: key(
    { ...LAYOUT, default: "{mailbox}/{sender}/{trackingId}" },
    "The folder of a transfer inside the inbox. Placeholders: `{mailbox} {sender} {senderDomain} {trackingId} {transferId} {subject} {year} {month} {day}`. The date is the day on which Inlet discovered the transfer, in UTC. The layout must contain `{trackingId}` or `{transferId}`. If `handoff.deliver` is `files`, it need not, because transfers may then share the folder.",
  ),
  passwordAttempts: key(
    { type: "integer", minimum: 1, maximum: 10, default: 2 },
    "How many wrong passwords Inlet may send for a transfer. A service may lock or destroy a transfer after a few. An attempt with an unknown verdict counts too. With 3, rules stop after two refused passwords, so that one attempt is left for an operator; with 2, they stop after one. With 1, a rule may use the only attempt.",
  ),
  since: SINCE,
  quiet: QUIET,
} as const satisfies SchemaKeys;

export const DEFAULTS = group(SHARED_KEYS, "Settings for all mailboxes that do not set them themselves.");

/** Keys that only a mailbox has. */
const OWN_KEYS = {
  passwords: PASSWORDS,
  paused: key({ ...SWITCH, default: false }, "Whether to stop polling this mailbox for now."),
  inbox: key(
    PATH,
    "The inbox of this mailbox, on the same file system and mount as `work`. Default: the common `inbox`. A change applies to later deliveries. Earlier deliveries stay in the old inbox, and Inlet still notices when they are picked up.",
  ),
  expect: EXPECT,
} as const satisfies SchemaKeys;

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
        "The name of the mailbox in folders, records and messages. Default: the address. Do not change it later: a renamed mailbox downloads its transfers again.",
    },
    ...SHARED_KEYS,
    ...OWN_KEYS,
    routes: ROUTES,
    otherwise: OTHERWISE,
    handoff: group(
      HANDOFF.properties,
      "The hand-off of this mailbox. Each key set here replaces the same key of the common `handoff`.",
    ),
    check: group(
      CHECK_KEYS,
      "The check of this mailbox. Each key set here replaces the same key of the common `check`.",
    ),
    service: group(
      SERVICE_KEYS,
      "The service of this mailbox. Each key set here replaces the same key of the common `service`.",
    ),
  },
  required: ["email"],
  additionalProperties: false,
} as const satisfies SchemaNode;

export type RawMailbox = Written<typeof MAILBOX>;

/** The groups of the configuration that mailboxes use. */
interface RawGroups {
  readonly mailboxes?: readonly (RawMailbox | undefined)[];
  readonly defaults?: Written<typeof DEFAULTS>;
  readonly passwords?: Written<typeof COMMON_PASSWORDS>;
  readonly service?: RawService;
  readonly check?: RawCheck;
  readonly handoff?: RawHandoff;
}

/** Problems go to the draft; a mailbox with a problem may be missing from the result. */
export async function readMailboxes(raw: RawGroups, draft: Draft): Promise<MailboxSettings[]> {
  const { mailboxes = [], service: common = {} } = raw;
  let shared: Promise<ServiceSettings | undefined> | undefined;
  const readShared = () => {
    shared ??= requireService([{ raw: common, path: ["service"] }], draft);
    return shared;
  };
  if (common.baseUrl !== undefined || mailboxes.length === 0) await readShared();
  const settings: MailboxSettings[] = [];
  for (const [at, own] of mailboxes.entries()) {
    if (own === undefined) continue;
    const path = ["mailboxes", at];
    const service = own.service
      ? await requireService(serviceLayers(common, own.service, path), draft)
      : await readShared();
    const mailbox = await readMailbox(own, raw, path, draft);
    if (service === undefined) continue;
    settings.push({ ...mailbox, service });
  }
  checkUnique(mailboxes, draft);
  const services = settings.map(({ service }) => service.baseUrl);
  const commonFor = await readCommonPasswords(raw.passwords ?? [], services, draft);
  return settings.map((mailbox) => {
    const passwords = [...mailbox.passwords, ...commonFor(mailbox.service.baseUrl)];
    return { ...mailbox, passwords };
  });
}

/** The mailbox's own keys before the common ones. */
export function serviceLayers(common: RawService, own: RawService, path: KeyPath): Layer<RawService>[] {
  return [
    { raw: own, path: [...path, "service"] },
    { raw: common, path: ["service"] },
  ];
}

async function requireService(
  layers: readonly Layer<RawService>[],
  draft: Draft,
): Promise<ServiceSettings | undefined> {
  const isNamed = layers.some(({ raw }) => raw.baseUrl !== undefined);
  const path = ["service", "baseUrl"];
  if (!isNamed && !draft.problems.has(path)) {
    draft.problems.add(path, `is missing: give the address of the service, or set ${variableFor(path)}`);
  }
  return readService(layers, draft);
}

async function readMailbox(own: RawMailbox, raw: RawGroups, path: KeyPath, draft: Draft): Promise<Mailbox> {
  const layers: Layer<Pick<RawMailbox, "check" | "handoff">>[] = [
    { raw: own, path },
    { raw, path: [] },
  ];
  const sharedLayers: Layer<Written<typeof DEFAULTS>>[] = [
    { raw: own, path },
    { raw: raw.defaults ?? {}, path: ["defaults"] },
  ];
  const handoffs = layersWithin(layers, "handoff");
  const { poll, ...shared } = await readKeys(SHARED_KEYS, sharedLayers, draft);
  const { layout } = shared;
  readLayout(layout, pick(sharedLayers, "layout")?.path ?? [], deliversFiles(handoffs), draft);
  const { passwords = [], expect = [], ...only } = await readKeys(OWN_KEYS, [{ raw: own, path }], draft);
  const { email = "", name = email } = own;
  return {
    ...shared,
    ...only,
    name,
    email,
    pollMs: poll,
    passwords,
    expect,
    check: await readCheck(layersWithin(layers, "check"), draft),
    ...(own.handoff && { handoff: await readHandoff(handoffs, draft) }),
    routing: await readRouting(own, path, layout, handoffs, draft),
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
