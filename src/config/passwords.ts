/** The `passwords` of a mailbox, and the common ones: rules that supply a password by sender or tracking-id. */
import { type PasswordRule, serviceIdOf } from "../model/mailbox.ts";
import { readPassword, SECRET } from "./credentials.ts";
import type { Spot } from "./draft.ts";
import { warnOfExpression } from "./layout.ts";
import { entry, key, list, READ, type Read, type ReadItems, type SchemaNode, TEXT } from "./schema-nodes.ts";

const FORM = entry("a rule", ["password"], {
  sender: key(
    { ...TEXT, maxLength: 254 },
    "The sender whose transfers the password opens: an address, in which `*` matches any characters and `?` matches one.",
  ),
  trackingId: key(TEXT, "The tracking-id of the transfer that the password opens."),
  password: key(
    { ...SECRET, [READ]: readPassword },
    "The password. A command is run for each transfer, with `INLET_MAILBOX`, `INLET_SENDER`, `INLET_TRACKING_ID` and `INLET_SUBJECT` in its environment. If it knows no password, it must print nothing and exit with 0; it is then run again every quarter of an hour.",
  ),
});

const COMMON_FORM = {
  ...FORM,
  properties: {
    ...FORM.properties,
    service: key(
      { ...TEXT, title: "the address of a service" },
      "Only in the common rules: the `baseUrl` of the service that the password belongs to. Required if the mailboxes use several services, because a service learns each password that it gets.",
    ),
  },
} as const satisfies SchemaNode;

export const PASSWORDS = key(
  list("a list of rules", { ...FORM, [READ]: readRule }),
  "Rules that name the passwords of transfers. Inlet tries the matching ones from first to last. Each rule needs `sender`, `trackingId` or both, unless it runs a command.",
);

const COMMON_RULE = { ...COMMON_FORM, [READ]: readCommonRule } as const satisfies SchemaNode;

/** Its reader keeps refused rules as holes, so that messages have the right numbers. */
export const COMMON_PASSWORDS = key(
  { ...PASSWORDS, items: COMMON_RULE, [READ]: (rules: ReadItems<typeof COMMON_RULE>) => rules },
  "Passwords for all mailboxes. The rules of a mailbox are tried before these. See `mailboxes[].passwords`.",
);

function readRule({ sender, trackingId, password }: Read<typeof FORM>, at: Spot): PasswordRule {
  const isForAll = "ask" in password;
  if (sender === undefined && trackingId === undefined && !isForAll) {
    at.refuse("must say which transfers it opens: set sender, trackingId or both");
  }
  if (sender !== undefined) warnOfExpression(sender, at.at("sender"));
  return { sender, trackingId, password };
}

function readCommonRule({ service, ...rule }: Read<typeof COMMON_FORM>, at: Spot) {
  return { service, rule: readRule(rule, at) };
}

/** The common rules for the mailboxes of each service. Problems go to the draft. */
export function commonRulesFor(
  common: ReadItems<typeof COMMON_RULE>,
  services: readonly URL[],
  at: Spot,
): (service: URL) => PasswordRule[] {
  const known = new Set(services.map(serviceIdOf));
  const choice = `write one of ${[...known].join(", ")}`;
  const idOf = (service: string | undefined) => {
    const url = URL.parse(service ?? "");
    return url === null ? service : serviceIdOf(url);
  };
  for (const [number, entry] of common.entries()) {
    const id = idOf(entry?.service);
    if (entry !== undefined && id === undefined && known.size > 1) {
      const why = "is missing: the mailboxes use several services, and each would learn the password";
      at.refuse(`${why}; ${choice}`, number, "service");
    } else if (id !== undefined && known.size > 0 && !known.has(id)) {
      at.refuse(`is the service of no mailbox: ${choice}`, number, "service");
    }
  }
  return (service) =>
    common.flatMap((entry) => {
      const isFor = entry !== undefined && [undefined, serviceIdOf(service)].includes(idOf(entry.service));
      return isFor ? entry.rule : [];
    });
}
