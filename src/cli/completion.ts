/** `completion`: a script for bash, zsh or fish, which at each Tab asks this command for the words that can follow. */
import { Argument, type Command, type Option } from "commander";
import type { Runner } from "./command.ts";

const HELP = `
The script completes commands, options, their choices, files and folders.

  inlet completion bash > /etc/bash_completion.d/inlet
  inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
  inlet completion fish > ~/.config/fish/completions/inlet.fish`;

const BASH = `# Completion of inlet for bash. For one user, in ~/.bashrc: source <(inlet completion bash)
_inlet() {
  local IFS=$'\\n' current="\${COMP_WORDS[COMP_CWORD]#=}"
  mapfile -t COMPREPLY < <("$1" completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case "\${COMPREPLY[0]}" in
    :file) COMPREPLY=($(compgen -f -- "$current")) ;;
    :folder) COMPREPLY=($(compgen -d -- "$current")) ;;
    *) COMPREPLY=("\${COMPREPLY[@]%%$'\\t'*}"); return ;;
  esac
  compopt -o filenames 2>/dev/null
}
complete -F _inlet inlet
`;

const ZSH = `#compdef inlet
# Completion of inlet for zsh. For one user, in ~/.zshrc, after compinit: source <(inlet completion zsh)
_inlet() {
  local -a offered=("\${(@f)$($words[1] completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compset -P '--*='
  case $offered[1] in
    :file) _files ;;
    :folder) _files -/ ;;
    ?*) offered=("\${offered[@]/$'\\t'/:}"); _describe inlet offered ;;
  esac
}
if [[ \${funcstack[1]:-} == _inlet ]]; then _inlet "$@"; else compdef _inlet inlet; fi
`;

const FISH = `# Completion of inlet for fish.
function __inlet_offer
    set -l current (commandline -ct)
    set -l option (string match -r -- '^--[^=]+=' "$current")
    set -l offered (inlet completion fish -- (commandline -opc)[2..-1] "$current" 2>/dev/null)
    switch "$offered[1]"
        case :file
            set offered (__fish_complete_path (string replace -- "$option" '' "$current"))
        case :folder
            set offered (__fish_complete_directories "$current")
    end
    for offer in $offered
        printf '%s\\n' "$option$offer"
    end
end
complete -c inlet -f -a '(__inlet_offer)'
`;

const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

/** `load`: defines the options of a command. */
export function define(command: Command, run: Runner, load: (command: Command) => Promise<void>): void {
  command
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .argument("[words...]", "the typed words; the script passes them")
    .addHelpText("after", HELP)
    .action(
      run(async ({ stdout }, shell: string, words: readonly string[]) => {
        const offers = words.length === 0 ? [] : await findOffers(command, words, load);
        const lines = offers.map((offer) => `${offer.join("\t").trimEnd()}\n`);
        stdout.write(words.length === 0 ? (SCRIPTS[shell] ?? "") : lines.join(""));
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
