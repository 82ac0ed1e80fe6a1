/** The pages that are made from the code or hold figures: `npm run docs` writes them, a test compares them. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { formatFigures, formatSummary, readFigures } from "../../bench/figures.ts";
import { fillPlaces } from "../../bench/support/places.ts";
import { SCENARIO_REFERENCE } from "../../simulator/reference.ts";
import { FAULT_CODES } from "../../src/base/fault-codes.ts";
import { AREAS, type Counting } from "../../src/base/fault-kinds.ts";
import { EXIT_CODES, outcomeOfFault } from "../../src/cli/command.ts";
import { SECRET } from "../../src/config/credentials.ts";
import { variableFor } from "../../src/config/draft.ts";
import { describeAllowed } from "../../src/config/explain.ts";
import { SCHEMA } from "../../src/config/schema.ts";
import type { SchemaNode } from "../../src/config/schema-nodes.ts";
import { API, type ApiRoute } from "../../src/model/api.ts";
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
    "docs/operating.md": fillGenerated("docs/operating.md", { api: apiTable() }),
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

function apiTable(): string {
  const rows = Object.entries<ApiRoute>(API).map(([path, { method, role, summary, query }]) => {
    const names = Object.keys(query.entries).map((name) => `\`${name}\``);
    return `| \`${method} ${path}\` | ${role} | ${names.join(", ")} | ${summary} |`;
  });
  return ["| route | role | parameters | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

function faultsPage(): string {
  const rows = Object.entries(FAULT_CODES).map(
    ([code, { area, verdict, actor, happened, advice }]) =>
      `| <a id="${code}"></a>\`${code}\` | ${area} | ${verdict} | ${actor}, ${EXIT_CODES[outcomeOfFault({ code })].code} | ${happened}. | ${advice} |`,
  );
  const areas = Object.entries<Counting>(AREAS).map(([area, { notices, metric, isChecked }]) => {
    const names = notices.map((kind) => `\`${kind}\``).join(", ");
    return `| ${area} | ${isChecked ? "yes" : ""} | ${names} | ${metric === undefined ? "" : `\`${metric}\``} |`;
  });
  return `# Faults

Every failure has one of these codes. Find the code in the table, and do what the last column says. The code is in the log (\`fault.code\`), in
\`inlet status --json\`, and in the errors of commands with \`--json\`. On a terminal, Inlet prints the sentences of the table instead of the code.

The verdict says what Inlet does about the failure:

- **retry**: the failure may pass. The daemon tries again with growing pauses. If the failure is about a transfer, the transfer needs attention after
  five attempts.
- **wait**: something else has to happen first: a person acts, a lock ends, or a limit is lifted. The daemon tries again from time to time.
- **quarantine**: the content is not what the sender announced, cannot be verified, exceeds a limit, or was refused by the check. It is kept in quarantine
  until an operator decides.
- **fatal**: the same request will fail again. A command, or the start of the daemon, ends with this fault. If the failure is about a transfer, the daemon
  still tries again with growing pauses, because the service may change. The transfer needs attention at once if the service itself refused the request,
  otherwise after five attempts.

Who has to act decides how a command exits that ends with this failure: **none** (4): it may pass by itself; **person** (3): the operator, a sender, or an
administrator of the service; **setup** (2): the configuration, the command line or the installation has to change; **rights** (5): this user may not do it.
\`inlet status\` exits with 4 if the problem may pass by itself, and with 3 for any other. Doctor exits as the command would.

The area says where the daemon counts a failure:

| area | doctor checks it | notifications | metric |
|---|---|---|---|
${areas.join("\n")}

| code | area | verdict | who has to act, exit code | what happened | what to do |
|---|---|---|---|---|---|
${rows.join("\n")}
`;
}

function configurationPage(): string {
  const { service, redis, mailboxes, defaults, limits, check, handoff, notify, http, log, keep, ...top } =
    SCHEMA.properties;
  return `# Configuration

This page is the reference of every key. [Configuring](configuring.md) explains settings by goal.

Inlet reads one YAML file and never writes it. It looks for the file in this order:

1. the path in \`--config\`,
2. the path in the variable \`INLET_CONFIG\`,
3. \`inlet/inlet.yaml\` in the user's configuration folder: \`$XDG_CONFIG_HOME\`, or \`~/.config\`,
4. \`/etc/inlet/inlet.yaml\`.

A file that \`--config\` or \`INLET_CONFIG\` names must exist. If there is no file at all, the [environment](#environment) can hold every key.

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

- A duration is a number and a unit, such as \`250ms\`, \`30s\`, \`5m\` or \`1h\`.
- A size is a number and a unit, such as \`10MiB\` or \`1GB\`, or a number of bytes.
- A relative path in the file starts at the folder of the file. In a variable, it starts at the current folder. Neither \`~\` nor variables such as \`$HOME\` are expanded.

## Top level

The groups and lists that have their own section below are not in this table.

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

- **One server.** \`queue\` names its host, and its port if that is not 6379.
- **Sentinels.** \`sentinels\` lists them. Inlet takes the scheme, user, password and database from \`queue\`, and ignores its host and port. Host
  and port may be missing, as in \`rediss:///0\`; but an address with a user or a password is not valid without a host.
- **A cluster.** \`cluster\` lists some of its nodes. Inlet uses \`queue\` as with sentinels. The database in \`queue\` must be 0, because a
  cluster has no other.

A password in \`queue\` is URL-encoded (\`/\` is \`%2F\`). A password in \`redis.password\` is not. With \`queue: embedded\`, Inlet ignores the keys of
\`redis\`, with a warning.

## mailboxes

${mailboxes.description} Each mailbox has these keys:

${keyTable(mailboxes.items.properties, mailboxes.items.required)}

A transfer that is discovered in quiet hours is \`waiting\` for the reason \`quiet\` until they end. An interrupted download does not continue in quiet
hours either, but after they have ended. Quiet hours may not fill the whole week.

Each entry of \`passwords\` has these keys:

${keyTable(mailboxes.items.properties.passwords.items.properties, ["password"])}

Each entry of \`expect\` has these keys:

${keyTable(mailboxes.items.properties.expect.items.properties, mailboxes.items.properties.expect.items.required)}

A transfer counts as arrived when a poll discovers it. If the expected transfer is missing, Inlet reports that once, after the first successful poll
that began after the time in \`by\`. It also reports when the transfer arrives late.

Each expected time has a span in which the transfer may arrive. The span begins as long before the expected time as \`within\` says. Without
\`within\`, it begins at the previous expected time. A new or changed expectation applies to the spans that begin after the change.

Each entry of \`routes\` has these keys:

${keyTable(mailboxes.items.properties.routes.items.properties, [])}

## defaults

${defaults.description} These keys are allowed; [mailboxes](#mailboxes) explains each of them:

${Object.keys(defaults.properties)
  .map((key) => `- \`${key}\``)
  .join("\n")}

## limits

${limits.description}

${keyTable(limits.properties, [])}

If \`bandwidth\` is a list, each entry has these keys:

${keyTable(limits.properties.bandwidth.items.properties, limits.properties.bandwidth.items.required)}

If no entry covers the current time, there is no limit. The limit applies to downloads of files, ZIPs and messages, but not to polls. All downloads of a
process share the rate equally. When a limit begins or ends, it changes running downloads too. With several processes on Redis, each process has its own
limit.

## keep

${keep.description}

${keyTable(keep.properties, [])}

## Times of day

The keys \`bandwidth\`, \`quiet\` (of a mailbox or a notification) and \`expect\` use the time zone in \`timezone\`. A weekly window has days, times or both:

| window | meaning |
|---|---|
| \`mon-fri 08:00-18:00\` | on workdays, from 08:00 until just before 18:00 |
| \`sat,sun\` | all Saturday and Sunday |
| \`22:00-06:00\` | every night, across midnight |
| \`fri 22:00-06:00\` | from Friday evening to Saturday morning |
| \`mon 08:00-12:00,13:00-17:00\` | twice on Mondays |
| \`daily\` | always |

When the clocks go forward, a window does not cover the skipped hour. When they go back, it covers the repeated hour twice. If the time in an
expectation falls into the skipped hour, the moment of the change counts instead. If that time occurs twice, the first one counts.

## check

${check.description}

${keyTable(check.properties, [])}

[Consuming the inbox](consuming.md#check-a-transfer-before-its-delivery) explains what the program gets, and what its exit code means. A mailbox
can override each key. A change applies to checks that start later.

## handoff

${handoff.description}

${keyTable(handoff.properties, [])}

[Consuming the inbox](consuming.md) explains what the command and the webhook receive, and what counts as picked up.

\`webhook\` has these keys:

${keyTable(handoff.properties.webhook.properties, handoff.properties.webhook.required)}

Each entry of \`headers\` has these keys:

${keyTable(handoff.properties.webhook.properties.headers.items.properties, handoff.properties.webhook.properties.headers.items.required)}

\`keep\` has these keys:

${keyTable(handoff.properties.keep.properties, [])}

Permissions are octal: \`"0640"\`, \`0640\` or \`0o640\`. A plain \`640\` is refused, because YAML reads it as a decimal number.

## notify

${notify.description} Each entry of the list has these keys, and either \`mail\` or \`webhook\`:

${keyTable(notify.items.properties, [])}

\`mail\` has these keys:

${keyTable(notify.items.properties.mail.properties, notify.items.properties.mail.required)}

\`webhook\` has the keys of [\`handoff.webhook\`](#handoff). A notification is tried again with growing pauses until it is accepted.

## http

${http.description}

${keyTable(http.properties, [])}

Each entry of \`tokens\` has these keys:

${keyTable(http.properties.tokens.items.properties, http.properties.tokens.items.required)}

## log

${log.description}

${keyTable(log.properties, [])}

## Secrets

These keys hold secrets: \`clientId\`, \`token\`, \`password\`, \`sentinelPassword\`, the \`user\` of a mail server, and the \`secret\` and the \`headers\` of a webhook. A secret is
plain text, or a group with one of these keys:

${keyTable(SECRET.properties, [])}

Inlet reads a secret when it needs it, so a changed secret applies without a restart. It also reads files, variables and credentials once at the start,
so that a missing one is reported then. It runs a command only when it needs the secret. The command must end within 30 seconds, and its standard error
is dropped. A secret is UTF-8 text of at most 64 KiB.

Inlet warns if other users can read a secret file, or a configuration that holds plain secrets. If a file belongs to another user and a group can read
it, Inlet does not warn, because it may itself need that group to read the file.

## Environment

Every key can be set by a variable, which takes precedence over the file. The name of the variable is \`INLET_\` and the path of the key in capitals,
with two underscores between its parts. The value of a list or a whole group is JSON. An empty variable counts as missing.

| variable | sets |
|---|---|
${[["service", "baseUrl"], ["service", "clientId", "file"], ["inbox"], ["limits", "minFreeSpace"]]
  .map((path) => `| \`${variableFor(path)}\` | \`${path.join(".")}\` |`)
  .join("\n")}
| \`INLET_MAILBOXES\` | \`mailboxes\`, such as \`[{"email": "orders@example.com"}]\` |

An unknown variable with two underscores, or one that looks like a misspelt key, is refused. Other variables that begin with \`INLET_\` are
ignored.

## Errors

Inlet reports all errors at once, one line each: the place in the file, the key, and the allowed values. It never shows the value of a key that may hold
a secret.

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
