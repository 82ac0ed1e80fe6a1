/** The mailboxes: their settings, their passwords, and the service each of them uses. */
import type { PasswordRule } from "../model/mailbox.ts";
import { canonicalAddress } from "../model/transfer.ts";
import type { Draft } from "./draft.ts";
import { variableFor } from "./environment.ts";
import { describeWrongLayout } from "./layout.ts";
import { parseSecret } from "./parse-secret.ts";
import { type KeyPath, showValue } from "./problems.ts";
import type { RawMailbox, RawPasswordRule, RawService } from "./raw.ts";
import { SCHEMA } from "./schema.ts";
import { parseService, type ServiceLayer } from "./service.ts";
import type { MailboxSettings, ServiceSettings } from "./settings.ts";
import { parseExpect, parseQuiet } from "./times.ts";
import { parseDuration } from "./units.ts";

const KEYS = SCHEMA.properties.mailboxes.items.properties;

/** Problems go to the draft; a mailbox that has one may be missing from the result. `zone`: the time zone. */
export async function parseMailboxes(zone: string, draft: Draft): Promise<MailboxSettings[]> {
  const { service: common = {}, mailboxes = [] } = draft.raw;
  const shared = lazily(() => requireService([{ raw: common, path: ["service"] }], draft));
  if (common.baseUrl !== undefined || mailboxes.length === 0) await shared();
  const settings: MailboxSettings[] = [];
  for (const [at, raw] of mailboxes.entries()) {
    if (raw === undefined) continue;
    const path = ["mailboxes", at];
    const service = raw.service
      ? await requireService(serviceLayers(common, raw.service, path), draft)
      : await shared();
    const mailbox = await parseMailbox(raw, path, zone, draft);
    if (service !== undefined) settings.push({ ...mailbox, service });
  }
  checkDifferent(draft);
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
  return parseService(layers, draft);
}

async function parseMailbox(raw: RawMailbox, path: KeyPath, zone: string, draft: Draft) {
  const { problems } = draft;
  const poll = raw.poll ?? KEYS.poll.default;
  const pollMs = parseDuration(poll);
  if (pollMs === undefined) problems.add([...path, "poll"], `${showValue(poll)} is longer than 24h`);
  const layout = raw.layout ?? KEYS.layout.default;
  const wrong = describeWrongLayout(layout);
  if (wrong !== undefined) problems.add([...path, "layout"], `${showValue(layout)} ${wrong}`);
  const email = raw.email ?? "";
  return {
    name: raw.name ?? email,
    email,
    pollMs: pollMs ?? 0,
    fetch: raw.fetch ?? KEYS.fetch.default,
    verify: raw.verify ?? KEYS.verify.default,
    layout,
    passwords: await parsePasswords(raw.passwords ?? [], [...path, "passwords"], draft),
    passwordAttempts: raw.passwordAttempts ?? KEYS.passwordAttempts.default,
    paused: raw.paused ?? KEYS.paused.default,
    quiet: parseQuiet(raw.quiet, [...path, "quiet"], zone, draft),
    expect: parseExpect(raw.expect ?? [], [...path, "expect"], zone, draft),
  };
}

async function parsePasswords(
  rules: readonly (RawPasswordRule | undefined)[],
  path: KeyPath,
  draft: Draft,
): Promise<PasswordRule[]> {
  const parsed = rules.map(async (rule, at) => {
    if (rule === undefined) return [];
    const { sender, trackingId, password } = rule;
    if (sender === undefined && trackingId === undefined) {
      draft.problems.add([...path, at], "must say whose transfers it opens: give sender, trackingId or both");
    }
    if (password === undefined) return [];
    const source = await parseSecret(password, [...path, at, "password"], draft);
    return [{ sender, trackingId, password: source }];
  });
  return (await Promise.all(parsed)).flat();
}

/** Whatever the case of their letters: folders and records go by these. */
function checkDifferent({ raw: { mailboxes = [] }, problems }: Draft): void {
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

function lazily<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
