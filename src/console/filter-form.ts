/** The form of the filter, the same on every page that lists transfers. */
import { STATES } from "../model/record.ts";
import { type Html, html } from "./html.ts";

export type Choices = readonly (readonly [value: string, words: string])[];

interface FilterForm {
  readonly page: "transfers" | "history";
  /** The values of all fields. */
  readonly fields: Readonly<Partial<Record<string, string | number | undefined>>>;
  readonly reasons: readonly string[];
  readonly mailboxes: readonly string[];
  /** More choices of this page, by the name of the field. */
  readonly more?: Readonly<Record<string, { readonly title: string; readonly choices: Choices }>>;
  readonly hidden?: Html;
}

const MAX_NAMES = 200;

/** All fields but the text are folded, unless one of them is set. */
export function renderFilterForm({ page, fields, reasons, mailboxes, more = {}, hidden }: FilterForm): Html {
  const names = ["sender", "mailbox", "since", "state", "reason", ...Object.keys(more)];
  const isOpen = names.some((name) => (fields[name] ?? "") !== "");
  const text = (name: string, title: string, hint: string, list?: string) =>
    html`<label>${title} <input type="search" name="${name}" value="${fields[name]}" placeholder="${hint}"${list && html` list="${list}"`}></label>`;
  const select = (name: string, title: string, choices: Choices) =>
    html`<label>${title} <select name="${name}">${choices.map(
      ([value, words]) =>
        html`<option value="${value}"${value === (fields[name] ?? "") && html` selected`}>${words}</option>`,
    )}</select></label>`;
  const same = (values: readonly string[]): Choices => [
    ["", "any"],
    ...values.map((it) => [it, it] as const),
  ];
  return html`<form class="filters" action="${page}" method="get" role="search">${hidden}
<div class="fields">${text("text", "Text", "tracking-id, sender, subject, folder …")}<button>Search</button> <a href="${page}">Clear</a></div>
<details id="more-filters"${isOpen && html` open`}><summary>More filters</summary><div class="fields">
${text("sender", "Sender", "*@supplier.example")}${text("mailbox", "Mailbox", "* is any text", "mailbox-names")}${text("since", "Since", "12h, 7d or 2026-03-01")}
<datalist id="mailbox-names">${mailboxes.slice(0, MAX_NAMES).map((name) => html`<option value="${name}">`)}</datalist>
${select("state", "State", same(STATES))}${reasons.length > 0 && select("reason", "Reason", same(reasons))}
${Object.entries(more).map(([name, { title, choices }]) => select(name, title, choices))}</div></details></form>`;
}
