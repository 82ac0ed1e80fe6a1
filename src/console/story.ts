/** The page of one transfer: everything that is known about it, and the actions that apply. */
import { formatBytes, formatSize, outputLines } from "../base/phrases.ts";
import { STATES, shownFolder } from "../model/record.ts";
import {
  describeChecksum,
  describeVerdict,
  type FileView,
  type HandoffView,
  type RoundView,
  type Story,
} from "../model/views.ts";
import { renderActs } from "./history.ts";
import {
  type Html,
  html,
  type PageColumn,
  type PageTime,
  renderDue,
  renderTable,
  renderTime,
} from "./html.ts";
import { linkToMailbox } from "./layout.ts";
import { type RowContext, renderActions, renderCommands, renderOutcome } from "./rows.ts";

export function renderStory(story: Story, context: RowContext): Html {
  const time = { ...context.time, isExact: true };
  return html`<section id="story" data-live><h3 class="id">${story.trackingId} <button type="button" class="copy" data-copy="${story.trackingId}" hidden>Copy</button></h3>
${renderOutcome(story, context)}
<dl>${factsOf(story, time).map(([name, value]) => (value === undefined || value === "" ? undefined : html`<dt>${name}</dt><dd>${value}</dd>`))}</dl>
${renderActions(story, story.actions, context)}
${story.commands.length === 0 ? html`<p class="facts">No command applies in this state.</p>` : html`<h3>Commands that apply now</h3>${renderCommands(story.commands)}`}</section>
${renderFiles(story)}
<section id="rounds" data-live><h2>Times</h2><dl>${STATES.map((state) => {
    const at = story.at[state];
    return at === undefined ? undefined : html`<dt>${state}</dt><dd>${renderTime(at, time)}</dd>`;
  })}</dl>
<h2>Actions</h2>${renderActs(story.acts, time)}
<h2>Rounds</h2><ol class="rounds">${story.rounds.map((round) => renderRound(round, time))}</ol></section>`;
}

function factsOf(story: Story, time: PageTime): (readonly [string, Html | string | undefined])[] {
  const { mailbox, sender, transferId, state, reason, message, until, expires, folder, inbox } = story;
  const { passwordsSpent, passwordAttempts, kept, verified, attempts, subject, output } = story;
  const { route, routedBecause, allowedBy } = story;
  const spent =
    passwordsSpent === null
      ? undefined
      : `${passwordsSpent} of ${passwordAttempts ?? "an unknown number of"} attempts spent`;
  return [
    ["Subject", subject ?? undefined],
    ["Mailbox", linkToMailbox(mailbox)],
    ["Sender", sender],
    ["Transfer ID", transferId],
    ["State", `${state}${reason === null ? "" : ` (${reason})`}`],
    ["Message", message ?? undefined],
    ["Last output of the check", output === null ? undefined : renderOutput(output)],
    ["Content", formatSize(story)],
    ["Next try", renderDue(until ?? undefined, time)],
    ["Expires", renderTime(expires ?? undefined, time)],
    ["Route", route === null ? undefined : `${route}, because ${routedBecause}`],
    ["Allowed", allowedBy === null ? undefined : `by ${allowedBy}, whatever the routes say`],
    [
      "Folder",
      folder === null ? undefined : html`<span class="path">${shownFolder({ folder, inbox })}</span>`,
    ],
    ["Verified", verified ?? undefined],
    ["Kept in", kept === null ? undefined : html`<span class="path">${kept}</span>`],
    ["Passwords", spent],
    ["Attempts", `${attempts} started in this round`],
  ];
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

function renderOutput(output: string): Html {
  return html`<pre>${outputLines(output).map((line) => html`${line}<br>`)}</pre>`;
}

function renderRound({ round, begun, ended }: RoundView, time: PageTime): Html {
  const began =
    begun === undefined
      ? html`It was discovered.`
      : html`${renderTime(begun.at, time)}: begun by ${begun.by} (${begun.why}).`;
  if (ended === undefined) return html`<li value="${round}">${began} It is open.</li>`;
  const { outcome, at, reason, message, folder, inbox, released, handoff } = ended;
  return html`<li value="${round}">${began} ${renderTime(at, time)}: <strong>${outcome}</strong>${reason === undefined ? undefined : html` (${reason})`}.${message === undefined ? undefined : html` ${message}`}${folder === undefined ? undefined : html` Folder: <span class="path">${shownFolder({ folder, inbox })}</span>.`}${released === undefined ? undefined : html` Released by ${released.by} despite ${released.reason}.`}${handoff === undefined ? undefined : html` Hand-off: ${handoff.progress}.${handoff.failed?.map(renderFailedStep)}`}${handoff?.pickedUpAt === undefined ? undefined : html` Picked up ${renderTime(handoff.pickedUpAt, time)}.`}</li>`;
}

function renderFailedStep({ step, message, output }: NonNullable<HandoffView["failed"]>[number]): Html {
  return html` The ${step} failed: ${message}.${output === undefined ? undefined : renderOutput(output)}`;
}
