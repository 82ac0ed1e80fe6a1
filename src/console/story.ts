/** The page of one transfer: everything that is known about it, and the actions that apply. */
import { formatBytes, outputLines } from "../base/phrases.ts";
import { describeChecksum, describeVerdict, type FileView, type Story } from "../model/views.ts";
import { type Fact, factsOf, linesOf, type Phrase, timesOf } from "../operate/story-text.ts";
import { renderActs } from "./history.ts";
import {
  type Html,
  html,
  type PageColumn,
  type PageTime,
  renderDetails,
  renderTable,
  renderTime,
} from "./html.ts";
import { linkToMailbox } from "./layout.ts";
import type { PageContext, ShowPage } from "./port.ts";
import { renderActions, renderCommands, renderOutcome } from "./transfers.ts";

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
  return html`<section id="story" data-live><h3 class="id">${story.trackingId} <button type="button" class="copy" data-copy="${story.trackingId}" hidden>Copy</button></h3>
${renderOutcome(story, context)}
${renderFacts(factsOf(story))}
${renderActions(story, story.actions, context)}
${story.commands.length === 0 ? html`<p class="facts">No command applies in this state.</p>` : html`<h3>Commands that apply now</h3>${renderCommands(story.commands)}`}</section>
${story.contents !== null && renderFiles(story.contents, story.moreContents)}
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
