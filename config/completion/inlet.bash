# Completion of inlet for bash. For one user, in ~/.bashrc: source <(inlet completion bash)
_inlet() {
  local IFS=$'\n' current="${COMP_WORDS[COMP_CWORD]#=}"
  mapfile -t COMPREPLY < <("$1" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case "${COMPREPLY[0]}" in
    :file) COMPREPLY=($(compgen -f -- "$current")) ;;
    :folder) COMPREPLY=($(compgen -d -- "$current")) ;;
    *) COMPREPLY=("${COMPREPLY[@]%%$'\t'*}"); return ;;
  esac
  compopt -o filenames 2>/dev/null
}
complete -F _inlet inlet
