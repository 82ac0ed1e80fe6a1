/** The usage and the options of every command, as Markdown, from the definitions that the program itself parses with. */
import type { Argument, Command, Option } from "commander";
import { describeProgram } from "../../src/cli/program.ts";

/** By the name of the command. */
export async function describeCommands(): Promise<Record<string, string>> {
  const program = await defineAll();
  const shown = program.commands.filter((command) => command.name() !== "help");
  return Object.fromEntries(shown.map((command) => [command.name(), describeCommand(command)]));
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

function describeCommand(command: Command): string {
  const children = command.commands.filter((child) => child.name() !== "help");
  const parts = [
    table("argument", command.registeredArguments.map(rowOfArgument)),
    table("option", command.options.map(rowOfOption)),
    table("operation", children.flatMap(rowsOfOperation)),
  ];
  const usage = `\`inlet ${command.name()} ${command.usage()}\``;
  return [`Usage: ${usage}`, ...parts.filter((part) => part !== "")].join("\n\n");
}

function table(kind: string, rows: readonly string[]): string {
  return rows.length === 0 ? "" : [`| ${kind} | meaning |`, "|---|---|", ...rows].join("\n");
}

function rowOfArgument(argument: Argument): string {
  return row(argument.name(), [argument.description, ...choicesOf(argument)]);
}

function rowOfOption(option: Option): string {
  const usual = option.defaultValue === undefined ? [] : [`default: \`${option.defaultValue}\``];
  return row(option.flags, [option.description, ...choicesOf(option), ...usual]);
}

function choicesOf({ argChoices }: Option | Argument): string[] {
  return argChoices === undefined ? [] : [`one of ${argChoices.map((choice) => `\`${choice}\``).join(", ")}`];
}

/** An operation, or those of a group. */
function rowsOfOperation(command: Command): string[] {
  const children = command.commands.filter((child) => child.name() !== "help");
  if (children.length > 0) return children.flatMap(rowsOfOperation);
  const path = [command.parent?.name(), command.name()]
    .filter((name) => name !== "api" && name !== "config")
    .join(" ");
  const given = command.registeredArguments.map(formatArgument);
  return [row([path, ...given].join(" "), [command.description()])];
}

function formatArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function row(code: string, facts: readonly string[]): string {
  return `| \`${code}\` | ${facts.filter(Boolean).join("; ").replaceAll("|", "\\|")} |`;
}
