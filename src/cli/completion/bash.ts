/** The completion script for bash. It needs nothing beside bash itself. */
import type { Table, Value, Word } from "./table.ts";

export function formatBash({ commands, options, values, arguments: args }: Table): string {
  return `# Completion of inlet for bash. To have it in every shell:
#   inlet completion bash > /etc/bash_completion.d/inlet
# or, for one user, in ~/.bashrc:
#   source <(inlet completion bash)

_inlet_commands() {
${formatCase("$1", commands, formatWords)}
}

_inlet_options() {
${formatCase("$1", options, formatWords)}
}

# What follows an option: choices and which, file, folder, or other. Nothing where it takes no value.
_inlet_value() {
${formatCase("$1 $2", values, formatValue)}
}

_inlet_argument() {
${formatCase("$1", args, formatValue)}
}

_inlet() {
  local path='' expected='' word at
  local current=\${COMP_WORDS[COMP_CWORD]}
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    if [[ -n $expected ]]; then
      # Bash takes --option=value apart, and the sign stands alone.
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

function formatWords(words: readonly Word[]): string {
  return words.map(({ name }) => name).join(" ");
}

function formatValue(value: Value): string {
  return value.kind === "choices" ? `choices ${value.choices.join(" ")}` : value.kind;
}

function formatCase<Content>(
  subject: string,
  rows: readonly (readonly [key: string, content: Content])[],
  format: (content: Content) => string,
): string {
  const lines = rows.map(([key, content]) => `    ${quote(key)}) echo ${quote(format(content))} ;;`);
  return `  case "${subject}" in\n${lines.join("\n")}\n  esac`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
