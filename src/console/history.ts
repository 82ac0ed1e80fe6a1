/** The past: charts over the last day, week and month, a search in the journal, and everything about one transfer. */
import { formatBytes, formatSeconds, formatSize, outputLines } from "../base/phrases.ts";
import { HistoryQueryShape, linkTo, parseQuery } from "../model/queries.ts";
import { shownFolder } from "../model/record.ts";
import {
  type ActEntry,
  describeChecksum,
  describeVerdict,
  type FileView,
  type HistoryEntry,
  type Story,
} from "../model/views.ts";
import { type Fact, factsOf, linesOf, type Phrase, timesOf } from "../operate/story.ts";
import { RANGES, type Range, renderChart, startOf } from "./chart.ts";
import {
  type Html,
  html,
  type PageColumn,
  type PageTime,
  renderDetails,
  renderTable,
  renderTime,
} from "./html.ts";
import { linkToMailbox, renderFilterForm, renderHidden } from "./layout.ts";
import { noticeOf, type PageContext, type ShowPage } from "./port.ts";
import { addressOfStory, renderActions, renderCommands, renderOutcome } from "./transfers.ts";

export const BUSY = html`<p class="facts">Other searches are running: try again in a moment.</p>`;

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
  const form = renderFilterForm({ page: "history", fields, mailboxes, hidden });
  const body = html`<section id="chart" data-live><h2>${RANGES[range].title}</h2><ul class="tabs">${ranges}</ul>${slots ? renderChart(slots, range, time) : BUSY}</section>
<section><h2>Past transfers</h2>${form}
<div id="past" data-live>${found ? renderEntries(found, time) : BUSY}</div></section>
<section id="acts" data-live><h2>Who did what</h2>${acts ? renderActs(acts, time) : BUSY}</section>`;
  return { code: found === undefined ? 503 : 200, ...noticeOf(parsed), body };
};

/** Actions of operators, and changes of the configuration. */
function renderActs(acts: readonly ActEntry[], time: PageTime): Html {
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

export const showStory: ShowPage = async (context) => {
  const { tools, parameters } = context;
  const [mailbox = "", trackingId = ""] = ["mailbox", "trackingId"].map((it) => parameters.get(it) ?? "");
  const story = await tools.operate.story({ mailbox, trackingId });
  if (story !== undefined) return { title: "Transfer", body: renderStory(story, context) };
  const body = html`<section><p>There is no such transfer. Its records may have been removed by retention.</p></section>`;
  return { code: 404, title: "Transfer", body };
};

function renderStory(story: Story, context: PageContext): Html {
  const time = { ...context.time, isExact: true };
  const renderFacts = (facts: readonly Fact[]) =>
    renderDetails(facts.map(([label, value]) => [label, renderFact(label, value, time)]));
  return html`<section id="story" data-live><h3 class="id">${story.trackingId}</h3>
${renderOutcome(story, context)}
${renderFacts(factsOf(story))}
${renderActions(story, story.actions, context)}
${story.commands.length === 0 ? html`<p class="facts">No command applies in this state.</p>` : html`<h3>Commands that apply now</h3>${renderCommands(story.commands)}`}</section>
${story.contents !== null && renderFiles(story.contents, story.moreContents)}
${story.contentsProblem !== null && html`<section id="files" data-live><h2>Files</h2><p class="facts">Not known: ${story.contentsProblem}.</p></section>`}
<section id="rounds" data-live><h2>Times</h2>${renderFacts(timesOf(story))}
<h2>Actions</h2>${renderActs(story.acts, time)}
<h2>Rounds</h2><ol class="rounds">${story.rounds.map((round) => html`<li value="${round.round}">${linesOf(round).map((line) => html`${renderPhrase(line, time)}<br>`)}</li>`)}</ol></section>`;
}

function renderFiles(files: readonly FileView[], more: number): Html {
  const columns: readonly PageColumn<FileView>[] = [
    { title: "Name", isName: true, value: ({ name }) => name },
    { title: "Name as sent", value: ({ originalName }) => originalName },
    { title: "Size", kind: "number", value: ({ size }) => formatBytes(size) },
    { title: "Verdict", value: describeVerdict },
    { title: "Checksum", kind: "id", value: describeChecksum },
  ];
  return html`<section id="files" data-live><h2>Files</h2>${renderTable("Files", columns, files)}${more > 0 && html`<p class="facts">… and ${more} more</p>`}</section>`;
}

function renderFact(label: string, value: Phrase, time: PageTime): Html {
  const [mailbox] = value;
  const isMailbox = label === "Mailbox" && typeof mailbox === "string";
  return isMailbox ? linkToMailbox(mailbox) : renderPhrase(value, time);
}

function renderPhrase(phrase: Phrase, time: PageTime): Html {
  return html`${phrase.map((piece) => {
    if (typeof piece === "string") return piece;
    if ("time" in piece) return renderTime(piece.time, time);
    if ("path" in piece) return html`<span class="path">${piece.path}</span>`;
    return html`<pre>${outputLines(piece.output).map((line) => html`${line}<br>`)}</pre>`;
  })}`;
}
