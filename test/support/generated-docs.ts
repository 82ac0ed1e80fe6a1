/** The pages that are made from the code or hold figures: `npm run docs` writes them, a test compares them. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { formatFigures, formatSummary, readFigures } from "../../bench/figures.ts";
import { fillPlaces } from "../../bench/support/places.ts";
import { SCENARIO_REFERENCE } from "../../simulator/reference.ts";
import { FAULT_CODES } from "../../src/base/fault-codes.ts";
import { SECRET } from "../../src/config/credentials.ts";
import { variableFor } from "../../src/config/draft.ts";
import { describeAllowed } from "../../src/config/explain.ts";
import { SCHEMA } from "../../src/config/schema.ts";
import type { SchemaNode } from "../../src/config/schema-nodes.ts";
import { describeCommands } from "./command-tables.ts";
import { ROOT } from "./root.ts";

/** Path from the project's root → content. */
export async function generateDocs(): Promise<Record<string, string>> {
  const figures = readFigures();
  const performance = { ...formatFigures(figures), ...formatSummary(figures) };
  return {
    "docs/faults.md": faultsPage(),
    "docs/configuration.md": configurationPage(),
    "docs/commands.md": fillGenerated("docs/commands.md", await describeCommands()),
    "docs/simulator.md": fillGenerated("docs/simulator.md", {
      scenario: `\`\`\`\n${SCENARIO_REFERENCE.trimEnd()}\n\`\`\``,
    }),
    "config/inlet.schema.json": editorSchema(),
    "docs/performance.md": fillPlaces(read("docs/performance.md"), performance, "docs/performance.md"),
  };
}

/** The page with each text between the comments that name it. Throws where the page has no place for one, or a place more. */
function fillGenerated(path: string, texts: Readonly<Record<string, string>>): string {
  const places = new Set<string>();
  const place = /(<!-- generated: ([\w-]+) -->\n)[\s\S]*?(<!-- end of generated -->)/g;
  const page = read(path).replace(place, (_, begin: string, name: string, end: string) => {
    places.add(name);
    return `${begin}${texts[name] ?? ""}\n${end}`;
  });
  const names = new Set(Object.keys(texts));
  const wrong = [...names.symmetricDifference(places)];
  if (wrong.length > 0) throw new Error(`${path} and its texts differ in ${wrong.join(", ")}`);
  return page;
}

function read(path: string): string {
  return readFileSync(resolve(ROOT, path), "utf8");
}

function faultsPage(): string {
  const rows = Object.entries(FAULT_CODES).map(
    ([code, { verdict, happened, advice }]) => `| \`${code}\` | ${verdict} | ${happened}. | ${advice} |`,
  );
  return `# Faults

Every failure has one of these codes. Find yours here, and do what the last column says. The code is in the log (\`fault.code\`), in
\`inlet status --json\` and in the errors of commands with \`--json\`. On a terminal, the sentences of the table are printed instead.

The verdict says what helps:

- **retry**: the failure may pass. The daemon tries again with growing pauses. After five attempts the transfer needs attention.
- **wait**: something else has to happen first: a person acts, a lock ends, or a limit is lifted. The daemon looks again from time to time.
- **quarantine**: the content is not what the sender announced, cannot be verified, exceeds a limit, or was refused by the check. It is kept in quarantine until an operator decides.
- **fatal**: the same request will fail again. A command or a start ends with this fault. A transfer is still retried with growing pauses,
  because the service may change. It needs attention at once if the service itself refused, and after five attempts otherwise.

| code | verdict | what happened | what to do |
|---|---|---|---|
${rows.join("\n")}
`;
}

function configurationPage(): string {
  const { service, redis, mailboxes, limits, check, handoff, notify, http, log, keep, ...top } =
    SCHEMA.properties;
  return `# Configuration

This page is the reference of every key. [Configuring](configuring.md) explains settings by goal.

Inlet reads one YAML file and never writes it. It looks for the file in this order:

1. the path in \`--config\`,
2. the path in the variable \`INLET_CONFIG\`,
3. \`inlet/inlet.yaml\` in the user's configuration folder: \`$XDG_CONFIG_HOME\`, or \`~/.config\`,
4. \`/etc/inlet/inlet.yaml\`.

A named file must exist. Without any file, the [environment](#environment) can hold every key.

A small but complete file:

\`\`\`yaml
service:
  baseUrl: https://transfer.example.com
  clientId: { credential: secret_client-id }
inbox: /srv/inbox
mailboxes:
  - email: orders@example.com
    passwords:
      - { sender: "*@supplier.example", password: { credential: secret_supplier } }
\`\`\`

[config/inlet.example.yaml](../config/inlet.example.yaml) shows every key with an explanation. Editors that support JSON Schema complete and
check keys with [config/inlet.schema.json](../config/inlet.schema.json); the first line of the example refers to it.

Durations are \`250ms\`, \`30s\`, \`5m\` or \`1h\`. Sizes are \`10MiB\`, \`1GB\` or a number of bytes. A relative path starts at the
folder of the file, or, in a variable, at the current folder. \`~\` is not expanded.

## Top level

${keyTable(top, SCHEMA.required)}

## service

${service.description}

${keyTable(service.properties, ["baseUrl"])}

## redis

${redis.description}

Redis is needed only if one machine is not enough. Several processes that share an inbox then share its work through one Redis. The ledger
stays in files, so a Redis that loses everything costs no transfer.

${keyTable(redis.properties, [])}

There are three ways to reach a Redis. \`queue\` is an address in each of them:

- One server: \`queue\` names its host, and its port if that is not 6379.
- \`sentinels\`: host and port of \`queue\` are ignored and may be missing, as in \`rediss:///0\`. An address with a user or password must have a
  host. Scheme, user, password and database apply.
- \`cluster\`: the same. The database is 0, because a cluster has no other.

A password in \`queue\` is URL-encoded (\`/\` is \`%2F\`); one in \`redis.password\` is not. With \`queue: embedded\` these keys are ignored, with
a warning.

## mailboxes

${mailboxes.description} Each has these keys:

${keyTable(mailboxes.items.properties, mailboxes.items.required)}

Each entry of \`passwords\` has these:

${keyTable(mailboxes.items.properties.passwords.items.properties, ["password"])}

Each entry of \`expect\` has these:

${keyTable(mailboxes.items.properties.expect.items.properties, mailboxes.items.properties.expect.items.required)}

Each entry of \`routes\` has these:

${keyTable(mailboxes.items.properties.routes.items.properties, [])}

A transfer counts for an expectation when a poll discovers it. A missed time is reported once, after the first successful poll that began after it.
The late arrival is reported too. A new or changed expectation is first checked for the next period that begins after the change.

A new transfer is \`waiting\` for the reason \`quiet\` until the quiet hours end. An interrupted download continues afterwards. Quiet hours may not
fill the whole week.

## limits

${limits.description}

${keyTable(limits.properties, [])}

Each entry of a list in \`bandwidth\` has these:

${keyTable(limits.properties.bandwidth.items.properties, limits.properties.bandwidth.items.required)}

If no entry matches the time, there is no limit. Files, ZIPs and messages count; polls do not. All downloads of a process share the rate equally.
A limit that begins or ends applies to running downloads. With several processes on Redis each has its own limit.

## keep

${keep.description}

${keyTable(keep.properties, [])}

## Times of day

The keys \`bandwidth\`, \`quiet\` (of a mailbox or a notification) and \`expect\` use the clock of \`timezone\`. A weekly window has days, times or both:

| window | meaning |
|---|---|
| \`mon-fri 08:00-18:00\` | on workdays, from 08:00 until just before 18:00 |
| \`sat,sun\` | all Saturday and Sunday |
| \`22:00-06:00\` | every night, across midnight |
| \`fri 22:00-06:00\` | from Friday evening to Saturday morning |
| \`mon 08:00-12:00,13:00-17:00\` | twice on Mondays |
| \`daily\` | always |

When clocks go forward, the skipped hour does not occur; when they go back, the repeated hour occurs twice. A time in \`expect\` that is skipped
applies at the moment of the change, and one that occurs twice applies the first time.

## check

${check.description}

${keyTable(check.properties, [])}

[Consuming the inbox](consuming.md#check-a-transfer-before-its-delivery) explains what the program gets, and what its exit code means. A mailbox
may replace each key. A change applies to checks that start later.

## handoff

${handoff.description}

${keyTable(handoff.properties, [])}

[Consuming the inbox](consuming.md) explains what the command and the webhook receive, and what counts as picked up.

\`webhook\` has these:

${keyTable(handoff.properties.webhook.properties, handoff.properties.webhook.required)}

\`keep\` has these:

${keyTable(handoff.properties.keep.properties, [])}

Permissions are octal: \`"0640"\`, \`0640\` or \`0o640\`. A plain \`640\` is refused, because YAML reads it as a decimal number.

## notify

${notify.description} Each entry of the list has these keys, and either \`mail\` or \`webhook\`:

${keyTable(notify.items.properties, [])}

\`mail\` has these:

${keyTable(notify.items.properties.mail.properties, notify.items.properties.mail.required)}

\`webhook\` has the keys of [\`handoff.webhook\`](#handoff). A notification is tried again with growing pauses until it is accepted.

## http

${http.description}

${keyTable(http.properties, [])}

## log

${log.description}

${keyTable(log.properties, [])}

## Secrets

A secret (\`clientId\`, \`token\`, \`password\`, \`sentinelPassword\`, the \`user\` of a mail server, a webhook's \`secret\`) is plain text, or one of these:

${keyTable(SECRET.properties, [])}

A secret is read when it is needed, so a changed one applies without a restart. Files, variables and credentials are also read once at the start,
so that a missing one is reported then. Commands are run only when needed; they have 30 seconds, and their standard error is dropped. A secret is
UTF-8 text of at most 64 KiB.

Inlet warns about a secret file that others can read, and about a configuration with plain secrets that others can read. A file of another
owner that is readable by a group is not reported, because Inlet may read it through that group.

## Environment

Every key can be set by a variable, which wins over the file: \`INLET_\` and the path of the key in capitals, with two underscores between its
parts. Lists and whole groups are JSON. An empty variable counts as missing.

| variable | sets |
|---|---|
${[["service", "baseUrl"], ["service", "clientId", "file"], ["inbox"], ["limits", "minFreeSpace"]]
  .map((path) => `| \`${variableFor(path)}\` | \`${path.join(".")}\` |`)
  .join("\n")}
| \`INLET_MAILBOXES\` | \`mailboxes\`, such as \`[{"email": "orders@example.com"}]\` |

An unknown variable with two underscores, or one that looks like a misspelt key, is refused. Other variables that begin with \`INLET_\` are
ignored.

## Errors

All errors are reported at once, one line each: the place in the file, the key, and the allowed values. Values of keys that may hold a secret are never
shown.

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

/** Of the formatter. */
const LINE_WIDTH = 110;

/** Short lists on one line, as the formatter wants them. */
function editorSchema(): string {
  const text = JSON.stringify(SCHEMA, null, 2);
  return `${text.replace(
    /^(.*)\[\s+("[^\]]*")\s+\](,?)$/gm,
    (list, before: string, items: string, after: string) => {
      const line = `${before}[${items.replace(/,\s+/g, ", ")}]${after}`;
      return line.length <= LINE_WIDTH ? line : list;
    },
  )}\n`;
}

if (import.meta.main) {
  for (const [path, content] of Object.entries(await generateDocs()))
    writeFileSync(resolve(ROOT, path), content);
}
