/** The page of one transfer: everything that is known about it, and the actions that apply. */
import { formatBytes, outputLines } from "../base/phrases.ts";
import { describeChecksum, describeVerdict, type FileView, type Story } from "../model/views.ts";
import { type Fact, factsOf, linesOf, type Phrase, timesOf } from "../operate/story-text.ts";
import { renderActs } from "./history.ts";
import { type Html, html, type PageColumn, type PageTime, renderTable, renderTime } from "./html.ts";
import { linkToMailbox } from "./layout.ts";
import { type RowContext, renderActions, renderCommands, renderOutcome } from "./rows.ts";
import type { ShowPage } from "./tools.ts";

export const showStory: ShowPage = async ({ operate }, _response, parameters) => {
  const [mailbox = "", trackingId = ""] = ["mailbox", "trackingId"].map((it) => parameters.get(it) ?? "");
  const story = await operate.story({ mailbox, trackingId });
  const none = html`<section><p>There is no such transfer. Its records may have been removed by retention.</p></section>`;
  return {
    code: story === undefined ? 404 : 200,
    title: "Transfer",
    render: (_status, context) => (story === undefined ? none : renderStory(story, context)),
  };
};

function renderStory(story: Story, context: RowContext): Html {
  const time = { ...context.time, isExact: true };
  return html`<section id="story" data-live><h3 class="id">${story.trackingId} <button type="button" class="copy" data-copy="${story.trackingId}" hidden>Copy</button></h3>
${renderOutcome(story, context)}
<dl>${factsOf(story).map((fact) => renderFact(fact, time))}</dl>
${renderActions(story, story.actions, context)}
${story.commands.length === 0 ? html`<p class="facts">No command applies in this state.</p>` : html`<h3>Commands that apply now</h3>${renderCommands(story.commands)}`}</section>
${renderFiles(story)}
<section id="rounds" data-live><h2>Times</h2><dl>${timesOf(story).map((fact) => renderFact(fact, time))}</dl>
<h2>Actions</h2>${renderActs(story.acts, time)}
<h2>Rounds</h2><ol class="rounds">${story.rounds.map((round) => html`<li value="${round.round}">${linesOf(round).map((line) => html`${renderPhrase(line, time)}<br>`)}</li>`)}</ol></section>`;
}

/** `undefined` if the files are not known. */
function renderFiles({ contents, moreContents }: Story): Html | undefined {
  if (contents === null) return undefined;
  const more = moreContents === 0 ? undefined : html`<p class="facts">… and ${moreContents} more</p>`;
  return html`<section id="files" data-live><h2>Files</h2>${renderTable("Files", FILE_COLUMNS, contents)}${more}</section>`;
}

const FILE_COLUMNS: readonly PageColumn<FileView>[] = [
  { title: "Name", isName: true, value: ({ name }) => name },
  { title: "Name as sent", value: ({ originalName }) => originalName },
  { title: "Size", kind: "number", value: ({ size }) => formatBytes(size) },
  { title: "Verdict", value: describeVerdict },
  { title: "Checksum", kind: "id", value: describeChecksum },
];

function renderFact([label, value]: Fact, time: PageTime): Html {
  const [mailbox] = value;
  const isMailbox = label === "Mailbox" && typeof mailbox === "string";
  return html`<dt>${label}</dt><dd>${isMailbox ? linkToMailbox(mailbox) : renderPhrase(value, time)}</dd>`;
}

function renderPhrase(phrase: Phrase, time: PageTime): Html {
  return html`${phrase.map((piece) => {
    if (typeof piece === "string") return piece;
    if ("time" in piece) return renderTime(piece.time, time);
    if ("path" in piece) return html`<span class="path">${piece.path}</span>`;
    return html`<pre>${outputLines(piece.output).map((line) => html`${line}<br>`)}</pre>`;
  })}`;
}
