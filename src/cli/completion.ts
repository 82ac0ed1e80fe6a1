/** `completion`: a completion script for bash, zsh or fish. */
import { Argument, type Command, type Option } from "commander";
import type { Run } from "./context.ts";

const FORMATS: Readonly<Record<string, (table: Table) => string>> = {
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
    .action((shell: string) =>
      run(async ({ stdout }) => {
        stdout.write(FORMATS[shell]?.(tabulate(await whole())) ?? "");
        return "fine";
      }),
    );
}

/** The value of an option or argument. */
type Value =
  | { readonly kind: "choices"; readonly choices: readonly string[] }
  | { readonly kind: "file" | "folder" | "other" };

interface Word {
  readonly name: string;
  readonly summary: string;
}

type Rows<Content> = readonly (readonly [key: string, content: Content])[];

/** The words that may follow each command. Keys are command paths, such as `api received`; empty for the program. */
interface Table {
  /** By command: its subcommands. */
  readonly commands: Rows<readonly Word[]>;
  /** By command: every spelling of its options and its parents' options. */
  readonly options: Rows<readonly Word[]>;
  /** By command and option: the option's value, where it takes one. */
  readonly values: Rows<Value>;
  /** By command: its first argument, where it takes one. */
  readonly arguments: Rows<Value>;
}

function tabulate(program: Command): Table {
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

/** Reads the kind from `--config <file>`; `undefined` for an option without a value. */
function valueOfOption({ argChoices, flags, required, optional }: Option): Value | undefined {
  if (!required && !optional) return undefined;
  if (argChoices !== undefined) return { kind: "choices", choices: argChoices };
  const [, name = ""] = /[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(flags) ?? [];
  if (name === "file" || name === "path") return { kind: "file" };
  return { kind: name === "folder" ? "folder" : "other" };
}

/** An argument `file` is a file of a transfer, but a `folder` is local. */
function valueOfArgument(argument: Argument): Value {
  if (argument.argChoices !== undefined) return { kind: "choices", choices: argument.argChoices };
  return { kind: argument.name() === "folder" ? "folder" : "other" };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** The syntax of a shell for the result of a function. */
interface Dialect {
  formatWords(words: readonly Word[]): string;
  formatValue(value: Value): string;
  /** The statement that returns the content. */
  answer(content: string): string;
}

function formatFunctions(table: Table, { formatWords, formatValue, answer }: Dialect): string {
  const formatCase = <Content>(
    subject: string,
    rows: readonly (readonly [key: string, content: Content])[],
    format: (content: Content) => string,
  ) => {
    const lines = rows.map(([key, content]) => `    ${quote(key)}) ${answer(format(content))} ;;`);
    return `  case "${subject}" in\n${lines.join("\n")}\n  esac`;
  };
  return `_inlet_commands() {
${formatCase("$1", table.commands, formatWords)}
}

_inlet_options() {
${formatCase("$1", table.options, formatWords)}
}

# The kind of an option's value: choices and the list, file, folder, or other. Empty for an option without a value.
_inlet_value() {
${formatCase("$1 $2", table.values, formatValue)}
}

_inlet_argument() {
${formatCase("$1", table.arguments, formatValue)}
}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

const BASH: Dialect = {
  formatWords: (words) => words.map(({ name }) => name).join(" "),
  formatValue: (value) => (value.kind === "choices" ? `choices ${value.choices.join(" ")}` : value.kind),
  answer: (content) => `echo ${quote(content)}`,
};

function formatBash(table: Table): string {
  return `# Completion of inlet for bash. For all users:
#   inlet completion bash > /etc/bash_completion.d/inlet
# For one user, in ~/.bashrc:
#   source <(inlet completion bash)

${formatFunctions(table, BASH)}

_inlet() {
  local path='' expected='' word at
  local current=\${COMP_WORDS[COMP_CWORD]}
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    if [[ -n $expected ]]; then
      # Bash splits --option=value into three words.
      [[ $word == '=' ]] || expected=''
    elif [[ $word == -* ]]; then
      expected=$(_inlet_value "$path" "$word")
    elif [[ " $(_inlet_commands "$path") " == *" $word "* ]]; then
      path=\${path:+$path }$word
    fi
  done
  [[ $current == '=' ]] && current=''
  if [[ -z $expected && $current == -* ]]; then
    expected="choices $(_inlet_options "$path")"
  elif [[ -z $expected ]]; then
    expected=$(_inlet_commands "$path")
    if [[ -n $expected ]]; then expected="choices $expected"; else expected=$(_inlet_argument "$path"); fi
  fi
  local IFS=$' \\t\\n'
  case $expected in
    choices*) COMPREPLY=($(compgen -W "\${expected#choices }" -- "$current")) ;;
    file)
      IFS=$'\\n'
      COMPREPLY=($(compgen -f -- "$current"))
      compopt -o filenames 2>/dev/null
      ;;
    folder)
      IFS=$'\\n'
      COMPREPLY=($(compgen -d -- "$current"))
      compopt -o filenames 2>/dev/null
      ;;
    *) COMPREPLY=() ;;
  esac
}

complete -F _inlet inlet
`;
}

const ZSH: Dialect = {
  /** A colon separates a word from its description, so a colon in the word is escaped. */
  formatWords: (words) =>
    words.map(({ name, summary }) => quote(`${name.replaceAll(":", "\\:")}:${summary}`)).join(" "),
  formatValue: (value) =>
    value.kind === "choices" ? ["choices", ...value.choices].map(quote).join(" ") : value.kind,
  answer: (content) => `found=(${content})`,
};

function formatZsh(table: Table): string {
  return `#compdef inlet
# Completion of inlet for zsh. For all users, in a folder of $fpath:
#   inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
# For one user, in ~/.zshrc, after compinit:
#   source <(inlet completion zsh)

${formatFunctions(table, ZSH)}

_inlet() {
  # The functions above return their result here.
  local -a found expected
  local below='' word
  local -i at
  for ((at = 2; at < CURRENT; at++)); do
    word=$words[at]
    if (( $#expected )); then
      expected=()
    elif [[ $word == -*=* ]]; then
      :
    elif [[ $word == -* ]]; then
      found=()
      _inlet_value "$below" "$word"
      expected=($found)
    else
      found=()
      _inlet_commands "$below"
      (( \${found[(I)$word:*]} )) && below=\${below:+$below }$word
    fi
  done
  if (( ! $#expected )) && [[ $words[CURRENT] == --*=* ]]; then
    found=()
    _inlet_value "$below" "\${words[CURRENT]%%=*}"
    expected=($found)
    compset -P '*='
  fi
  if (( ! $#expected )) && [[ $words[CURRENT] == -* ]]; then
    found=()
    _inlet_options "$below"
    _describe -o option found
    return
  fi
  if (( ! $#expected )); then
    found=()
    _inlet_commands "$below"
    if (( $#found )); then
      _describe command found
      return
    fi
    _inlet_argument "$below"
    expected=($found)
  fi
  case \${expected[1]:-} in
    choices) compadd -- \${expected[2,-1]} ;;
    file) _files ;;
    folder) _files -/ ;;
  esac
}

if [[ \${funcstack[1]:-} == _inlet ]]; then _inlet "$@"; else compdef _inlet inlet; fi
`;
}

function formatFish({ commands, options, values, arguments: args }: Table): string {
  return `# Completion of inlet for fish:
#   inlet completion fish > ~/.config/fish/completions/inlet.fish

function __inlet_commands
${formatSwitch('"$argv[1]"', commands, formatFishWords)}
end

function __inlet_options
${formatSwitch('"$argv[1]"', options, formatFishWords)}
end

# The kind of an option's value: choices and the list, file, folder, or other. Empty for an option without a value.
function __inlet_value
${formatSwitch('"$argv[1] $argv[2]"', values, formatFishValue)}
end

function __inlet_argument
${formatSwitch('"$argv[1]"', args, formatFishValue)}
end

function __inlet_complete
    set -l below ''
    set -l expected
    set -l current (commandline -ct)
    for word in (commandline -opc)[2..-1]
        if test (count $expected) -gt 0
            set expected
        else if string match -q -- '-*=*' $word
            continue
        else if string match -q -- '-*' $word
            set expected (__inlet_value "$below" $word)
        else if string match -q -- "$word"\\t'*' (__inlet_commands "$below")
            set below (string trim -- "$below $word")
        end
    end
    if test (count $expected) -eq 0; and string match -q -- '--*=*' $current
        set -l option (string split -m 1 = -- $current)
        set expected (__inlet_value "$below" $option[1])
        switch "$expected[1]"
            case choices
                printf "$option[1]=%s\\n" $expected[2..-1]
            case file folder
                __fish_complete_path $option[2] | string replace -r -- '^' "$option[1]="
        end
        return
    end
    if test (count $expected) -eq 0; and string match -q -- '-*' $current
        __inlet_options "$below"
        return
    end
    if test (count $expected) -eq 0
        set -l commands (__inlet_commands "$below")
        if test (count $commands) -gt 0
            printf '%s\\n' $commands
            return
        end
        set expected (__inlet_argument "$below")
    end
    switch "$expected[1]"
        case choices
            printf '%s\\n' $expected[2..-1]
        case file
            __fish_complete_path $current
        case folder
            __fish_complete_directories $current
    end
end

complete -c inlet -f -a '(__inlet_complete)'
`;
}

function formatFishWords(words: readonly Word[]): string {
  return words.map(({ name, summary }) => `${quoteForFish(name)}\\t${quoteForFish(summary)}`).join(" ");
}

function formatFishValue(value: Value): string {
  return value.kind === "choices" ? ["choices", ...value.choices].map(quoteForFish).join(" ") : value.kind;
}

function formatSwitch<Content>(
  subject: string,
  rows: readonly (readonly [key: string, content: Content])[],
  format: (content: Content) => string,
): string {
  const lines = rows.map(
    ([key, content]) => `        case ${quoteForFish(key)}\n            printf '%s\\n' ${format(content)}`,
  );
  return `    switch ${subject}\n${lines.join("\n")}\n    end`;
}

function quoteForFish(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
