/** HTML templates, tables and times for the console. Every value is escaped unless it is `Html`. */
import { formatDue, formatMoment, formatWhen } from "../base/phrases.ts";

export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Value = string | number | Html | undefined | false | readonly Value[];

/** `undefined` and `false` render as nothing, a list as its elements. */
export function html(literals: TemplateStringsArray, ...values: readonly Value[]): Html {
  // Each literal but the first follows a value.
  return new Html(literals.reduce((text, literal, at) => `${text}${format(values[at - 1])}${literal}`));
}

export interface PageColumn<Row> {
  readonly title: string;
  /** The style of the value. */
  readonly kind?: "id" | "path" | "number";
  /** The column holds the row's header. */
  readonly isName?: boolean;
  value(row: Row): Html | string | number | undefined;
}

/**
 * On a small screen each row is a card, so every cell carries the title of its column. The explicit roles keep such a table
 * a table for screen readers.
 */
export function renderTable<Row>(
  label: string,
  columns: readonly PageColumn<Row>[],
  rows: readonly Row[],
  nothing = "None.",
): Html {
  if (rows.length === 0) return html`<p class="facts">${nothing}</p>`;
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
  const content = value !== undefined && value !== "" && html`<span class="cell">${value}</span>`;
  const style = kind && html` class="${kind}"`;
  return isName
    ? html`<th scope="row" role="rowheader" data-column="${title}"${style}>${content}</th>`
    : html`<td role="cell" data-column="${title}"${style}>${content}</td>`;
}

/** What is known of one thing; a fact without a value is left out. */
export function renderDetails(facts: readonly (readonly [string, Html | string | undefined])[]): Html {
  return html`<dl>${facts.map(([title, value]) => value !== undefined && html`<dt>${title}</dt><dd>${value}</dd>`)}</dl>`;
}

/** When a page is rendered, and how it shows times. */
export interface PageTime {
  readonly nowMs: number;
  /** `undefined`: the machine's. */
  readonly zone: string | undefined;
  /** Times are written out. */
  readonly isExact?: boolean;
}

/** `undefined` for a missing time. */
export function renderTime(
  iso: string | undefined,
  { nowMs, zone, isExact }: PageTime,
  words = formatWhen,
): Html | undefined {
  if (iso === undefined) return undefined;
  const [exact, about] = [formatMoment(iso, zone), words(iso, nowMs)];
  return html`<time datetime="${iso}" title="${exact}">${isExact ? `${exact} (${about})` : about}</time>`;
}

/** The time of something that is planned. */
export function renderDue(iso: string | undefined, time: PageTime): Html | undefined {
  return renderTime(iso, time, formatDue);
}

/** The time of day. */
export function renderClock(iso: string, { zone }: PageTime): Html {
  const exact = formatMoment(iso, zone);
  return html`<time datetime="${iso}" title="${exact}">${exact.slice(11)}</time>`;
}

function format(value: Value): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "number" || value instanceof Html) return String(value);
  return typeof value === "string" ? escapeText(value) : value.map(format).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Control characters, and characters that change the direction of text, are shown as escapes. */
function escapeText(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "")
    .replace(
      /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
      (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
    );
}
