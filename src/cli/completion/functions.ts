/** The table of words as functions of a shell, in what bash and zsh have in common. */
import type { Table, Value, Word } from "./table.ts";

/** How this shell writes down what a function answers. */
export interface Dialect {
  formatWords(words: readonly Word[]): string;
  formatValue(value: Value): string;
  /** The statement that answers with it. */
  answer(content: string): string;
}

export function formatFunctions(table: Table, { formatWords, formatValue, answer }: Dialect): string {
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

# What follows an option: choices and which, file, folder, or other. Nothing where it takes no value.
_inlet_value() {
${formatCase("$1 $2", table.values, formatValue)}
}

_inlet_argument() {
${formatCase("$1", table.arguments, formatValue)}
}`;
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
