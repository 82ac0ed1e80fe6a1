/** The `passwords` of a mailbox: rules that supply a password by sender or tracking-id. */
import type { PasswordRule } from "../model/mailbox.ts";
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

export async function readPasswords(
  rules: readonly (Written<typeof PASSWORD_RULE> | undefined)[],
  path: KeyPath,
  draft: Draft,
): Promise<PasswordRule[]> {
  const parsed = rules.map(async (rule, at) => {
    if (rule === undefined) return [];
    const { sender, trackingId, password } = rule;
    const isCommand = typeof password === "object" && password.command !== undefined;
    if (sender === undefined && trackingId === undefined && !isCommand) {
      draft.problems.add([...path, at], "must say which transfers it opens: set sender, trackingId or both");
    }
    if (sender !== undefined) warnOfExpression(sender, [...path, at, "sender"], draft);
    if (password === undefined) return [];
    const source = await readPasswordKey(password, [...path, at, "password"], draft);
    return [{ sender, trackingId, password: source }];
  });
  return (await Promise.all(parsed)).flat();
}
