/** The usage and the options of every command, as Markdown, from the definitions that the program itself parses with. */
import type { Argument, Command, Option } from "commander";
import { EXIT_CODES, exitCodesOf } from "../../src/cli/command.ts";
import { describeProgram } from "../../src/cli/program.ts";

/** By the name of the command, and `exit-codes`: the codes of all commands. */
export async function describeCommands(): Promise<Record<string, string>> {
  const program = await defineAll();
  const shown = program.commands.filter((command) => command.name() !== "help");
  return {
    "exit-codes": codeTable(
      "exit code",
      Object.values(EXIT_CODES).map(({ code, meaning }) => [code, meaning]),
    ),
    ...Object.fromEntries(shown.map((command) => [command.name(), describeCommand(command)])),
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

function describeCommand(command: Command): string {
  const operations = operationsOf(command);
  const parts = [
    table(["argument", "meaning"], command.registeredArguments.map(rowOfArgument)),
    table(["option", "meaning"], command.options.map(rowOfOption)),
    table(["operation", "meaning"], operations.map(rowOfOperation)),
    table(["argument or option", "operations", "meaning"], rowsOfDetails(operations)),
    codeTable("exit code", exitCodesOf(command)),
    ...operations.map(({ path, command: it }) => codeTable(`exit code of \`${path}\``, exitCodesOf(it))),
  ];
  const usage = `\`inlet ${command.name()} ${command.usage()}\``;
  return [`Usage: ${usage}`, ...parts.filter((part) => part !== "")].join("\n\n");
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

function codeTable(title: string, codes: readonly (readonly [code: number, meaning: string])[]): string {
  return table(
    [title, "meaning"],
    codes.map(([code, meaning]) => `| ${code} | ${meaning} |`),
  );
}

function rowOfArgument(argument: Argument): string {
  return row(argument.name(), factsOfArgument(argument));
}

function rowOfOption(option: Option): string {
  return row(option.flags, factsOfOption(option));
}

function rowOfOperation({ path, command }: Operation): string {
  return row([path, ...command.registeredArguments.map(formatArgument)].join(" "), [command.description()]);
}

/** Operations that share an argument or option, with the same meaning, share a row. */
function rowsOfDetails(operations: readonly Operation[]): string[] {
  const details = operations.flatMap(({ path, command }) => [
    ...command.registeredArguments.map((it) => ({
      path,
      code: formatArgument(it),
      facts: factsOfArgument(it),
    })),
    ...command.options.map((it) => ({ path, code: it.flags, facts: factsOfOption(it) })),
  ]);
  const explained = details.filter(({ facts }) => facts.some(Boolean));
  const shared = Object.groupBy(explained, ({ code, facts }) => row(code, facts));
  return Object.values(shared).map((same = []) => {
    const [{ code = "", facts = [] } = {}] = same;
    const isOfAll = operations.length > 1 && same.length === operations.length;
    const named = isOfAll ? "all" : same.map(({ path }) => `\`${path}\``).join(", ");
    return `| \`${code}\` | ${named} | ${formatFacts(facts)} |`;
  });
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
  return `| \`${code}\` | ${formatFacts(facts)} |`;
}

function formatFacts(facts: readonly string[]): string {
  return facts.filter(Boolean).join("; ").replaceAll("|", "\\|");
}
