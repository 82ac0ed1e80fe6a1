/** The history: charts over the last day, week and month, and a search in the journal. */
import { formatSeconds, formatSize } from "../base/phrases.ts";
import { HistoryQueryShape, linkTo, parseQuery } from "../model/queries.ts";
import { shownFolder } from "../model/record.ts";
import type { ActEntry, HistoryEntry } from "../model/views.ts";
import { RANGES, type Range, renderChart, startOf } from "./chart.ts";
import { type Html, html, type PageColumn, type PageTime, renderTable, renderTime } from "./html.ts";
import { renderFilterForm, renderHidden } from "./layout.ts";
import { noticeOf, type ShowPage } from "./port.ts";
import { addressOfStory } from "./transfers.ts";

const BUSY = html`<p class="facts">Other searches are running: try again in a moment.</p>`;

/** Entries that a search shows. */
const MAX_FOUND = 100;

export const showHistory: ShowPage = async ({ tools, response, parameters, status, time }) => {
  const { journal } = tools;
  const { range: wanted = "day", ...fields } = Object.fromEntries(parameters);
  const range = Object.hasOwn(RANGES, wanted) ? (wanted as Range) : "day";
  const parsed = parseQuery(HistoryQueryShape, new URLSearchParams(fields), time.nowMs);
  const slots = await journal.tally(response, range, time.nowMs);
  const filter = typeof parsed === "string" ? {} : parsed;
  const found = await journal.show(response, "transfers", { ...filter, limit: MAX_FOUND });
  const since = { sinceMs: startOf(range, time.nowMs), limit: MAX_FOUND };
  const acts = await journal.show(response, "acts", since);
  const ranges = (Object.keys(RANGES) as Range[]).map((name) => {
    const address = linkTo("history", { ...fields, range: name });
    return html`<li><a href="${address}"${name === range && html` aria-current="page"`}>${RANGES[name].title}</a></li>`;
  });
  const mailboxes = status.mailboxes.map(({ name }) => name);
  const hidden = renderHidden({ range });
  const form = renderFilterForm({ page: "history", fields, reasons: [], mailboxes, hidden });
  const body = html`<section id="chart" data-live><h2>${RANGES[range].title}</h2><ul class="tabs">${ranges}</ul>${slots ? renderChart(slots, range, time) : BUSY}</section>
<section><h2>Past transfers</h2>${form}
<div id="past" data-live>${found ? renderEntries(found, time) : BUSY}</div></section>
<section id="acts" data-live><h2>Who did what</h2>${acts ? renderActs(acts, time) : BUSY}</section>`;
  return { code: found === undefined ? 503 : 200, ...noticeOf(parsed), body };
};

/** Actions of operators, and changes of the configuration. */
export function renderActs(acts: readonly ActEntry[], time: PageTime): Html {
  const columns: PageColumn<ActEntry>[] = [
    { title: "When", value: ({ at }) => renderTime(at, time) },
    { title: "Action", isName: true, value: ({ act }) => act },
    { title: "By", value: ({ who }) => who },
    { title: "From", value: ({ from }) => from },
    { title: "Mailbox", value: ({ mailbox }) => mailbox },
    { title: "Tracking-id", kind: "id", value: linkToStory },
    { title: "Changed", value: ({ keys }) => keys?.join(", ") },
  ];
  return renderTable("Actions", columns, acts);
}

/** Changes of state in the journal. */
export function renderEntries(entries: readonly HistoryEntry[], time: PageTime): Html {
  const columns: PageColumn<HistoryEntry>[] = [
    { title: "When", value: ({ at }) => renderTime(at, time) },
    { title: "Tracking-id", kind: "id", isName: true, value: linkToStory },
    { title: "State", value: ({ state, reason }) => (reason === undefined ? state : `${state} (${reason})`) },
    { title: "From and to", value: ({ sender, mailbox }) => html`${sender}<br>${mailbox}` },
    { title: "Subject and folder", value: renderSubject },
    { title: "Content", value: renderContent },
  ];
  return renderTable("Past transfers", columns, entries, "Nothing found.");
}

function linkToStory({ mailbox, trackingId }: ActEntry | HistoryEntry): Html | undefined {
  if (mailbox === undefined || trackingId === undefined) return undefined;
  return html`<a href="${addressOfStory({ mailbox, trackingId })}">${trackingId}</a>`;
}

function renderSubject({ subject, folder, inbox }: HistoryEntry): Html | string | undefined {
  if (folder === undefined) return subject;
  return html`${subject}${subject !== undefined && html`<br>`}<span class="path">${shownFolder({ folder, inbox })}</span>`;
}

function renderContent(entry: HistoryEntry): Html {
  const { seconds } = entry;
  return html`${formatSize(entry)}${seconds !== undefined && html`<br>in ${formatSeconds(seconds)}`}`;
}
