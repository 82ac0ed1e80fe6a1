/** The words that shells complete, from the definitions that the program itself parses with. */
import type { Command, Option } from "commander";
import { describeProgram } from "../../src/cli/program.ts";

/**
 * A line for each command and option. Tabs separate the word, the places in which it can stand (a regular expression;
 * `/api/received/` is the place after `inlet api received`), its description, and what follows it: nothing, choices, `:file`,
 * `:folder`, or `:any` other value.
 */
export async function listCompletionWords(): Promise<string> {
  const words = Object.groupBy(wordsOf(await describeProgram(), "/"), ({ word, rest }) => `${word}\t${rest}`);
  const lines = Object.values(words).map((same = []) => {
    const places = same.map(({ place }) => place).join("|");
    return `${same[0]?.word}\t${places}\t${same[0]?.rest}`.trimEnd();
  });
  return lines.join("\n");
}

/** `rest`: its description, and what follows it. */
interface Word {
  readonly word: string;
  readonly place: string;
  readonly rest: string;
}

/** Its options, which can also stand below it, and its commands with theirs. `above`: the options of its parents. */
function wordsOf(command: Command, place: string, above: readonly (string | undefined)[] = []): Word[] {
  const help = command.createHelp();
  const options = help.visibleOptions(command).filter(({ long }) => !above.includes(long));
  const names = [...above, ...options.map(({ long }) => long)];
  return [
    ...options.map((it) => ({
      word: it.long ?? "",
      place: `${place}.*`,
      rest: `${it.description}\t${followsOption(it)}`,
    })),
    ...help
      .visibleCommands(command)
      .flatMap((it) => [
        { word: it.name(), place, rest: `${it.description()}\t${followsCommand(it)}` },
        ...wordsOf(it, `${place}${it.name()}/`, names),
      ]),
  ];
}

function followsOption({ required, optional, argChoices, flags }: Option): string {
  if (!required && !optional) return "";
  // `file` in `--config <file>`.
  const name = flags.replace(/^.*[<[]|[.>\]]+$/g, "");
  const path = { file: ":file", path: ":file", folder: ":folder" }[name];
  return argChoices?.join(" ") ?? path ?? ":any";
}

/** An argument `file` is a file of a transfer, not of this disk. */
function followsCommand({ registeredArguments: [first] }: Command): string {
  return first?.argChoices?.join(" ") ?? (first?.name() === "folder" ? ":folder" : "");
}
