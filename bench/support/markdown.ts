/** Markdown tables with aligned columns, readable as plain text. */

/** By title. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>;

export function formatTable<Row>(rows: readonly Row[], columns: Columns<Row>): string {
  const titles = Object.keys(columns);
  const lines = [titles, ...rows.map((row) => Object.values(columns).map((value) => value(row)))];
  const widths = titles.map((_, at) => Math.max(...lines.map((cells) => cells[at]?.length ?? 0)));
  const [head, ...body] = lines.map(
    (cells) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`,
  );
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  return [head, rule, ...body].join("\n");
}

export function grouped(value: number): string {
  return Math.round(value).toLocaleString("en");
}
