/** The pages of all mailboxes, and of one. */
import type { MailboxAct } from "../model/order.ts";
import { linkTo } from "../model/queries.ts";
import type { MailboxStatus, Status, TransferStatus } from "../model/status.ts";
import { renderEntries } from "./history.ts";
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
import { HEALTHS, healthOf, JOURNAL_BUSY, TONES } from "./overview.ts";
import type { PageContext, ShowPage } from "./port.ts";
import { renderRows } from "./transfers.ts";

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
<section id="open" data-live><h2><a href="${all}">Open transfers</a> <span class="count">${open.length}</span></h2>${open.length === 0 ? html`<p class="nothing">None.</p>` : rows}${open.length > MAX_OPEN && html`<p><a href="${all}">Show all ${open.length}</a></p>`}</section>
<section id="past" data-live><h2>Last transfers</h2>${past ? renderEntries(past, time) : JOURNAL_BUSY}<p><a href="${linkTo("history", { mailbox: title })}">History of this mailbox</a></p></section>`;
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
