/** The usage and the options of every command, as Markdown, from the definitions that the program itself parses with. */
import type { Argument, Command, Option } from "commander";
import { EXIT_CODES } from "../../src/cli/command.ts";
import { describeProgram } from "../../src/cli/program.ts";

/** An option with the same meaning in this many commands is explained once. */
const COMMON_FROM = 3;

/** By the name of the command, `exit-codes`: the codes of all commands, and `common-options`. */
export async function describeCommands(): Promise<Record<string, string>> {
  const program = await defineAll();
  const shown = program.commands.filter((command) => command.name() !== "help");
  const counted = Object.groupBy(shown.flatMap(rowsOf), (row) => row);
  const common = Object.keys(counted).filter((row) => (counted[row]?.length ?? 0) >= COMMON_FROM);
  return {
    "exit-codes": table(
      ["exit code", "meaning"],
      Object.values(EXIT_CODES).map(({ code, meaning }) => `| ${code} | ${meaning} |`),
    ),
    "common-options": common.join("\n"),
    ...Object.fromEntries(
      shown.map((command, index) => [
        command.name(),
        describeCommand(command, common, shown.slice(0, index)),
      ]),
    ),
  };
}

/** The program with all commands defined. Parsing prints nothing. */
export async function defineAll(): Promise<Command> {
  const program = await describeProgram();
  silence(program);
  return program;
}

function silence(command: Command): void {
  command.configureOutput({ writeOut: () => {}, writeErr: () => {} }).exitOverride();
  for (const child of command.commands) silence(child);
}

/** `before`: commands whose exit codes the page has shown already. */
function describeCommand(command: Command, common: readonly string[], before: readonly Command[]): string {
  const operations = operationsOf(command);
  const rows = rowsOf(command);
  const codes = codeList("Exit codes", command);
  const same = before.find((other) => codes !== "" && codeList("Exit codes", other) === codes);
  const parts = [
    rows.filter((it) => !common.includes(it)).join("\n"),
    namesOf(rows.filter((it) => common.includes(it))),
    table(["operation", "meaning", "options"], operations.map(rowOfOperation)),
    same === undefined ? codes : `Exit codes: those of [inlet ${same.name()}](#inlet-${same.name()}).`,
    ...operations.map(({ path, command: it }) => codeList(`Exit codes of \`${path}\``, it)),
  ];
  const usage = `\`inlet ${command.name()} ${command.usage()}\``;
  return [`Usage: ${usage}`, ...parts.filter((part) => part !== "")].join("\n\n");
}

/** Its arguments and options. */
function rowsOf(command: Command): string[] {
  return [...command.registeredArguments.map(rowOfArgument), ...command.options.map(rowOfOption)];
}

function namesOf(rows: readonly string[]): string {
  const names = rows.flatMap((it) => it.match(/`--[\w-]+/) ?? []).map((name) => `${name}\``);
  return names.length === 0 ? "" : `[Common options](#common-options): ${names.join(", ")}`;
}

/** `path`: its words after the command, such as `password check`. */
interface Operation {
  readonly path: string;
  readonly command: Command;
}

/** The operations of a command, and those of its groups. */
function operationsOf(command: Command, before: readonly string[] = []): Operation[] {
  const children = command.commands.filter((child) => child.name() !== "help");
  return children.flatMap((child) => {
    const words = [...before, child.name()];
    const inner = operationsOf(child, words);
    return inner.length > 0 ? inner : [{ path: words.join(" "), command: child }];
  });
}

function table(columns: readonly string[], rows: readonly string[]): string {
  const head = [`| ${columns.join(" | ")} |`, `|${"---|".repeat(columns.length)}`];
  return rows.length === 0 ? "" : [...head, ...rows].join("\n");
}

function codeList(title: string, command: Command): string {
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  const [, section = ""] = help.split("\nExit codes:\n");
  const codes = section.matchAll(/^ {2}(\d+) {2}(.+)$/gm).map(([, code, meaning]) => `- ${code}: ${meaning}`);
  return section === "" ? "" : [`${title}:`, "", ...codes].join("\n");
}

function rowOfArgument(argument: Argument): string {
  return row(argument.name(), factsOfArgument(argument));
}

function rowOfOption(option: Option): string {
  return row(option.flags, factsOfOption(option));
}

/** Its options by name only: `--help` explains them. */
function rowOfOperation({ path, command }: Operation): string {
  const usage = [path, ...command.registeredArguments.map(formatArgument)].join(" ");
  const options = command.options.map(({ long }) => `\`${long}\``).join(", ");
  return `| \`${usage}\` | ${command.description()} | ${options} |`;
}

function factsOfArgument(argument: Argument): string[] {
  return [argument.description, ...choicesOf(argument)];
}

function factsOfOption(option: Option): string[] {
  const usual = option.defaultValue === undefined ? [] : [`default: \`${option.defaultValue}\``];
  return [option.description, ...choicesOf(option), ...usual];
}

function choicesOf({ argChoices }: Option | Argument): string[] {
  return argChoices === undefined ? [] : [`one of ${argChoices.map((choice) => `\`${choice}\``).join(", ")}`];
}

function formatArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function row(code: string, facts: readonly string[]): string {
  return `- \`${code}\`: ${facts.filter(Boolean).join("; ")}`;
}
