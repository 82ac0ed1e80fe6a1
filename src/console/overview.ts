/** The overview: problems, transfers that need attention by cause, downloads, mailboxes, and the last day. */

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
import { type Html, html, type PageTime, renderTime } from "./html.ts";
import { linkToMailbox, renderTroubles } from "./layout.ts";
import { addressOfStory, describeContent, type RowContext, renderRows } from "./rows.ts";
import type { ConsoleTools, ShowPage } from "./tools.ts";
import { renderBatches } from "./transfers.ts";

/** Of each cause; the rest is one click away. */
const MAX_PER_CAUSE = 5;
const MAX_DOWNLOADING = 20;
const MAX_RECENT = 10;

export const JOURNAL_BUSY = html`<p class="facts">The journal is being read; reload in a moment.</p>`;

export const showOverview: ShowPage = async ({ board, journal, clock }, response) => {
  const day = await journal.tally(response, "day", clock.now());
  return {
    render: (status, context) =>
      html`<section id="problems" data-live class="bare">${renderTroubles(status.troubles, context.time)}${renderBatches(context)}</section>
<section id="attention" data-live>${renderAttention(status, board, context)}</section>
<section id="downloading" data-live>${renderDownloading(status, context)}</section>
<section id="mailboxes" data-live>${renderMailboxCounts(status)}</section>
<section id="recent" data-live>${renderRecent(status, context.time)}</section>
<section id="day" data-live><h2>Last day</h2>${day === undefined ? JOURNAL_BUSY : renderChart(day, "day", context.time)}<p><a href="history">History</a></p></section>`,
  };
};

function renderAttention(
  { totals, causes }: Status,
  board: ConsoleTools["board"],
  context: RowContext,
): Html {
  const heading = html`<h2>Needs attention <span class="count">${totals.attention}</span></h2>`;
  if (totals.attention === 0) return html`${heading}<p class="nothing">Nothing needs a person.</p>`;
  const attention = board.transfers().filter(({ group }) => group === "attention");
  const byCause = Map.groupBy(attention, causeKeyOf);
  return html`${heading}${causes.map((cause) => {
    const first = (byCause.get(causeKeyOf(cause)) ?? []).slice(0, MAX_PER_CAUSE);
    const withHelp = first.map((transfer) => board.withHelp(transfer));
    return renderCause(cause, withHelp, context);
  })}`;
}

function renderCause(cause: Cause, transfers: readonly TransferStatus[], context: RowContext): Html {
  const { state, reason, count, firstExpires } = cause;
  const address = linkTo("transfers", { group: "attention", state, reason });
  const expires =
    firstExpires === undefined ? undefined : html`, first expires ${renderTime(firstExpires, context.time)}`;
  const more =
    count > MAX_PER_CAUSE && html`<p><a href="${address}">Show all ${count}, and act on several</a></p>`;
  return html`<div class="cause"><h3><a href="${address}">${titleOf(cause)}</a> <span class="count">${count}${expires}</span></h3>${renderRows(transfers, { ...context, hasHeading: true })}${more}</div>`;
}

/** A quarantined transfer's reason is the code of a fault. */
function titleOf(cause: Pick<Cause, "state" | "reason" | "isExpiring">): string {
  const words = describeState(cause);
  const why = cause.state === "quarantined" && cause.reason !== undefined ? ` (${cause.reason})` : "";
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}${why}`;
}

function renderDownloading({ downloading, totals }: Status, context: RowContext): Html {
  const heading = html`<h2>Downloading <span class="count">${totals.downloading}</span></h2>`;
  if (totals.downloading === 0) return html`${heading}<p class="nothing">Nothing is being downloaded.</p>`;
  const more =
    totals.downloading > MAX_DOWNLOADING &&
    html`<p><a href="transfers?group=downloading">Show all ${totals.downloading}</a></p>`;
  return html`${heading}${renderRows(downloading.slice(0, MAX_DOWNLOADING), context)}${more}`;
}

function renderMailboxCounts({ mailboxes }: Status): Html {
  const healths = Map.groupBy(mailboxes, healthOf);
  const counts = HEALTHS.map((health) => {
    const found = healths.get(health)?.length;
    return found && html`<li class="${TONES[health]}">${found} ${health}</li>`;
  });
  const failing = healths.get("failing") ?? [];
  const names = failing.slice(0, 5).map(({ name }, at) => html`${at > 0 ? ", " : ""}${linkToMailbox(name)}`);
  const more = failing.length > 5 ? html`, and ${failing.length - 5} more` : undefined;
  return html`<h2><a href="mailboxes">Mailboxes</a> <span class="count">${mailboxes.length}</span></h2><ul class="glance">${counts}</ul>${failing.length > 0 ? html`<p class="bad">Failing: ${names}${more}</p>` : undefined}`;
}

/** The worst first. */
export const TONES = { failing: "bad", "not polled yet": "plain", paused: "plain", fine: "good" } as const;

type Health = keyof typeof TONES;

export const HEALTHS = Object.keys(TONES) as Health[];

export function healthOf({ paused, trouble, lastSuccess }: MailboxStatus): Health {
  if (paused) return "paused";
  if (trouble !== undefined) return "failing";
  return lastSuccess === undefined ? "not polled yet" : "fine";
}

function renderRecent({ recent }: Status, time: PageTime): Html {
  const heading = html`<h2>Recently delivered</h2>`;
  if (recent.length === 0) return html`${heading}<p class="nothing">Nothing was delivered yet.</p>`;
  return html`${heading}<ul class="recent">${recent
    .slice(0, MAX_RECENT)
    .map(
      (delivery) =>
        html`<li><span class="when">${renderTime(delivery.at, time)}</span> <a class="id" href="${addressOfStory(delivery)}">${delivery.trackingId}</a> <span class="who">${delivery.sender}</span> <span class="what">${describeContent(delivery)}</span> <span class="path">${shownFolder(delivery)}</span></li>`,
    )}</ul><p><a href="history?state=delivered">All deliveries</a></p>`;
}
