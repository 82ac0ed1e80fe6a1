/** The history: charts over the last day, week and month, and a search in the journal. */
import { HistoryQueryShape, linkTo, parseQuery } from "../model/queries.ts";
import type { ActEntry } from "../model/views.ts";
import { RANGES, type Range, renderChart, startOf } from "./chart.ts";
import { renderFilterForm } from "./filter-form.ts";
import { type Html, html, type PageColumn, type PageTime, renderTable, renderTime } from "./html.ts";
import { renderHidden } from "./layout.ts";
import { renderEntries } from "./mailboxes.ts";
import { addressOfStory } from "./rows.ts";
import { noticeOf, type ShowPage } from "./tools.ts";

const BUSY = html`<p class="facts">Other searches are running: try again in a moment.</p>`;

/** Entries that a search shows. */
const MAX_FOUND = 100;

export const showHistory: ShowPage = async ({ journal, clock }, response, given) => {
  const { range: wanted = "day", ...fields } = Object.fromEntries(given);
  const range = Object.hasOwn(RANGES, wanted) ? (wanted as Range) : "day";
  const parsed = parseQuery(HistoryQueryShape, new URLSearchParams(fields), clock.now());
  const slots = await journal.tally(response, range, clock.now());
  const filter = typeof parsed === "string" ? {} : parsed;
  const found = await journal.show(response, "transfers", { ...filter, limit: MAX_FOUND });
  const since = { sinceMs: startOf(range, clock.now()), limit: MAX_FOUND };
  const acts = await journal.show(response, "acts", since);
  const ranges = (Object.keys(RANGES) as Range[]).map((name) => {
    const address = linkTo("history", { ...fields, range: name });
    return html`<li><a href="${address}"${name === range ? html` aria-current="page"` : undefined}>${RANGES[name].title}</a></li>`;
  });
  const hidden = renderHidden({ range });
  return {
    code: found === undefined ? 503 : 200,
    ...noticeOf(parsed),
    render(status, { time }) {
      const mailboxes = status.mailboxes.map(({ name }) => name);
      const form = renderFilterForm({ page: "history", fields, reasons: [], mailboxes, hidden });
      return html`<section id="chart" data-live><h2>${RANGES[range].title}</h2><ul class="tabs">${ranges}</ul>${slots === undefined ? BUSY : renderChart(slots, range, time)}</section>
<section><h2>Past transfers</h2>${form}
<div id="past" data-live>${found === undefined ? BUSY : renderEntries(found, time)}</div></section>
<section id="acts" data-live><h2>Who did what</h2>${acts === undefined ? BUSY : renderActs(acts, time)}</section>`;
    },
  };
};

/** Actions of operators, and changes of the configuration. */
export function renderActs(acts: readonly ActEntry[], time: PageTime): Html {
  if (acts.length === 0) return html`<p class="nothing">None.</p>`;
  const columns: PageColumn<ActEntry>[] = [
    { title: "When", value: ({ at }) => renderTime(at, time) },
    { title: "Action", isName: true, value: ({ act }) => act },
    { title: "By", value: ({ who }) => who },
    { title: "From", value: ({ from }) => from },
    { title: "Mailbox", value: ({ mailbox }) => mailbox },
    { title: "Tracking-id", kind: "id", value: renderTransfer },
    { title: "Changed", value: ({ keys }) => keys?.join(", ") },
  ];
  return renderTable("Actions", columns, acts);
}

function renderTransfer({ mailbox, trackingId }: ActEntry): Html | undefined {
  if (mailbox === undefined || trackingId === undefined) return undefined;
  return html`<a href="${addressOfStory({ mailbox, trackingId })}">${trackingId}</a>`;
}
