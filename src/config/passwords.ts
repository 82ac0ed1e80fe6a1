/** The `passwords` of a mailbox, and the common ones: rules that supply a password by sender or tracking-id. */
import { type PasswordRule, serviceIdOf } from "../model/mailbox.ts";
import { readPasswordKey, SECRET } from "./credentials.ts";
import type { Draft, KeyPath } from "./draft.ts";
import { warnOfExpression } from "./patterns.ts";
import { key, READ, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";

const PASSWORD_RULE = {
  type: "object",
  title: "a rule",
  properties: {
    sender: key(
      { ...TEXT, maxLength: 254 },
      "The sender whose transfers the password opens: an address, in which `*` matches any characters and `?` matches one.",
    ),
    trackingId: key(TEXT, "The tracking-id of the transfer that the password opens."),
    password: key(
      SECRET,
      "The password. If it comes from a command, Inlet runs the command for each transfer, with `INLET_MAILBOX`, `INLET_SENDER`, `INLET_TRACKING_ID` and `INLET_SUBJECT` in its environment. If the command knows no password for the transfer, it must print nothing and end with exit code 0. Inlet then runs it again every quarter of an hour.",
    ),
  },
  required: ["password"],
  additionalProperties: false,
} as const satisfies SchemaNode;

export const PASSWORDS = {
  type: "array",
  title: "a list of rules",
  items: PASSWORD_RULE,
  description:
    "Rules that name the passwords of transfers. Each rule needs `sender`, `trackingId` or both, unless it runs a command. Inlet tries the matching rules from first to last. If a sender has an old and a new password, put the new one first and set `passwordAttempts` to 3. With 2, the default, rules stop after the first refused password.",
  [READ]: readPasswords,
} as const satisfies SchemaNode;

const COMMON_RULE = {
  ...PASSWORD_RULE,
  properties: {
    ...PASSWORD_RULE.properties,
    service: key(
      { ...TEXT, title: "the address of a service" },
      "The service that the password belongs to: its `baseUrl`. Required if the mailboxes use several services, because a service learns each password that Inlet sends to it.",
    ),
  },
} as const satisfies SchemaNode;

export const COMMON_PASSWORDS = {
  ...PASSWORDS,
  items: COMMON_RULE,
  description:
    "Passwords for all mailboxes. The rules of a mailbox are tried before these. See `mailboxes[].passwords`.",
} as const satisfies SchemaNode;

/** The common rules for the mailboxes of each service. Problems go to the draft. */
export async function readCommonPasswords(
  rules: Written<typeof COMMON_PASSWORDS>,
  services: readonly URL[],
  draft: Draft,
): Promise<(service: URL) => PasswordRule[]> {
  const known = new Set(services.map(serviceIdOf));
  const choice = `write one of ${[...known].join(", ")}`;
  const parsed = rules.map(async (rule, at) => {
    const path = ["passwords", at, "service"];
    const url = rule?.service === undefined ? undefined : URL.parse(rule.service);
    const serviceId = url && serviceIdOf(url);
    if (url === undefined && known.size > 1) {
      const why = "is missing: the mailboxes use several services, and each would learn the password";
      draft.problems.add(path, `${why}; ${choice}`);
    } else if (url !== undefined && known.size > 0 && !known.has(serviceId ?? "")) {
      draft.problems.add(path, `is the service of no mailbox: ${choice}`);
    }
    return { serviceId, rules: await readRule(rule, ["passwords", at], draft) };
  });
  const read = await Promise.all(parsed);
  return (service) =>
    read.flatMap(({ serviceId, rules }) =>
      (serviceId ?? serviceIdOf(service)) === serviceIdOf(service) ? rules : [],
    );
}

async function readPasswords(
  rules: readonly (Written<typeof PASSWORD_RULE> | undefined)[],
  path: KeyPath,
  draft: Draft,
): Promise<PasswordRule[]> {
  const parsed = rules.map((rule, at) => readRule(rule, [...path, at], draft));
  return (await Promise.all(parsed)).flat();
}

/** Empty if it lacks its password. */
async function readRule(
  rule: Written<typeof PASSWORD_RULE> | undefined,
  path: KeyPath,
  draft: Draft,
): Promise<PasswordRule[]> {
  if (rule === undefined) return [];
  const { sender, trackingId, password } = rule;
  const isCommand = typeof password === "object" && password.command !== undefined;
  if (sender === undefined && trackingId === undefined && !isCommand) {
    draft.problems.add(path, "must say which transfers it opens: set sender, trackingId or both");
  }
  if (sender !== undefined) warnOfExpression(sender, [...path, "sender"], draft);
  if (password === undefined) return [];
  const source = await readPasswordKey(password, [...path, "password"], draft);
  return [{ sender, trackingId, password: source }];
}
