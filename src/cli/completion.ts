/** `completion`: a completion script for bash, zsh or fish. */
import { Argument, type Command, type Option } from "commander";
import type { Run } from "./command.ts";

const FORMATS: Readonly<Record<string, (all: readonly Described[]) => string>> = {
  bash: formatBash,
  zsh: formatZsh,
  fish: formatFish,
};

const HELP = `
The script completes commands, options, their choices, files and folders. Generate it again after an update.

  inlet completion bash > /etc/bash_completion.d/inlet
  inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
  inlet completion fish > ~/.config/fish/completions/inlet.fish`;

/** `whole`: the program, with every command's options. */
export function define(command: Command, run: Run, whole: () => Promise<Command>): void {
  command
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(FORMATS)))
    .addHelpText("after", HELP)
    .action(
      run(async ({ stdout }, shell: string) => {
        stdout.write(FORMATS[shell]?.(describe(await whole(), [])) ?? "");
        return "fine";
      }),
    );
}

/** A command, with everything that can follow it. */
interface Described {
  /** Such as `api received`; empty for the program. */
  readonly path: string;
  readonly commands: readonly Command[];
  /** Its own and its parents' options. */
  readonly options: readonly Option[];
  readonly argument: Argument | undefined;
}

function describe(command: Command, above: readonly Command[]): Described[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((it) => it.name() !== "help");
  const options = [command, ...above.toReversed()].flatMap((it) => help.visibleOptions(it));
  const path = [...above, command].slice(1).map((it) => it.name());
  return [
    {
      path: path.join(" "),
      commands,
      options: [...new Map(options.toReversed().map((it) => [it.flags, it])).values()].toReversed(),
      argument: command.registeredArguments[0],
    },
    ...commands.flatMap((it) => describe(it, [...above, command])),
  ];
}

/** The choices of a value, or its kind: `:file`, `:folder` or `:other`. Nothing for an option without a value. */
function valuesOf(it: Option | Argument): readonly string[] {
  if ("flags" in it && !it.required && !it.optional) return [];
  if (it.argChoices !== undefined) return it.argChoices;
  const [, name = ""] = "flags" in it ? (/[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(it.flags) ?? []) : ["", it.name()];
  if (name === "folder") return [":folder"];
  // An argument `file` is a file of a transfer.
  return "flags" in it && ["file", "path"].includes(name) ? [":file"] : [":other"];
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Of all commands below the program. */
function quotedPaths([, ...commands]: readonly Described[]): string[] {
  return commands.map(({ path }) => quote(path));
}

/** The functions that bash and zsh share. */
function formatFunctions(all: readonly Described[]): string {
  const rows = all.flatMap(({ path, commands, options, argument }) => {
    const spellings = options.flatMap((option) =>
      [option.short, option.long].filter((it) => it !== undefined).map((name) => ({ name, option })),
    );
    const words = commands.map((it) => `${it.name()}:${it.description()}`);
    return [
      { key: `${path} `, lines: argument === undefined ? words : valuesOf(argument) },
      { key: `${path} -`, lines: spellings.map(({ name, option }) => `${name}:${option.description}`) },
      ...spellings.map(({ name, option }) => ({ key: `${path} ${name}`, lines: valuesOf(option) })),
    ].filter(({ lines }) => lines.length > 0);
  });
  const cases = rows.map(
    ({ key, lines }) => `    ${quote(key)}) printf '%s\\n' ${lines.map(quote).join(" ")} ;;`,
  );
  return `# By a command and a space: its commands, or the values of its argument. With a dash, its options. With an option, its values.
_inlet_words() {
  case "$1" in
${cases.join("\n")}
    *) return 1 ;;
  esac
}

# The words that can follow, with their descriptions, or the kind of value. Takes the current word, and those before it.
_inlet_after() {
  local current="$1" previous="$2" at='' word
  shift 2
  for word in "$@"; do
    case "\${at:+$at }$word" in
      ${quotedPaths(all).join(" | ")}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$previous" in -*) _inlet_words "$at $previous" && return ;; esac
  case "$current" in -*) _inlet_words "$at -" ;; *) _inlet_words "$at " ;; esac
}`;
}

function formatBash(all: readonly Described[]): string {
  return `# Completion of inlet for bash. For all users:
#   inlet completion bash > /etc/bash_completion.d/inlet
# For one user, in ~/.bashrc:
#   source <(inlet completion bash)

${formatFunctions(all)}

_inlet() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  # Bash splits --option=value into three words.
  [[ $current == '=' ]] && current=''
  [[ $previous == '=' ]] && previous=\${COMP_WORDS[COMP_CWORD - 2]}
  local found=$(_inlet_after "$current" "$previous" "\${COMP_WORDS[@]:1:COMP_CWORD-1}")
  local IFS=$'\\n'
  case $found in
    :file) COMPREPLY=($(compgen -f -- "$current")) ;;
    :folder) COMPREPLY=($(compgen -d -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$(cut -d : -f 1 <<<"$found")" -- "$current")) ;;
  esac
  if [[ $found == :* ]]; then compopt -o filenames 2>/dev/null; fi
}

complete -F _inlet inlet
`;
}

function formatZsh(all: readonly Described[]): string {
  return `#compdef inlet
# Completion of inlet for zsh. For all users, in a folder of $fpath:
#   inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
# For one user, in ~/.zshrc, after compinit:
#   source <(inlet completion zsh)

${formatFunctions(all)}

_inlet() {
  local current=$words[CURRENT] previous=$words[CURRENT-1]
  if [[ $current == --*=* ]]; then
    previous=\${current%%=*} current=\${current#*=}
    compset -P '*='
  fi
  local -a found=("\${(@f)$(_inlet_after "$current" "$previous" "\${(@)words[2,CURRENT-1]}")}")
  case $found[1] in
    :file) _files ;;
    :folder) _files -/ ;;
    -*) _describe -o option found ;;
    [^:]*) _describe value found ;;
  esac
}

if [[ \${funcstack[1]:-} == _inlet ]]; then _inlet "$@"; else compdef _inlet inlet; fi
`;
}

function formatFish(all: readonly Described[]): string {
  const lines = all.flatMap(({ path, commands, options, argument }) => {
    const rule = `complete -c inlet -n ${quote(`test (__inlet_at) = ${JSON.stringify(path)}`)}`;
    return [
      ...commands.map((it) => `${rule} -a ${it.name()} -d ${quote(it.description())}`),
      ...options.map((option) => {
        const names = [option.short?.replace("-", "-s "), option.long?.replace("--", "-l ")];
        return [rule, ...names, formatFishValues(option), `-d ${quote(option.description)}`].join(" ");
      }),
      ...(argument === undefined ? [] : [`${rule} ${formatFishValues(argument)}`]),
    ];
  });
  return `# Completion of inlet for fish:
#   inlet completion fish > ~/.config/fish/completions/inlet.fish

# The command that is typed, such as "api received".
function __inlet_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        if contains -- (string trim -- "$at $word") ${quotedPaths(all).join(" ")}
            set at (string trim -- "$at $word")
        end
    end
    echo $at
end

complete -c inlet -f
${lines.join("\n")}
`;
}

function formatFishValues(it: Option | Argument): string {
  const values = valuesOf(it);
  if (values.length === 0) return "";
  if (values[0] === ":file") return "-r -F";
  if (values[0] === ":folder") return "-x -a '(__fish_complete_directories (commandline -ct))'";
  return values[0] === ":other" ? "-x" : `-x -a ${quote(values.join(" "))}`;
}
