/** The completion script for fish, with a description beside each word. */
import type { Table, Value, Word } from "./table.ts";

export function formatFish({ commands, options, values, arguments: args }: Table): string {
  return `# Completion of inlet for fish:
#   inlet completion fish > ~/.config/fish/completions/inlet.fish

function __inlet_commands
${formatSwitch('"$argv[1]"', commands, formatWords)}
end

function __inlet_options
${formatSwitch('"$argv[1]"', options, formatWords)}
end

# What follows an option: choices and which, file, folder, or other. Nothing where it takes no value.
function __inlet_value
${formatSwitch('"$argv[1] $argv[2]"', values, formatValue)}
end

function __inlet_argument
${formatSwitch('"$argv[1]"', args, formatValue)}
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

function formatWords(words: readonly Word[]): string {
  return words.map(({ name, summary }) => `${quote(name)}\\t${quote(summary)}`).join(" ");
}

function formatValue(value: Value): string {
  return value.kind === "choices" ? ["choices", ...value.choices].map(quote).join(" ") : value.kind;
}

function formatSwitch<Content>(
  subject: string,
  rows: readonly (readonly [key: string, content: Content])[],
  format: (content: Content) => string,
): string {
  const lines = rows.map(
    ([key, content]) => `        case ${quote(key)}\n            printf '%s\\n' ${format(content)}`,
  );
  return `    switch ${subject}\n${lines.join("\n")}\n    end`;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
