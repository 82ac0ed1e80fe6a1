/** Man pages from the definitions that the program itself works with: its commands, and the schema of its configuration. */
import type { Argument, Command, Option } from "commander";
import { EXIT_CODES } from "../src/cli/command.ts";
import { describeProgram } from "../src/cli/program.ts";
import { describeAllowed } from "../src/config/explain.ts";
import { SCHEMA } from "../src/config/schema.ts";
import { type SchemaNode, typesOf } from "../src/config/schema-nodes.ts";

export interface Release {
  readonly version: string;
  /** 2026-03-01. */
  readonly date: string;
}

/** File name → content: `inlet.1`, a page for each command, and `inlet.yaml.5`. */
export async function describeInMan(release: Release): Promise<Record<string, string>> {
  const program = await describeProgram();
  const commands = childrenOf(program);
  return {
    "inlet.1": programPage(program, commands, release),
    ...Object.fromEntries(
      commands.map((command) => [`inlet-${command.name()}.1`, commandPage(command, release)]),
    ),
    "inlet.yaml.5": configurationPage(release),
  };
}

const FILES: readonly (readonly [path: string, content: string])[] = [
  ["/etc/inlet/inlet.yaml", "The configuration of the daemon. `inlet init` writes it."],
  ["/etc/inlet/inlet.example.yaml", "An example with every key, explained."],
  ["/etc/inlet/secrets/NAME", "A secret: `{ credential: secret_NAME }` in the configuration."],
  ["/srv/inbox", "The inbox, with the work folder `.inlet` in it."],
  ["/var/lib/inlet", "The state folder: tokens and supplied passwords."],
  ["/usr/share/doc/inlet", "The manual. Begin with operating.md."],
];

function programPage(program: Command, commands: readonly Command[], release: Release): string {
  return page("inlet", 1, "receives transfers and delivers each as one finished folder", release, [
    section("SYNOPSIS", "\\fBinlet\\fR \\fIcommand\\fR [\\fIoption\\fR]..."),
    section(
      "DESCRIPTION",
      text(program.description()),
      paragraph("Every command has a page of its own, and explains itself with --help."),
    ),
    section(
      "COMMANDS",
      ...commands.map((command) =>
        entry(`\\fBinlet\\-${verbatim(command.name())}\\fR(1)`, sentence(command.description())),
      ),
    ),
    section(
      "EXIT STATUS",
      ...Object.values(EXIT_CODES).map(({ code, meaning }) => entry(bold(String(code)), sentence(meaning))),
    ),
    section(
      "ENVIRONMENT",
      entry(bold("INLET_CONFIG"), "The configuration file, if --config does not name one."),
      entry(bold("INLET_*"), "Every key of the configuration: `INLET_SERVICE__BASEURL` is service.baseUrl."),
    ),
    section("FILES", ...FILES.map(([path, content]) => entry(italic(path), content))),
    section("SEE ALSO", "\\fBinlet.yaml\\fR(5), \\fBsystemctl\\fR(1), \\fBjournalctl\\fR(1)"),
  ]);
}

function commandPage(command: Command, release: Release): string {
  return page(`inlet-${command.name()}`, 1, command.description(), release, [
    section("SYNOPSIS", usageOf(command)),
    section("DESCRIPTION", text(`${sentence(command.description())}\n${helpAfter(command)}`)),
    ...(command.registeredArguments.length === 0
      ? []
      : [section("ARGUMENTS", ...command.registeredArguments.map(describeArgument))]),
    ...(command.options.length === 0 ? [] : [section("OPTIONS", ...command.options.map(describeOption))]),
    ...(childrenOf(command).length === 0
      ? []
      : [section("OPERATIONS", ...childrenOf(command).flatMap(describeOperation))]),
    section("SEE ALSO", "\\fBinlet\\fR(1), \\fBinlet.yaml\\fR(5)"),
  ]);
}

/** An operation of a command such as `inlet api`, or those of a group. */
function describeOperation(command: Command): string[] {
  const below = childrenOf(command);
  if (below.length > 0) return below.flatMap(describeOperation);
  return [
    `.SS ${usageOf(command)}`,
    text(`${sentence(command.description())}\n${helpAfter(command)}`),
    ...command.registeredArguments.map(describeArgument),
    ...command.options.map(describeOption),
  ];
}

function childrenOf(command: Command): Command[] {
  return command.commands.filter((child) => child.name() !== "help");
}

/** The text that `--help` prints after the options. */
function helpAfter(command: Command): string {
  let written = "";
  command.configureOutput({
    writeOut: (part) => {
      written += part;
    },
  });
  command.outputHelp();
  return written.slice(command.helpInformation().length);
}

function usageOf(command: Command): string {
  const names: string[] = [];
  for (let it: Command | null = command; it !== null; it = it.parent) names.unshift(it.name());
  const usage = command.usage().replaceAll("[options]", "[option]...").replaceAll("[command]", "operation");
  return `${bold(names.join(" "))} ${verbatim(usage)}`;
}

function describeArgument(argument: Argument): string {
  return entry(italic(argument.name()), describeFacts(argument.description, argument));
}

function describeOption(option: Option): string {
  const usual = option.defaultValue === undefined ? "" : ` Default: ${option.defaultValue}.`;
  return entry(bold(option.flags), `${describeFacts(option.description, option)}${usual}`);
}

function describeFacts(description: string, { argChoices }: Option | Argument): string {
  const choices = argChoices === undefined ? "" : ` One of ${argChoices.join(", ")}.`;
  return `${sentence(description)}${choices}`;
}

function configurationPage(release: Release): string {
  return page("inlet.yaml", 5, "the configuration of inlet", release, [
    section("SYNOPSIS", italic("/etc/inlet/inlet.yaml")),
    section(
      "DESCRIPTION",
      text(`Inlet reads one YAML file and never writes it: the path in --config, else the path in the variable
INLET_CONFIG, else inlet/inlet.yaml in the user's configuration folder, else /etc/inlet/inlet.yaml.

Durations are 250ms, 30s, 5m or 1h. Sizes are 10MiB, 1GB or a number of bytes. A relative path starts at the folder of the
file. \`inlet config check\` checks the file.

A secret is plain text, or { file: PATH }, { env: NAME }, { credential: NAME } or { command: [PROGRAM, ARGUMENT] }. Each file
/etc/inlet/secrets/NAME is the credential secret_NAME of the daemon.`),
    ),
    section("KEYS", ...describeKeys("", SCHEMA.properties, SCHEMA.required)),
    section(
      "EXAMPLE",
      text(`  service:
    baseUrl: https://transfer.example.com
    clientId: { credential: secret_client-id }
  inbox: /srv/inbox
  mailboxes:
    - email: orders@example.com
      passwords:
        - { sender: "*@supplier.example", password: { credential: secret_supplier } }`),
    ),
    section("SEE ALSO", "\\fBinlet\\fR(1), \\fBinlet\\-init\\fR(1), \\fBinlet\\-config\\fR(1)"),
  ]);
}

/** A group's keys follow it, with their whole path. Those of a secret are explained once. */
function describeKeys(
  above: string,
  keys: Readonly<Record<string, SchemaNode>>,
  required: readonly string[],
): string[] {
  return Object.entries(keys).flatMap(([key, node]) => {
    const path = `${above}${key}`;
    const facts = [
      node.description ?? "",
      isGroup(node) ? "" : `Value: ${describeAllowed(node)}.`,
      required.includes(key) ? "Required." : "",
      node.default === undefined ? "" : `Default: ${node.default}.`,
    ];
    const own = entry(bold(path), facts.filter(Boolean).join(" "));
    if (path.endsWith("[].service") || typesOf(node).includes("string")) return [own];
    const below = node.items?.properties === undefined ? node : node.items;
    const prefix = below === node ? `${path}.` : `${path}[].`;
    return [own, ...describeKeys(prefix, below.properties ?? {}, below.required ?? [])];
  });
}

/** Every other node with keys may also be a plain value. */
function isGroup(node: SchemaNode): boolean {
  return typesOf(node).every((type) => type === "object");
}

function page(
  name: string,
  number: number,
  summary: string,
  { version, date }: Release,
  sections: readonly string[],
): string {
  const title = `.TH ${verbatim(name.toUpperCase())} ${number} ${date} "Inlet ${version}" Inlet`;
  return `${[title, section("NAME", `${verbatim(name)} \\- ${verbatim(summary)}`), ...sections].join("\n")}\n`;
}

function section(title: string, ...parts: readonly string[]): string {
  return [`.SH ${title}`, ...parts].join("\n");
}

function entry(term: string, meaning: string): string {
  return `.TP\n${term}\n${paragraph(meaning)}`;
}

/** Paragraphs, and blocks of indented lines that stay as they are. */
function text(content: string): string {
  const parts = content.match(/(?:^ {2}.*\n?)+|(?:^(?! {2}).+\n?)+/gm) ?? [];
  const formatted = parts.map((part) =>
    part.startsWith("  ")
      ? `.nf\n.RS\n${part.trimEnd().split("\n").map(literal).join("\n")}\n.RE\n.fi`
      : paragraph(part),
  );
  return formatted.join("\n.PP\n");
}

function paragraph(content: string): string {
  return literal(content.replace(/\s+/g, " ").trim()).replace(/`([^`]+)`/g, "\\fB$1\\fR");
}

function literal(line: string): string {
  return verbatim(line).replace(/^(?=[.'])/, "\\&");
}

/** A hyphen becomes the character that users type and search for. */
function verbatim(content: string): string {
  return content.replaceAll("\\", "\\e").replaceAll("-", "\\-");
}

function bold(content: string): string {
  return `\\fB${verbatim(content)}\\fR`;
}

function italic(content: string): string {
  return `\\fI${verbatim(content)}\\fR`;
}

function sentence(content: string): string {
  const whole = content.trim();
  return `${whole.charAt(0).toUpperCase()}${whole.slice(1)}${/[.!?]$/.test(whole) ? "" : "."}`;
}
