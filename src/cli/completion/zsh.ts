/** The completion script for zsh, with a description beside each word. */
import { type Dialect, formatFunctions, quote } from "./functions.ts";
import type { Table } from "./table.ts";

const DIALECT: Dialect = {
  /** A colon parts a word from its description, so one in the word is escaped. */
  formatWords: (words) =>
    words.map(({ name, summary }) => quote(`${name.replaceAll(":", "\\:")}:${summary}`)).join(" "),
  formatValue: (value) =>
    value.kind === "choices" ? ["choices", ...value.choices].map(quote).join(" ") : value.kind,
  answer: (content) => `found=(${content})`,
};

export function formatZsh(table: Table): string {
  return `#compdef inlet
# Completion of inlet for zsh. Write it to a file _inlet in a folder of $fpath:
#   inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
# or, for one user, in ~/.zshrc, after compinit:
#   source <(inlet completion zsh)

${formatFunctions(table, DIALECT)}

_inlet() {
  # Each of the above leaves what it found here.
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
