/** `completion`: a script for bash, zsh or fish, which at each Tab asks this command for the words that can follow. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Argument, type Command, type Option } from "commander";
import { PACKAGE_FOLDER } from "../base/version.ts";
import type { Runner } from "./command.ts";

const HELP = `
The script completes commands, options, their choices, files and folders.

  inlet completion bash > /etc/bash_completion.d/inlet
  inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
  inlet completion fish > ~/.config/fish/completions/inlet.fish`;

/** In config/completion. */
const SCRIPTS = { bash: "inlet.bash", zsh: "_inlet", fish: "inlet.fish" } as const;

/** `load`: defines the options of a command. */
export function define(command: Command, run: Runner, load: (command: Command) => Promise<void>): void {
  command
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .argument("[words...]", "the typed words; the script passes them")
    .addHelpText("after", HELP)
    .action(
      run(async ({ stdout }, shell: keyof typeof SCRIPTS, words: readonly string[]) => {
        const script = join(PACKAGE_FOLDER, "config/completion", SCRIPTS[shell]);
        if (words.length === 0) stdout.write(await readFile(script, "utf8"));
        for (const offer of words.length === 0 ? [] : await findOffers(command, words, load))
          stdout.write(`${offer.join("\t").trimEnd()}\n`);
        return "fine";
      }),
    );
}

/** The word is `:file` or `:folder` for any path. */
type Offer = readonly [word: string, description: string];

/** What can stand in place of the last word, which is typed so far. */
async function findOffers(
  { parent }: Command,
  words: readonly string[],
  load: (command: Command) => Promise<void>,
): Promise<Offer[]> {
  if (parent === null) return [];
  // `--option=value` arrives as one word, or from bash as three. Both become two: `=` is left out.
  const split = words.flatMap((word) => (word.startsWith("--") ? word.split(/=(.*)/s).slice(0, 2) : [word]));
  const typed = split.at(-1) === "=" ? "" : (split.at(-1) ?? "");
  let command = parent;
  let option: Option | undefined;
  for (const word of split.slice(0, -1).filter((it) => it !== "=")) {
    const isValue = option !== undefined && !word.startsWith("-");
    option = isValue ? undefined : optionsOf(command).find((it) => it.long === word && !it.isBoolean());
    const next = isValue ? undefined : command.commands.find((it) => it.name() === word);
    if (next === undefined) continue;
    await load(next);
    command = next;
  }
  const offers = option === undefined ? offersOf(command, typed) : valuesOf(option);
  return offers.filter(([word]) => word.startsWith(typed) || word.startsWith(":"));
}

/** Its own options, and those of its parents. */
function optionsOf(command: Command): readonly Option[] {
  const own = command.createHelp().visibleOptions(command);
  const above = command.parent === null ? [] : optionsOf(command.parent);
  return [...own, ...above.filter(({ long }) => own.every((it) => it.long !== long))];
}

/** The options of a command, its subcommands, or the values of its argument. */
function offersOf(command: Command, typed: string): Offer[] {
  if (typed.startsWith("-"))
    return optionsOf(command).map(({ long, description }) => [long ?? "", description]);
  const [argument] = command.registeredArguments;
  if (argument !== undefined) return valuesOf(argument);
  const shown = command.createHelp().visibleCommands(command);
  return shown.map((it) => [it.name(), it.description()]);
}

function valuesOf(it: Option | Argument): Offer[] {
  if (it.argChoices !== undefined) return it.argChoices.map((word) => [word, ""]);
  // `file` in `--config <file>`.
  const name = "flags" in it ? it.flags.replace(/^.*[<[]|[.>\]]+$/g, "") : it.name();
  if (name === "folder") return [[":folder", ""]];
  // The argument `file` is a file of a transfer, not of this disk.
  return "flags" in it && ["file", "path"].includes(name) ? [[":file", ""]] : [];
}
