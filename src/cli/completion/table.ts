/** What can be typed after each command, read from the commands themselves, so that no script can say otherwise. */
import type { Argument, Command, Option } from "commander";

/** What stands after an option, or as an argument. */
export type Value =
  | { readonly kind: "choices"; readonly choices: readonly string[] }
  | { readonly kind: "file" | "folder" | "other" };

export interface Word {
  readonly name: string;
  readonly summary: string;
}

type Rows<Content> = readonly (readonly [key: string, content: Content])[];

/** A command is known by its path: `api received`, and nothing for the program itself. */
export interface Table {
  /** By command, those below it. */
  readonly commands: Rows<readonly Word[]>;
  /** By command, every spelling of every option, its own and those of the commands above it. */
  readonly options: Rows<readonly Word[]>;
  /** By command and option, what follows it, where something does. */
  readonly values: Rows<Value>;
  /** By command, what its arguments are, where it takes some. */
  readonly arguments: Rows<Value>;
}

export function tabulate(program: Command): Table {
  const all = flatten(program, []);
  return {
    commands: all.map(({ path, below }) => [path, below] as const).filter(([, words]) => words.length > 0),
    options: all.map(({ path, options }) => [path, options.flatMap(spellingsOf)] as const),
    values: all.flatMap(({ path, options }) =>
      options.flatMap((option) => {
        const value = valueOfOption(option);
        return value === undefined
          ? []
          : spellingsOf(option).map(({ name }) => [`${path} ${name}`, value] as const);
      }),
    ),
    arguments: all.flatMap(({ path, argument }) =>
      argument === undefined ? [] : [[path, valueOfArgument(argument)] as const],
    ),
  };
}

interface Flat {
  readonly path: string;
  readonly below: readonly Word[];
  readonly options: readonly Option[];
  readonly argument: Argument | undefined;
}

function flatten(command: Command, above: readonly Command[]): Flat[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((it) => it.name() !== "help");
  const seen = new Set<string>();
  const options = [command, ...above.toReversed()]
    .flatMap((it) => help.visibleOptions(it))
    .filter((option) => !seen.has(option.flags) && seen.add(option.flags));
  return [
    {
      path: [...above, command]
        .slice(1)
        .map((it) => it.name())
        .join(" "),
      below: commands.map((it) => ({ name: it.name(), summary: oneLine(it.description()) })),
      options,
      argument: command.registeredArguments[0],
    },
    ...commands.flatMap((it) => flatten(it, [...above, command])),
  ];
}

function spellingsOf({ short, long, description }: Option): Word[] {
  return [short, long]
    .filter((spelling) => spelling !== undefined)
    .map((name) => ({ name, summary: oneLine(description) }));
}

/** `--config <file>` says what its value is; `undefined` where nothing follows. */
function valueOfOption({ argChoices, flags, required, optional }: Option): Value | undefined {
  if (!required && !optional) return undefined;
  if (argChoices !== undefined) return { kind: "choices", choices: argChoices };
  const [, name = ""] = /[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(flags) ?? [];
  if (name === "file" || name === "path") return { kind: "file" };
  return { kind: name === "folder" ? "folder" : "other" };
}

/** Files of a transfer are not files here: only folders are what they seem. */
function valueOfArgument(argument: Argument): Value {
  if (argument.argChoices !== undefined) return { kind: "choices", choices: argument.argChoices };
  return { kind: argument.name() === "folder" ? "folder" : "other" };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
