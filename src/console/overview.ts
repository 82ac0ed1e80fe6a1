/** The overview (problems, what needs attention by cause, downloads, the last day), and the pages of all mailboxes and of one. */
import type { MailboxAct } from "../model/order.ts";
import { linkTo } from "../model/queries.ts";
import { shownFolder } from "../model/record.ts";
import {
  type Cause,
  causeKeyOf,
  describeState,
  type MailboxStatus,
  type Status,
  type TransferStatus,
} from "../model/status.ts";
import { renderChart } from "./chart.ts";
import { BUSY, renderEntries } from "./history.ts";
import {
  type Html,
  html,
  type PageColumn,
  type PageTime,
  renderDetails,
  renderDue,
  renderTable,
  renderTime,
} from "./html.ts";
import { linkToMailbox, renderHidden, renderTroubles } from "./layout.ts";
import type { PageContext, ShowPage } from "./port.ts";
import { addressOfStory, describeContent, renderBatches, renderRows } from "./transfers.ts";

/** Of each cause; the rest is one click away. */
const MAX_PER_CAUSE = 5;
const MAX_DOWNLOADING = 20;
const MAX_RECENT = 10;
const MAX_FAILING = 5;

export const showOverview: ShowPage = async (context) => {
  const { tools, response, status, time } = context;
  const day = await tools.journal.tally(response, "day", time.nowMs);
  const body = html`<section id="problems" data-live class="bare">${renderTroubles(status.troubles, time)}${renderBatches(context)}</section>
<section id="attention" data-live>${renderAttention(context)}</section>
<section id="downloading" data-live>${renderDownloading(context)}</section>
<section id="mailboxes" data-live>${renderMailboxCounts(context)}</section>
<section id="recent" data-live>${renderRecent(context)}</section>
<section id="day" data-live><h2>Last day</h2>${day === undefined ? BUSY : renderChart(day, "day", time)}<p><a href="history">History</a></p></section>`;
  return { body };
};

function renderAttention(context: PageContext): Html {
  const { tools, status } = context;
  const { totals, causes } = status;
  const heading = html`<h2>Needs attention <span class="count">${totals.attention}</span></h2>`;
  if (totals.attention === 0) return html`${heading}<p class="facts">Nothing needs a person.</p>`;
  const attention = tools.board.transfers().filter(({ group }) => group === "attention");
  const byCause = Map.groupBy(attention, causeKeyOf);
  return html`${heading}${causes.map((cause) => {
    const first = (byCause.get(causeKeyOf(cause)) ?? []).slice(0, MAX_PER_CAUSE);
    return renderCause(cause, renderRows(first, context, { hasHeading: true }), context);
  })}`;
}

function renderCause(cause: Cause, rows: Html, { time }: PageContext): Html {
  const { state, reason, count, firstExpires } = cause;
  const address = linkTo("transfers", { group: "attention", state, reason });
  const expires = firstExpires && html`, first expires ${renderTime(firstExpires, time)}`;
  const more =
    count > MAX_PER_CAUSE && html`<p><a href="${address}">Show all ${count}, and act on several</a></p>`;
  return html`<div class="cause"><h3><a href="${address}">${titleOf(cause)}</a> <span class="count">${count}${expires}</span></h3>${rows}${more}</div>`;
}

/** A quarantined transfer's reason is the code of a fault. */
function titleOf(cause: Pick<Cause, "state" | "reason" | "isExpiring">): string {
  const words = describeState(cause);
  const why = cause.state === "quarantined" && cause.reason !== undefined ? ` (${cause.reason})` : "";
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}${why}`;
}

function renderDownloading(context: PageContext): Html {
  const { downloading, totals } = context.status;
  const heading = html`<h2>Downloading <span class="count">${totals.downloading}</span></h2>`;
  if (totals.downloading === 0) return html`${heading}<p class="facts">Nothing is being downloaded.</p>`;
  const more =
    totals.downloading > MAX_DOWNLOADING &&
    html`<p><a href="transfers?group=downloading">Show all ${totals.downloading}</a></p>`;
  return html`${heading}${renderRows(downloading.slice(0, MAX_DOWNLOADING), context)}${more}`;
}

function renderMailboxCounts({ status: { mailboxes } }: PageContext): Html {
  const healths = Map.groupBy(mailboxes, healthOf);
  const counts = HEALTHS.map((health) => {
    const found = healths.get(health)?.length;
    return found && html`<li class="${TONES[health]}">${found} ${health}</li>`;
  });
  const failing = healths.get("failing") ?? [];
  const names = failing
    .slice(0, MAX_FAILING)
    .map(({ name }, at) => html`${at > 0 && ", "}${linkToMailbox(name)}`);
  const more = failing.length > MAX_FAILING && `, and ${failing.length - MAX_FAILING} more`;
  return html`<h2><a href="mailboxes">Mailboxes</a> <span class="count">${mailboxes.length}</span></h2><ul class="glance">${counts}</ul>${failing.length > 0 && html`<p class="bad">Failing: ${names}${more}</p>`}`;
}

/** The worst first. */
const TONES = { failing: "bad", "not polled yet": "plain", paused: "plain", fine: "good" } as const;

type Health = keyof typeof TONES;

const HEALTHS = Object.keys(TONES) as Health[];

function healthOf({ paused, trouble, lastSuccess }: MailboxStatus): Health {
  if (paused) return "paused";
  if (trouble !== undefined) return "failing";
  return lastSuccess === undefined ? "not polled yet" : "fine";
}

function renderRecent({ status: { recent }, time }: PageContext): Html {
  const heading = html`<h2>Recently delivered</h2>`;
  if (recent.length === 0) return html`${heading}<p class="facts">Nothing was delivered yet.</p>`;
  const items = recent
    .slice(0, MAX_RECENT)
    .map(
      (delivery) =>
        html`<li><span class="when">${renderTime(delivery.at, time)}</span> <a class="id" href="${addressOfStory(delivery)}">${delivery.trackingId}</a> <span class="who">${delivery.sender}</span> <span class="what">${describeContent(delivery)}</span> <span class="path">${shownFolder(delivery)}</span></li>`,
    );
  return html`${heading}<ul class="recent">${items}</ul><p><a href="history?state=delivered">All deliveries</a></p>`;
}

export const showMailboxes: ShowPage = ({ tools, status, time }) => ({
  body: renderMailboxes(status, tools.board.transfers(), time),
});

/** `open`: all open transfers. */
export function renderMailboxes(
  { mailboxes }: Status,
  open: readonly TransferStatus[],
  time: PageTime,
): Html {
  const byMailbox = Map.groupBy(open, ({ mailbox }) => mailbox);
  const linkToOpen = (mailbox: string, group?: "attention") => {
    const all = byMailbox.get(mailbox) ?? [];
    const { length } = all.filter((it) => group === undefined || it.group === group);
    return length === 0
      ? undefined
      : html`<a href="${linkTo("transfers", { mailbox, group })}">${length}</a>`;
  };
  const sorted = mailboxes.toSorted(
    (a, b) => HEALTHS.indexOf(healthOf(a)) - HEALTHS.indexOf(healthOf(b)) || (a.name < b.name ? -1 : 1),
  );
  const columns: PageColumn<MailboxStatus>[] = [
    { title: "Mailbox", isName: true, value: ({ name }) => linkToMailbox(name) },
    { title: "Health", value: renderHealth },
    { title: "Need attention", kind: "number", value: ({ name }) => linkToOpen(name, "attention") },
    { title: "Open", kind: "number", value: ({ name }) => linkToOpen(name) },
    { title: "Listed", kind: "number", value: ({ listed }) => listed },
    { title: "Last poll", value: ({ lastPoll }) => renderTime(lastPoll, time) },
    { title: "Next poll", value: ({ nextPoll }) => renderDue(nextPoll, time) },
  ];
  return html`<section id="list" data-live><h2>Mailboxes <span class="count">${mailboxes.length}</span></h2>${renderTable("Mailboxes", columns, sorted)}</section>`;
}

const MAX_OPEN = 20;
const MAX_PAST = 50;

export const showMailbox: ShowPage = async (context) => {
  const { tools, response, parameters, status, time } = context;
  const { board, journal } = tools;
  const title = parameters.get("name") ?? "";
  const mailbox = status.mailboxes.find(({ name }) => name === title);
  if (mailbox === undefined)
    return { code: 404, title, body: html`<section><p>There is no such mailbox.</p></section>` };
  const past = await journal.show(response, "transfers", { mailbox: title, limit: MAX_PAST });
  const troubles = status.troubles.filter(({ mailboxes = [] }) => mailboxes.includes(title));
  const open = board.transfers().filter((transfer) => transfer.mailbox === title);
  const all = linkTo("transfers", { mailbox: title });
  const rows = renderRows(open.slice(0, MAX_OPEN), context);
  const body = html`<section id="health" data-live>${renderTroubles(troubles, time)}${renderMailboxActions(mailbox, context)}${renderFacts(mailbox, time)}</section>
<section id="open" data-live><h2><a href="${all}">Open transfers</a> <span class="count">${open.length}</span></h2>${open.length === 0 ? html`<p class="facts">None.</p>` : rows}${open.length > MAX_OPEN && html`<p><a href="${all}">Show all ${open.length}</a></p>`}</section>
<section id="past" data-live><h2>Last transfers</h2>${past ? renderEntries(past, time) : BUSY}<p><a href="${linkTo("history", { mailbox: title })}">History of this mailbox</a></p></section>`;
  return { title, body };
};

function renderFacts(mailbox: MailboxStatus, time: PageTime): Html {
  const { listed } = mailbox;
  return renderDetails([
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
  ]);
}

/** `undefined` if the visitor may not act. */
function renderMailboxActions(
  { name, paused, pausedBy }: MailboxStatus,
  { visitor: { proof }, address: back }: PageContext,
): Html | undefined {
  if (proof === undefined) return undefined;
  const form = (action: MailboxAct, label: string) =>
    html`<form action="mailbox-actions" method="post" data-act>${renderHidden({ proof, back, action, mailbox: name })}<button>${label}</button></form>`;
  return html`<div class="actions">${!paused && form("poll", "Poll now")}${pausedBy === undefined ? form("pause", "Pause") : form("resume", "Resume")}</div>`;
}

function renderHealth(mailbox: MailboxStatus): Html {
  const health = healthOf(mailbox);
  const { trouble, pausedBy } = mailbox;
  return html`<span class="mark ${TONES[health]}">${health}${pausedBy && ` by ${pausedBy}`}</span>${trouble && `: ${trouble.message}`}`;
}
