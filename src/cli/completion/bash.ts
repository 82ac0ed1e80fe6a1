/** The completion script for bash. It needs nothing beside bash itself. */
import { type Dialect, formatFunctions, quote } from "./functions.ts";
import type { Table } from "./table.ts";

const DIALECT: Dialect = {
  formatWords: (words) => words.map(({ name }) => name).join(" "),
  formatValue: (value) => (value.kind === "choices" ? `choices ${value.choices.join(" ")}` : value.kind),
  answer: (content) => `echo ${quote(content)}`,
};

export function formatBash(table: Table): string {
  return `# Completion of inlet for bash. To have it in every shell:
#   inlet completion bash > /etc/bash_completion.d/inlet
# or, for one user, in ~/.bashrc:
#   source <(inlet completion bash)

${formatFunctions(table, DIALECT)}

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
