/** Transfers as expandable rows with their actions, and the page that lists, filters and acts on open ones. */
import { hash } from "node:crypto";
import { formatBytes, formatCount, formatSeconds, formatSize } from "../base/phrases.ts";
import { ACT_TEXTS } from "../model/actions.ts";
import { TRANSFER_ACTS, type TransferAct } from "../model/order.ts";
import { DEFAULT_SIZE, ListQueryShape, linkTo, parseQuery } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import {
  describeState,
  type OpenList,
  type Progress,
  TRANSFER_GROUPS,
  type TransferStatus,
} from "../model/status.ts";
import { listOpen } from "../operate/list.ts";
import { type Html, html, type PageTime, renderClock, renderDue, renderTime } from "./html.ts";
import { type Choices, renderFilterForm, renderHidden } from "./layout.ts";
import { type Batch, keyOf, summarize } from "./outcomes.ts";
import { noticeOf, type PageContext, type ShowPage } from "./port.ts";

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

const MAX_ROWS = 500;
/** Transfers that a question about several names. */
const MAX_NAMED = 10;
const MAX_BATCHES = 5;

export const showTransfers: ShowPage = (context) => {
  const { tools, parameters, time, visitor } = context;
  const all = tools.board.transfers();
  const parsed = parseQuery(ListQueryShape, parameters, time.nowMs);
  const wanted = typeof parsed === "string" ? { page: 1, size: DEFAULT_SIZE } : parsed;
  const query = { ...wanted, size: Math.min(wanted.size, MAX_ROWS) };
  const found = listOpen(all, query);
  const canAct = visitor.proof !== undefined && found.total > 0;
  const rows = renderRows(found.transfers, context, { isSelectable: canAct });
  const heading =
    found.total === 0
      ? "No open transfer matches"
      : html`Open transfers <span class="count">${found.total}</span>`;
  const body = html`<section class="bare">${renderFilters(all, context)}</section>
<section id="batches" data-live class="bare">${renderBatches(context)}</section>
<section id="found" data-live><h2>${heading}</h2>
${canAct && renderSeveral(found, context)}${rows}${found.pages > 1 && renderPager(found, parameters)}
${found.total === 0 && html`<p class="facts">Transfers that were delivered are in the <a href="history">history</a>.</p>`}</section>`;
  return { ...noticeOf(parsed), body };
};

function renderFilters(all: readonly TransferStatus[], { status, parameters }: PageContext): Html {
  const groups: Choices = [["", "all open"], ...TRANSFER_GROUPS.map((it) => [it, GROUP_TITLES[it]] as const)];
  return renderFilterForm({
    page: "transfers",
    fields: Object.fromEntries(parameters),
    reasons: [...new Set(all.flatMap(({ reason }) => reason ?? []))].toSorted(),
    mailboxes: status.mailboxes.map(({ name }) => name),
    more: {
      group: { title: "Show", choices: groups },
      sort: { title: "Order", choices: SORT_TITLES },
    },
  });
}

/** Actions on the selected transfers, or on all that match. */
function renderSeveral(
  found: OpenList,
  { visitor: { proof = "" }, address: back, parameters }: PageContext,
): Html {
  const everything =
    found.total > found.transfers.length &&
    html`<label class="check"><input type="checkbox" form="${FORM}" name="all" value="yes" id="pick-everything"> All ${found.total} that match, not only this page</label>`;
  const button = (action: TransferAct) =>
    html`<button form="${FORM}" name="action" value="${action}">${ACT_TEXTS[action].label}</button>`;
  return html`<form id="${FORM}" action="actions" method="post" data-act>${renderHidden({ proof, back, filter: String(parameters) })}</form>
<div class="several"><label class="check"><input type="checkbox" id="pick-page" data-pick-page> <span>Select this page</span></label>${everything}
<div class="buttons">${TRANSFER_ACTS.map(button)}</div></div>`;
}

function renderPager({ page, pages }: OpenList, parameters: URLSearchParams): Html {
  const link = (to: number, words: string) =>
    to < 1 || to > pages || to === page
      ? html`<span class="facts">${words}</span>`
      : html`<a href="${linkTo("transfers", { ...Object.fromEntries(parameters), page: to })}">${words}</a>`;
  return html`<nav class="pager" aria-label="Pages of the list">${link(1, "First")} ${link(page - 1, "Previous")} <span>Page ${page} of ${pages}</span> ${link(page + 1, "Next")} ${link(pages, "Last")}</nav>`;
}

const PASSWORD = html`<label>Their password <input type="password" name="password" autocomplete="off" required></label> `;

/** Asks for confirmation before an action on several transfers that has a warning. */
export function renderConfirmation(
  action: TransferAct,
  transfers: readonly TransferStatus[],
  fields: Readonly<Record<string, string>>,
  keys: readonly string[],
): Html {
  const shown = transfers.slice(0, MAX_NAMED);
  const { label, warning } = ACT_TEXTS[action];
  const title = `${label}: ${formatCount(keys.length, "transfer", "transfers")}`;
  const more = keys.length - shown.length;
  return html`<section><h2>${title}</h2><p>${warning}</p>
<ul class="names">${shown.map((transfer) => html`<li><span class="id">${transfer.trackingId}</span> ${transfer.sender}: ${describeState(transfer)}</li>`)}${more > 0 && html`<li>and ${more} more</li>`}</ul>
<form action="actions" method="post">${renderHidden({ ...fields, action, confirm: "yes" })}${keys.map((t) => renderHidden({ t }))}${action === "password" && PASSWORD}<button>${title}</button> <a href="${fields["back"] ?? "transfers"}">Do nothing</a></form></section>`;
}

/** The outcomes of recent actions. */
export function renderBatches({ tools, time }: PageContext): Html | undefined {
  const shown = tools.outcomes.recent().filter(({ outcomes }) => outcomes.size > 0);
  if (shown.length === 0) return undefined;
  const items = shown.slice(0, MAX_BATCHES).map((batch) => renderBatch(batch, time));
  return html`<div class="notice"><h3>Recent actions</h3><ul class="names">${items}</ul></div>`;
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

interface RowOptions {
  /** All rows have one cause, which their heading names. */
  readonly hasHeading?: boolean;
  /** Each row has a checkbox. */
  readonly isSelectable?: boolean;
}

const DAY_MS = 24 * 60 * 60_000;

export function renderRows(
  transfers: readonly TransferStatus[],
  context: PageContext,
  options: RowOptions = {},
): Html {
  return html`<ul class="rows">${transfers.map((transfer) => renderRow(transfer, context, options))}</ul>`;
}

function renderRow(found: TransferStatus, context: PageContext, options: RowOptions): Html {
  const { tools, time, status, visitor } = context;
  const transfer = tools.board.withHelp(found);
  const { hasHeading = false, isSelectable = false } = options;
  const { trackingId, sender, mailbox, state, expires, subject, progress, commands } = transfer;
  const isSoon = expires !== undefined && Date.parse(expires) - time.nowMs < DAY_MS;
  const id = rowId(transfer);
  const box =
    isSelectable &&
    html`<input type="checkbox" form="${FORM}" name="t" value="${keyOf(transfer)}" id="pick-${id}" aria-label="Select ${trackingId}">`;
  return html`<li class="row ${state}${hasHeading && " headed"}" id="${id}">${box}<details id="open-${id}"><summary><span class="id">${trackingId}</span> <span class="who">${sender}${status.mailboxes.length > 1 && html` → ${mailbox}`}</span> <span class="what">${!hasHeading && describeState(transfer)}</span> <span class="about">${describeContent(transfer)}</span> <span class="when${isSoon && " soon"}">${expires && html`expires ${renderTime(expires, time)}`}</span></summary>
<div class="inside">${subject && html`<p><strong>${subject}</strong></p>`}${renderFacts(transfer, time)}${visitor.proof === undefined ? renderCommands(commands) : renderActions(transfer, transfer.actions ?? [], context)}<p><a href="${addressOfStory(transfer)}">Whole story</a></p></div></details>${progress && renderProgress(trackingId, progress)}${renderOutcome(transfer, context)}</li>
`;
}

/** A form for each action; `undefined` without actions, or if the visitor may not act. */
export function renderActions(
  transfer: TransferKey & Pick<TransferStatus, "state">,
  actions: readonly TransferAct[],
  { visitor: { proof }, address: back }: PageContext,
): Html | undefined {
  if (proof === undefined || actions.length === 0) return undefined;
  const isGone = transfer.state === "gone";
  const render = (action: TransferAct) => {
    const { warning } = ACT_TEXTS[action];
    const label = isGone && action === "discard" ? "Acknowledge" : ACT_TEXTS[action].label;
    // To type a password is confirmation enough, and what is gone has nothing to lose.
    const needsConfirmation = action !== "password" && !isGone && warning !== undefined;
    const password =
      action === "password" &&
      html`<label>Password of ${transfer.trackingId} <input type="password" name="password" autocomplete="off" required></label>`;
    const confirm = needsConfirmation && renderHidden({ confirm: "yes" });
    const form = html`<form action="actions" method="post" data-act>${renderHidden({ proof, back, action, t: keyOf(transfer) })}${password}${confirm}<button>${label}</button></form>`;
    if (!needsConfirmation) return form;
    return html`<details id="ask-${action}-${rowId(transfer)}" class="ask"><summary>${label}…</summary><p>${warning}</p>${form}</details>`;
  };
  return html`<div class="actions">${actions.map(render)}</div>`;
}

export function renderCommands(commands: readonly string[] = []): Html {
  return html`${commands.map((command) => html`<p><code>${command}</code></p>`)}`;
}

/** The result of the last action on this transfer, beside it. */
export function renderOutcome(key: TransferKey, { tools, time }: PageContext): Html | undefined {
  const last = tools.outcomes.of(key);
  if (last === undefined) return undefined;
  const { action, by, at, result, text } = last;
  return html`<p class="outcome ${result}">${ACT_TEXTS[action].label} by ${by.who}, ${renderTime(at, time)}: ${text}</p>`;
}

function renderFacts({ message, until, since, keptIn, mailbox }: TransferStatus, time: PageTime): Html {
  return html`${message && html`<p>${message}</p>`}<p class="facts">${mailbox} · since ${renderTime(since, time)}${until && html` · next try ${renderDue(until, time)}`}</p>${keptIn && html`<p class="facts">Its content is kept in <span class="path">${keptIn}</span></p>`}`;
}

function renderProgress(trackingId: string, progress: Progress): Html {
  const { doneBytes, totalBytes, bytesPerSecond, secondsLeft } = progress;
  const left = secondsLeft === undefined ? "" : `, ${formatSeconds(secondsLeft)} left`;
  return html`<div class="progress"><progress max="${Math.max(totalBytes, 1)}" value="${doneBytes}" aria-label="Progress of ${trackingId}"></progress> <span class="facts">${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}, ${formatBytes(bytesPerSecond)}/s${left}</span></div>`;
}

/** The subject and the size, as far as they are known. */
export function describeContent(of: Pick<TransferStatus, "subject" | "files" | "bytes">): string {
  return [of.subject, formatSize(of)].filter(Boolean).join(" · ");
}

export function addressOfStory({ mailbox, trackingId }: TransferKey): string {
  return linkTo("transfer", { mailbox, trackingId });
}

/** A name for the row that is valid in HTML, whatever the sender wrote. */
function rowId(key: TransferKey): string {
  return `t${hash("sha256", keyOf(key)).slice(0, 12)}`;
}
