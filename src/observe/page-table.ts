/** A table of the status page. On a small screen each row is a card: so every cell knows the name of its column. */
import { type Html, html } from "./html.ts";

export interface PageColumn<Row> {
  readonly title: string;
  /** How it is written. */
  readonly kind?: "id" | "path" | "number";
  /** It names the row. */
  readonly isName?: boolean;
  value(row: Row): Html | string | number | undefined;
}

/** Roles are said, because a table that is drawn as cards is none any more for those who do not see it. */
export function renderTable<Row>(
  label: string,
  columns: readonly PageColumn<Row>[],
  rows: readonly Row[],
): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table role="table">
<thead role="rowgroup"><tr role="row">${columns.map(({ title }) => html`<th role="columnheader">${title}</th>`)}</tr></thead>
<tbody role="rowgroup">${rows.map(
    (row) => html`<tr role="row">${columns.map((column) => renderCell(column, column.value(row)))}</tr>\n`,
  )}</tbody></table></div>`;
}

function renderCell<Row>(
  { title, kind, isName = false }: PageColumn<Row>,
  value: Html | string | number | undefined,
): Html {
  const content = value === undefined || value === "" ? undefined : html`<span class="cell">${value}</span>`;
  const style = kind === undefined ? undefined : html` class="${kind}"`;
  return isName
    ? html`<th scope="row" role="rowheader" data-column="${title}"${style}>${content}</th>`
    : html`<td role="cell" data-column="${title}"${style}>${content}</td>`;
}
