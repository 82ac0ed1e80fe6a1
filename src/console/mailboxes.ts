/** The pages of all mailboxes, and of one. */
import { formatSize } from "../base/phrases.ts";
import type { MailboxAct } from "../model/order.ts";
import { linkTo } from "../model/queries.ts";
import { shownFolder } from "../model/record.ts";
import type { MailboxStatus, Status, TransferStatus } from "../model/status.ts";
import type { HistoryEntry } from "../model/views.ts";
import {
  type Html,
  html,
  type PageColumn,
  type PageTime,
  renderDue,
  renderTable,
  renderTime,
} from "./html.ts";
import { linkToMailbox, renderHidden, renderTroubles } from "./layout.ts";
import { HEALTHS, healthOf, JOURNAL_BUSY, TONES } from "./overview.ts";
import { addressOfStory, type RowContext, renderRows } from "./rows.ts";
import type { ShowPage } from "./tools.ts";

export const showMailboxes: ShowPage = ({ board }) => ({
  render: (status, { time }) => renderMailboxes(status, board.transfers(), time),
});

/** `open`: all open transfers. */
export function renderMailboxes(
  { mailboxes }: Status,
  open: readonly TransferStatus[],
  time: PageTime,
): Html {
  const byMailbox = Map.groupBy(open, ({ mailbox }) => mailbox);
  const openIn = (name: string) => byMailbox.get(name) ?? [];
  const attentionIn = (name: string) => openIn(name).filter(({ group }) => group === "attention");
  const sorted = mailboxes.toSorted(
    (a, b) => HEALTHS.indexOf(healthOf(a)) - HEALTHS.indexOf(healthOf(b)) || (a.name < b.name ? -1 : 1),
  );
  const columns: PageColumn<MailboxStatus>[] = [
    { title: "Mailbox", isName: true, value: ({ name }) => linkToMailbox(name) },
    { title: "Health", value: (mailbox) => renderHealth(mailbox) },
    {
      title: "Need attention",
      kind: "number",
      value: ({ name }) => renderCount(name, attentionIn(name), "attention"),
    },
    { title: "Open", kind: "number", value: ({ name }) => renderCount(name, openIn(name)) },
    { title: "Listed", kind: "number", value: ({ listed }) => listed },
    { title: "Last poll", value: ({ lastPoll }) => renderTime(lastPoll, time) },
    { title: "Next poll", value: ({ nextPoll }) => renderDue(nextPoll, time) },
  ];
  return html`<section id="list" data-live><h2>Mailboxes <span class="count">${mailboxes.length}</span></h2>${renderTable("Mailboxes", columns, sorted)}</section>`;
}

const MAX_OPEN = 20;
const MAX_PAST = 50;

export const showMailbox: ShowPage = async ({ board, journal }, response, parameters) => {
  const name = parameters.get("name") ?? "";
  const find = ({ mailboxes }: Status) => mailboxes.find((mailbox) => mailbox.name === name);
  const isKnown = find(board.read()) !== undefined;
  const query = { mailbox: name, limit: MAX_PAST };
  const past = isKnown ? await journal.show(response, "transfers", query) : undefined;
  return {
    code: isKnown ? 200 : 404,
    title: name,
    render(status, context) {
      const mailbox = find(status);
      if (mailbox === undefined) return html`<section><p>There is no such mailbox.</p></section>`;
      const troubles = status.troubles.filter(({ mailboxes = [] }) => mailboxes.includes(name));
      const found = board.transfers().filter((transfer) => transfer.mailbox === name);
      const open = found.map((transfer) => board.withHelp(transfer));
      const all = linkTo("transfers", { mailbox: name });
      return html`<section id="health" data-live>${renderTroubles(troubles, context.time)}${renderMailboxActions(mailbox, context)}${renderFacts(mailbox, context)}</section>
<section id="open" data-live><h2><a href="${all}">Open transfers</a> <span class="count">${open.length}</span></h2>${open.length === 0 ? html`<p class="nothing">None.</p>` : renderRows(open.slice(0, MAX_OPEN), context)}${open.length > MAX_OPEN ? html`<p><a href="${all}">Show all ${open.length}</a></p>` : undefined}</section>
<section id="past" data-live><h2>Last transfers</h2>${past === undefined ? JOURNAL_BUSY : renderEntries(past, context.time)}<p><a href="${linkTo("history", { mailbox: name })}">History of this mailbox</a></p></section>`;
    },
  };
};

function renderFacts(mailbox: MailboxStatus, { time }: RowContext): Html {
  const { listed } = mailbox;
  const facts: (readonly [string, Html | string | undefined])[] = [
    ["Address", mailbox.email],
    ["Service", mailbox.service],
    ["Health", renderHealth(mailbox)],
    ["Polled every", `${mailbox.pollSeconds} s`],
    ["Last poll", renderTime(mailbox.lastPoll, time)],
    ["Last success", renderTime(mailbox.lastSuccess, time)],
    ["Next poll", renderDue(mailbox.nextPoll, time)],
    ["Listed", listed === undefined ? undefined : `${listed} transfers`],
    ["Token valid until", renderTime(mailbox.tokenValidUntil, time)],
    ["Quiet hours end", renderDue(mailbox.quietUntil, time)],
  ];
  return html`<dl>${facts.map(([title, value]) => (value === undefined ? undefined : html`<dt>${title}</dt><dd>${value}</dd>`))}</dl>`;
}

/** Entries of the journal as a table. */
export function renderEntries(entries: readonly HistoryEntry[], time: PageTime): Html {
  if (entries.length === 0) return html`<p class="nothing">Nothing found.</p>`;
  const columns: PageColumn<HistoryEntry>[] = [
    { title: "When", value: ({ at }) => renderTime(at, time) },
    {
      title: "Tracking-id",
      kind: "id",
      isName: true,
      value: (entry) => html`<a href="${addressOfStory(entry)}">${entry.trackingId}</a>`,
    },
    { title: "State", value: ({ state, reason }) => (reason === undefined ? state : `${state} (${reason})`) },
    { title: "From and to", value: ({ sender, mailbox }) => html`${sender}<br>${mailbox}` },
    { title: "Subject and folder", value: renderSubject },
    { title: "Content", value: renderContent },
  ];
  return renderTable("Past transfers", columns, entries);
}

function renderSubject({ subject, folder, inbox }: HistoryEntry): Html | undefined {
  if (folder === undefined) return subject === undefined ? undefined : html`${subject}`;
  return html`${subject}${subject === undefined ? undefined : html`<br>`}<span class="path">${shownFolder({ folder, inbox })}</span>`;
}

function renderContent(entry: HistoryEntry): Html {
  const { seconds } = entry;
  return html`${formatSize(entry)}${seconds === undefined ? undefined : html`<br>in ${formatDuration(seconds)}`}`;
}

function formatDuration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.round(seconds / 360) / 10} h` : `${Math.round(seconds / 8640) / 10} d`;
}

/** `undefined` if the visitor may not act. */
function renderMailboxActions(
  { name, paused, pausedBy }: MailboxStatus,
  { visitor: { proof }, back }: RowContext,
): Html | undefined {
  if (proof === undefined) return undefined;
  const form = (action: MailboxAct, label: string) =>
    html`<form action="mailbox-actions" method="post" data-act>${renderHidden({ proof, page: "yes", back, action, mailbox: name })}<button>${label}</button></form>`;
  return html`<div class="actions">${paused ? undefined : form("poll", "Poll now")}${pausedBy === undefined ? form("pause", "Pause") : form("resume", "Resume")}</div>`;
}

function renderHealth(mailbox: MailboxStatus): Html {
  const health = healthOf(mailbox);
  const { trouble, pausedBy } = mailbox;
  return html`<span class="mark ${TONES[health]}">${health}${pausedBy === undefined ? undefined : ` by ${pausedBy}`}</span>${trouble === undefined ? undefined : html`: ${trouble.message}`}`;
}

function renderCount(
  mailbox: string,
  { length }: readonly TransferStatus[],
  group?: "attention",
): Html | undefined {
  return length === 0 ? undefined : html`<a href="${linkTo("transfers", { mailbox, group })}">${length}</a>`;
}
