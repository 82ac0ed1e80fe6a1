/** The pages that are made from the code or hold figures: `npm run docs` writes them, a test compares them. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { formatFigures, formatLink, formatSummary, readFigures } from "../../bench/figures.ts";
import { fillPlaces } from "../../bench/support/places.ts";
import packageJson from "../../package.json" with { type: "json" };
import { FAULT_CODES } from "../../src/base/fault-codes.ts";
import { defaultUserAgent } from "../../src/base/version.ts";
import { EXIT_CODES, outcomeOfFault } from "../../src/cli/command.ts";
import { SECRET } from "../../src/config/credentials.ts";
import { variableFor } from "../../src/config/draft.ts";
import { describeAllowed } from "../../src/config/explain.ts";
import { SCHEMA } from "../../src/config/schema.ts";
import type { SchemaNode } from "../../src/config/schema-nodes.ts";
import { API, type ApiRoute } from "../../src/model/api.ts";
import { describeCommands } from "./command-tables.ts";
import { listCompletionWords } from "./completion-words.ts";
import { AREAS } from "./fault-areas.ts";
import { describeApi } from "./openapi.ts";
import { ROOT } from "./root.ts";

const { version, homepage, author } = packageJson;
/** The address of the schema. Its version is that of the configuration format. */
const SCHEMA_ID = `${homepage}/schema/v${SCHEMA.properties.version.maximum}/inlet.schema.json`;

/** Pages without other generated text that name the version of Inlet, or an address in package.json. */
const NAMING = [
  "CODE_OF_CONDUCT.md",
  "SECURITY.md",
  "config/compose.fleet.yaml",
  "config/compose.sidecar.yaml",
  "config/inlet.example.yaml",
  "docs/installing.md",
  "examples/kubernetes/fleet.yaml",
  "examples/kubernetes/one-pod.yaml",
];

/** Path from the project's root → content. */
export async function generateDocs(): Promise<Record<string, string>> {
  const figures = readFigures();
  const { daemon = "", ...others } = formatFigures(figures);
  const main = { ...formatSummary(figures), ...formatLink(figures), daemon };
  const fill = (path: string, tables: Readonly<Record<string, string>>) => ({
    [path]: fillPlaces(read(path), tables, path),
  });
  return {
    ...Object.fromEntries(NAMING.map((path) => [path, nameProject(read(path))])),
    "docs/faults.md": fillGenerated("docs/faults.md", faultTexts()),
    "docs/configuration.md": fillGenerated("docs/configuration.md", configurationTexts()),
    "docs/commands.md": fillGenerated("docs/commands.md", await describeCommands()),
    "docs/operating.md": nameProject(fillGenerated("docs/operating.md", { api: apiTable() })),
    "docs/what-the-service-sees.md": fillGenerated("docs/what-the-service-sees.md", serviceView()),
    "config/inlet.schema.json": editorSchema(),
    "config/inlet.openapi.json": formatJson(describeApi(version)),
    ...(await completionScripts()),
    ...fill("docs/performance.md", main),
    ...fill("bench/README.md", others),
  };
}

/** The same lines in each script. */
async function completionScripts(): Promise<Record<string, string>> {
  const table = `'\n${(await listCompletionWords()).replaceAll("'", "'\\''")}\n'`;
  const declared = {
    "config/completion/inlet.bash": `  local table=${table}`,
    "config/completion/_inlet": `  local table=${table}`,
    "config/completion/inlet.fish": `    set -l table (string split \\n ${table})`,
  };
  const scripts = Object.entries(declared).map(([path, words]) => [path, fillGenerated(path, { words })]);
  return Object.fromEntries(scripts);
}

/** A page with the version and the addresses of package.json. */
function nameProject(page: string): string {
  return page
    .replaceAll(/\b(inlet[:_]|inletd-|Inlet )\d+\.\d+\.\d+/g, `$1${version}`)
    .replace(/(#userAgent: ).*/, `$1${defaultUserAgent()}`)
    .replace(/^(# yaml-language-server: \$schema=).*/, `$1${SCHEMA_ID}`)
    .replaceAll(/<[\w.-]+@[\w.-]+>/g, /<.*>/.exec(author)?.[0] ?? "");
}

/** The file with each text between the comments that name it. Throws where it has no place for a text, or a place more. */
function fillGenerated(path: string, texts: Readonly<Record<string, string>>): string {
  const places = new Set<string>();
  const place = /((?:<!--|#) generated: ([\w-]+).*\n)[\s\S]*?((?:<!--| *#) end of generated)/g;
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

/** Counted by a test. */
function serviceView(): Record<string, string> {
  const names = ["polls", "transfers"];
  const tables = names.map((name) => [name, read(`test/fixtures/service-view/${name}.md`).trimEnd()]);
  return Object.fromEntries(tables);
}

function apiTable(): string {
  const rows = Object.entries<ApiRoute>(API).map(([path, { method, role, summary, query }]) => {
    const names = Object.keys(query.entries).map((name) => `\`${name}\``);
    return `| \`${method} ${path}\` | ${role} | ${names.join(", ")} | ${summary} |`;
  });
  return ["| route | role | parameters | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

function faultTexts(): Record<string, string> {
  const areas = Object.entries(AREAS).map(([area, { notices, metric, isChecked }]) => {
    const names = notices.map((kind) => `\`${kind}\``).join(", ");
    return `| [${area}](#${area}) | ${isChecked ? "yes" : ""} | ${names} | ${metric === undefined ? "" : `\`${metric}\``} |`;
  });
  const sections = Object.keys(AREAS).map((area) => {
    const faults = Object.entries(FAULT_CODES).filter(([, fault]) => fault.area === area);
    const entries = faults.map(([code, { verdict, happened, advice }]) => {
      const exit = EXIT_CODES[outcomeOfFault({ code })].code;
      return `- <a id="${code}"></a>**\`${code}\`** (${verdict}, ${exit}): ${happened}. ${advice}`;
    });
    return [`## ${area}`, "", ...entries].join("\n");
  });
  const head = ["| area | doctor checks it | notifications | metric |", "|---|---|---|---|"];
  return { areas: [...head, ...areas].join("\n"), codes: sections.join("\n\n") };
}

const LIST_VARIABLE = '| `INLET_MAILBOXES` | `mailboxes`, such as `[{"email": "orders@example.com"}]` |';

function configurationTexts(): Record<string, string> {
  const { service, redis, mailboxes, defaults, limits, check, handoff, notify, http, log, keep, ...top } =
    SCHEMA.properties;
  const { expect, routes } = mailboxes.items.properties;
  const { webhook } = handoff.properties;
  const allowed = Object.keys(defaults.properties).map((key) => `\`${key}\``);
  const set = [
    ["service", "baseUrl"],
    ["service", "clientId", "file"],
    ["inbox"],
    ["limits", "minFreeSpace"],
  ];
  const rows = set.map((path) => `| \`${variableFor(path)}\` | \`${path.join(".")}\` |`);
  return {
    top: keyList(top, SCHEMA.required),
    service: describe(service, "", ["baseUrl"]),
    redis: describe(redis),
    mailboxes: describe(mailboxes, " Each mailbox has these keys:"),
    passwords: keyList(top.passwords.items.properties, ["password"]),
    expect: keyList(expect.items.properties, expect.items.required),
    routes: keyList(routes.items.properties),
    defaults: `${defaults.description} These keys of [mailboxes](#mailboxes) are allowed:\n${allowed.join(", ")}.`,
    limits: describe(limits),
    bandwidth: keyList(
      limits.properties.bandwidth.items.properties,
      limits.properties.bandwidth.items.required,
    ),
    keep: describe(keep),
    check: describe(check),
    handoff: describe(handoff),
    webhook: keyList(webhook.properties, webhook.required),
    headers: keyList(webhook.properties.headers.items.properties, webhook.properties.headers.items.required),
    "handoff-keep": keyList(handoff.properties.keep.properties),
    notify: describe(notify, " Each entry of the list has these keys, and either `mail` or `webhook`:"),
    mail: keyList(notify.items.properties.mail.properties, notify.items.properties.mail.required),
    http: describe(http),
    tokens: keyList(http.properties.tokens.items.properties, http.properties.tokens.items.required),
    log: describe(log),
    secrets: keyList(SECRET.properties),
    environment: ["| variable | sets |", "|---|---|", ...rows, LIST_VARIABLE].join("\n"),
  };
}

/** A group or a list of groups: what it is for, and its keys. */
function describe(node: SchemaNode, more = "", required = (node.items ?? node).required): string {
  return `${node.description}${more}\n\n${keyList((node.items ?? node).properties, required)}`.trimStart();
}

function keyList(keys: Readonly<Record<string, SchemaNode>> = {}, required: readonly string[] = []): string {
  const entries = Object.entries(keys).map(([key, node]) => {
    const isRequired = required.includes(key) ? "; required" : "";
    const absent = node.default === undefined ? isRequired : `; default \`${node.default}\``;
    return `- **\`${key}\`** (${describeBriefly(node)}${absent}): ${node.description}`;
  });
  return entries.join("\n");
}

/** Without what the page explains once. */
function describeBriefly(node: SchemaNode): string {
  return describeAllowed(node)
    .replace(/text, or one of \{ file: .*/, "a [secret](#secrets)")
    .replace(/, or one of \{ file: .*/, ", as a [secret](#secrets)")
    .replace(/a list of password, .*/, "a list of [kinds](operating.md#notifications)")
    .replace("a duration such as 250ms, 30s, 5m or 1h", "a duration")
    .replace("a size such as 10MiB, 1GB or a number of bytes", "a size");
}

/** Of the formatter. */
const LINE_WIDTH = 110;

/** Short lists on one line, as the formatter wants them. */
function editorSchema(): string {
  const { $schema, ...schema } = SCHEMA;
  const $comment = `Of Inlet ${version}.`;
  return formatJson({ $schema, $id: SCHEMA_ID, $comment, ...schema });
}

/** As the formatter writes it: short lists take one line. */
function formatJson(value: object): string {
  return `${JSON.stringify(value, null, 2).replace(
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
