/** The list of open transfers: filters, pages, and actions on several of them. */
import { formatCount } from "../base/phrases.ts";
import { ACT_TEXTS } from "../model/actions.ts";
import { TRANSFER_ACTS, type TransferAct } from "../model/order.ts";
import { DEFAULT_SIZE, ListQueryShape, linkTo, type Parsed, parseQuery } from "../model/queries.ts";
import {
  describeState,
  type OpenList,
  type Status,
  TRANSFER_GROUPS,
  type TransferStatus,
} from "../model/status.ts";
import { listOpen } from "../operate/list.ts";
import { type Choices, renderFilterForm } from "./filter-form.ts";
import { type Html, html, type PageTime, renderClock } from "./html.ts";
import { renderHidden } from "./layout.ts";
import { type Batch, summarize } from "./outcomes.ts";
import { type RowContext, renderRows } from "./rows.ts";
import { noticeOf, type ShowPage } from "./tools.ts";

/** What the page shows. */
type PageQuery = Parsed<typeof ListQueryShape>;

/** Associates checkboxes with the form that acts on them. */
const FORM = "several";

const GROUP_TITLES = { attention: "needs attention", downloading: "downloading", queued: "queued" } as const;

const SORT_TITLES: Choices = [
  ["", "first to expire"],
  ["newest", "last change"],
  ["oldest", "longest unchanged"],
  ["sender", "sender"],
  ["size", "largest"],
];

/** Open transfers on a page. */
const MAX_ROWS = 500;

export const showTransfers: ShowPage = ({ board, clock }, _response, parameters) => {
  const all = board.transfers();
  const parsed = parseQuery(ListQueryShape, parameters, clock.now());
  const wanted = typeof parsed === "string" ? { page: 1, size: DEFAULT_SIZE } : parsed;
  const query = { ...wanted, size: Math.min(wanted.size, MAX_ROWS) };
  const found = listOpen(all, query);
  const withHelp = found.transfers.map((transfer) => board.withHelp(transfer));
  const reasons = [...new Set(all.flatMap(({ reason }) => reason ?? []))].toSorted();
  return {
    ...noticeOf(parsed),
    render(status, context) {
      const canAct = context.visitor.proof !== undefined && found.total > 0;
      const rows = renderRows(withHelp, canAct ? { ...context, selection: FORM } : context);
      return html`<section class="bare">${renderFilters(query, reasons, status)}</section>
<section id="batches" data-live class="bare">${renderBatches(context)}</section>
<section id="found" data-live><h2>${found.total === 0 ? "No open transfer matches" : "Open transfers"} <span class="count">${found.total === 0 ? "" : found.total}</span></h2>
${canAct ? renderSeveral(query, found, context) : undefined}${rows}${renderPager(query, found)}
${found.total === 0 ? html`<p class="facts">Transfers that were delivered are in the <a href="history">history</a>.</p>` : undefined}</section>`;
    },
  };
};

function renderFilters(query: PageQuery, reasons: readonly string[], { mailboxes }: Status): Html {
  const groups: Choices = [["", "all open"], ...TRANSFER_GROUPS.map((it) => [it, GROUP_TITLES[it]] as const)];
  return renderFilterForm({
    page: "transfers",
    fields: { ...query, sort: query.sort === "urgency" ? undefined : query.sort },
    reasons,
    mailboxes: mailboxes.map(({ name }) => name),
    more: {
      group: { title: "Show", choices: groups },
      sort: { title: "Order", choices: SORT_TITLES },
    },
  });
}

/** Actions on the selected transfers, or on all that match. */
function renderSeveral(query: PageQuery, found: OpenList, { visitor, back }: RowContext): Html {
  const { proof = "" } = visitor;
  const filter = linkTo("", filterIn(query)).slice(1);
  const everything =
    found.total > found.transfers.length &&
    html`<label class="check"><input type="checkbox" form="${FORM}" name="all" value="yes" id="pick-everything"> All ${found.total} that match, not only this page</label>`;
  const button = (action: TransferAct) =>
    html`<button form="${FORM}" name="action" value="${action}">${ACT_TEXTS[action].label}</button>`;
  return html`<form id="${FORM}" action="actions" method="post" data-act>${renderHidden({ proof, page: "yes", back, filter })}</form>
<div class="several"><label class="check"><input type="checkbox" id="pick-page" data-pick-page hidden> <span>Select this page</span></label>${everything}
<div class="buttons">${TRANSFER_ACTS.map(button)}</div></div>`;
}

function renderPager(query: PageQuery, { page, pages }: OpenList): Html | undefined {
  if (pages === 1) return undefined;
  const link = (to: number, words: string) =>
    to < 1 || to > pages || to === page
      ? html`<span class="facts">${words}</span>`
      : html`<a href="${linkTo("transfers", parametersOf({ ...query, page: to }))}">${words}</a>`;
  return html`<nav class="pager" aria-label="Pages of the list">${link(1, "First")} ${link(page - 1, "Previous")} <span>Page ${page} of ${pages}</span> ${link(page + 1, "Next")} ${link(pages, "Last")}</nav>`;
}

/** The parameters that choose transfers. */
function filterIn({ group, state, reason, mailbox, sender, text, since, until }: PageQuery) {
  return { group, state, reason, mailbox, sender, text, since, until };
}

/** The parameters of a query that differ from their defaults. */
export function parametersOf(query: PageQuery) {
  const { sort, page, size } = query;
  return {
    ...filterIn(query),
    sort: sort === "urgency" ? undefined : sort,
    size: size === DEFAULT_SIZE ? undefined : size,
    page: page === 1 ? undefined : page,
  };
}

const PASSWORD = html`<label>Their password <input type="password" name="password" autocomplete="off" required></label> `;

/** Asks for confirmation before an action on several transfers that has a warning. */
export function renderConfirmation(
  action: TransferAct,
  transfers: readonly TransferStatus[],
  fields: Readonly<Record<string, string>>,
  keys: readonly string[],
): Html {
  const shown = transfers.slice(0, 10);
  const many = formatCount(keys.length, "transfer", "transfers");
  return html`<section><h2>${ACT_TEXTS[action].label}: ${many}</h2><p>${ACT_TEXTS[action].warning ?? ""}</p>
<ul class="names">${shown.map((transfer) => html`<li><span class="id">${transfer.trackingId}</span> ${transfer.sender}: ${describeState(transfer)}</li>`)}${keys.length > shown.length ? html`<li>and ${keys.length - shown.length} more</li>` : undefined}</ul>
<form action="actions" method="post">${renderHidden({ ...fields, action, confirm: "yes" })}${keys.map((key) => renderHidden({ t: key }))}${action === "password" ? PASSWORD : undefined}<button>${ACT_TEXTS[action].label}: ${many}</button> <a href="${fields["back"] ?? "transfers"}">Do nothing</a></form></section>`;
}

/** The outcomes of recent actions. */
export function renderBatches({ outcomes, time }: RowContext): Html | undefined {
  const shown = outcomes
    .recent()
    .filter((batch) => batch.outcomes.size > 0)
    .slice(0, 5);
  if (shown.length === 0) return undefined;
  return html`<div class="notice"><h3>Recent actions</h3><ul class="names">${shown.map((batch) => renderBatch(batch, time))}</ul></div>`;
}

function renderBatch(batch: Batch, time: PageTime): Html {
  const { action, by, at, outcomes } = batch;
  const [first] = outcomes.values();
  const text =
    outcomes.size === 1 && first !== undefined
      ? `${first.trackingId}: ${first.text}`
      : `${outcomes.size} transfers: ${summarize(batch)}`;
  return html`<li>${renderClock(at, time)} ${ACT_TEXTS[action].label} by ${by.who}: ${text}</li>`;
}
