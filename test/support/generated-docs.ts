/** The pages that are made from the code or hold figures: `npm run docs` writes them, a test compares them. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Figures, formatFigures, formatSummary, readFigures } from "../../bench/figures.ts";
import { fillPlaces } from "../../bench/support/places.ts";
import { FAULT_CODES } from "../../src/base/fault-codes.ts";
import { SECRET } from "../../src/config/credentials.ts";
import { variableFor } from "../../src/config/draft.ts";
import { describeAllowed } from "../../src/config/explain.ts";
import { SCHEMA } from "../../src/config/schema.ts";
import type { SchemaNode } from "../../src/config/schema-nodes.ts";
import { ROOT } from "./root.ts";

/** Path from the project's root → content. */
export function generateDocs(): Record<string, string> {
  return {
    "docs/faults.md": faultsPage(),
    "docs/configuration.md": configurationPage(),
    "config/inlet.schema.json": editorSchema(),
    ...withFigures("docs/performance.md", formatFigures),
    ...withFigures("README.md", formatSummary),
  };
}

/** The page with the figures that were measured last. */
function withFigures(
  path: string,
  format: (figures: Figures) => Record<string, string>,
): Record<string, string> {
  const page = readFileSync(resolve(ROOT, path), "utf8");
  return { [path]: fillPlaces(page, format(readFigures()), path) };
}

function faultsPage(): string {
  const rows = Object.entries(FAULT_CODES).map(
    ([code, { verdict, happened, advice }]) => `| \`${code}\` | ${verdict} | ${happened}. | ${advice} |`,
  );
  return `# Faults

Whatever goes wrong has one of these codes. It stands in \`inlet … --json\` errors; on a terminal the sentences are shown.
The verdict says what Inlet does about it by itself:

- **retry**: it may pass; it is tried again soon, with growing pauses.
- **wait**: something outside has to change first (a person, a lock, a limit).
- **quarantine**: what arrived cannot be vouched for; it is kept apart and reported.
- **fatal**: trying again cannot help; the request or the configuration has to change.

| code | verdict | what happened | what to do |
|---|---|---|---|
${rows.join("\n")}
`;
}

function configurationPage(): string {
  const { service, redis, mailboxes, limits, handoff, http, log, ...top } = SCHEMA.properties;
  return `# Configuration

One YAML file says everything. It is looked for in this order:

1. where \`--config PATH\` says,
2. where the variable \`INLET_CONFIG\` says,
3. at \`/etc/inlet/inlet.yaml\`.

A file that was named must exist. Where none was named and none is at the usual place, the environment alone will do.
Inlet reads the file and never writes to it.

The smallest file that works:

\`\`\`yaml
service:
  baseUrl: https://transfer.example.com
  clientId: { credential: client-id }
inbox: /srv/inbox
mailboxes:
  - email: orders@example.com
    passwords:
      - { sender: "*@supplier.example", password: { credential: supplier } }
\`\`\`

[config/inlet.example.yaml](../config/inlet.example.yaml) shows every key with an explanation. Editors that know JSON Schema
complete and check keys with [config/inlet.schema.json](../config/inlet.schema.json); the first line of the example tells
them where it is.

Durations are written as \`250ms\`, \`30s\`, \`5m\` or \`1h\`; sizes as \`10MiB\`, \`1GB\` or a number of bytes. A relative
path begins in the folder of the file, or, in a variable, in the current folder. \`~\` is not expanded.

## Top level

${keyTable(top, SCHEMA.required)}

## service

${service.description}

${keyTable(service.properties, ["baseUrl"])}

## redis

${redis.description}

Redis is needed only where one machine is not enough: several processes that share an inbox then share its work through
one Redis. Ledger stay files, so that a Redis which lost everything costs no transfer.

${keyTable(redis.properties, [])}

Three ways lead to a Redis, and \`queue\` is an address in each of them:

- One server: \`queue\` names its host, and its port where that is not 6379.
- \`sentinels\`: the host and port of \`queue\` are not used. Any will do, or none, as in \`rediss:///0\`; only an address with a
  user or password must have one. The rest of it counts: \`rediss://\` for TLS, user, password, number of the database.
- \`cluster\`: the same, and the database is 0, because a cluster has no other.

A password in \`queue\` is escaped as in every URL (\`/\` is written as \`%2F\`); one in \`redis.password\` stands as it is. Where
\`queue\` is \`embedded\`, these keys are not used, and a warning says so.

## mailboxes

${mailboxes.description} Each has these keys:

${keyTable(mailboxes.items.properties, mailboxes.items.required)}

Each entry of \`passwords\` has these:

${keyTable(mailboxes.items.properties.passwords.items.properties, ["password"])}

Each entry of \`expect\` has these:

${keyTable(mailboxes.items.properties.expect.items.properties, mailboxes.items.properties.expect.items.required)}

A transfer counts for an expectation from the poll that discovers it. A missed time is reported once, after the first poll
that succeeds and begins after it, and so is the arrival of what was missed. A new expectation counts from the first time
whose whole span lies after it was heard of; one that is changed is a new one.

In quiet hours a mailbox is polled as ever, so that nothing expires unseen, but no transfer is taken up: a new one stays
\`discovered\` until they end, and one that broke off goes on then. What is being downloaded when they begin goes on. So that
nothing is lost, a transfer that would expire before they end, or within six hours after, is downloaded all the same. They
may not fill the whole week.

## limits

${limits.description}

${keyTable(limits.properties, [])}

Each entry of a list in \`bandwidth\` has these:

${keyTable(limits.properties.bandwidth.items.properties, limits.properties.bandwidth.items.required)}

Where no entry fits, there is no limit. The bytes of files, ZIPs and messages count, those of polls do not; all downloads
of the process share what there is in equal turns. A limit that begins or ends counts for downloads that run. With several
processes on Redis each has a limit of its own.

## Times of day

Wherever something goes by the clock (\`bandwidth\`, \`quiet\`, \`expect\`), the clocks of \`timezone\` count. A weekly window is
written as days, times or both:

| window | when |
|---|---|
| \`mon-fri 08:00-18:00\` | on workdays, from eight up to but not including six in the evening |
| \`sat,sun\` | all Saturday and Sunday |
| \`22:00-06:00\` | every night, over midnight |
| \`fri 22:00-06:00\` | from Friday evening to Saturday morning |
| \`mon 08:00-12:00,13:00-17:00\` | twice on Mondays |
| \`daily\` | always |

What the clocks show decides. Where they are put forward, the hour that they skip does not come; where they are put back,
the hour that they show twice comes twice. A time in \`expect\` that is skipped counts from the moment of the change, and one
that comes twice counts the first time.

## handoff

${handoff.description}

${keyTable(handoff.properties, [])}

[consuming.md](consuming.md) is the page for those who take folders from the inbox: what a command and a webhook are told, and
what counts as picked up.

\`webhook\` has these:

${keyTable(handoff.properties.webhook.properties, handoff.properties.webhook.required)}

\`keep\` has these:

${keyTable(handoff.properties.keep.properties, [])}

## http

${http.description}

${keyTable(http.properties, [])}

## log

${log.description}

${keyTable(log.properties, [])}

Permissions are octal, whether written as \`"0640"\`, \`0640\` or \`0o640\`. A plain \`640\` is refused, because YAML reads it as a
decimal number.

## Secrets

Wherever a secret is expected (\`clientId\`, \`token\`, \`password\`, \`sentinelPassword\`, the webhook's \`secret\`), it can stand there as text, or be
one of these:

${keyTable(SECRET.properties, [])}

A secret is read when it is needed, so that a changed one counts without a restart. Files, variables and credentials are
also read once at the start, so that a missing one is reported then and not in the middle of the night. Commands are not
run before they are needed; they have 30 seconds, and what they write to standard error is dropped. A secret is UTF-8 text
of at most 64 KiB.

Inlet warns about a secret file that others can read, and about a configuration that others can read and that holds a
secret as text. A file that belongs to somebody else and is readable by a group is not reported: that group is how Inlet
reads it.

## Environment

Every key can be set by a variable, which wins over the file: \`INLET_\` and the key's path in capitals, with two underscores
between its parts. Lists, and whole groups, are given as JSON. An empty variable counts as none.

| variable | sets |
|---|---|
${[["service", "baseUrl"], ["service", "clientId", "file"], ["inbox"], ["limits", "minFreeSpace"]]
  .map((path) => `| \`${variableFor(path)}\` | \`${path.join(".")}\` |`)
  .join("\n")}
| \`INLET_MAILBOXES\` | \`mailboxes\`, such as \`[{"email": "orders@example.com"}]\` |

A variable that is all but one of these is refused, and the right one is named. Others that begin with \`INLET_\` are left
alone.

## When something is wrong

Everything that is wrong is reported at once, one line each: where it stands, the key, and what is allowed. Values of
keys that may hold a secret are never shown.

\`\`\`
/etc/inlet/inlet.yaml:9:5: mailboxes[0].pol: unknown key, did you mean poll?
/etc/inlet/inlet.yaml:12:3: limits.transfers: "many" is not a whole number from 1 to 1000
INLET_SERVICE__TIMEOUT: service.timeout: "soon" is not a duration such as 250ms, 30s, 5m or 1h
\`\`\`
`;
}

function keyTable(keys: Readonly<Record<string, SchemaNode>>, required: readonly string[]): string {
  const rows = Object.entries(keys).map(([key, node]) => {
    const absent = required.includes(key)
      ? "required"
      : node.default === undefined
        ? ""
        : `\`${node.default}\``;
    return `| \`${key}\` | ${describeAllowed(node)} | ${absent} | ${node.description} |`;
  });
  return ["| key | holds | default | means |", "|---|---|---|---|", ...rows].join("\n");
}

/** Short lists on one line, as the formatter wants them. */
function editorSchema(): string {
  const text = JSON.stringify(SCHEMA, null, 2);
  return `${text.replace(/\[\s+("[^\]]*")\s+\]/g, (_, items: string) => `[${items.replace(/,\s+/g, ", ")}]`)}\n`;
}

if (import.meta.main) {
  for (const [path, content] of Object.entries(generateDocs())) writeFileSync(resolve(ROOT, path), content);
}
