/** Transfers as expandable rows, with the actions that apply to each. */
import { createHash } from "node:crypto";
import { formatBytes, formatSeconds, formatSize } from "../base/phrases.ts";
import { ACT_TEXTS } from "../model/actions.ts";
import type { TransferAct } from "../model/order.ts";
import { linkTo } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import { describeState, type TransferStatus } from "../model/status.ts";
import { type Html, html, type PageTime, renderDue, renderTime } from "./html.ts";
import { renderHidden, type Visitor } from "./layout.ts";
import type { Outcomes } from "./outcomes.ts";

export interface RowContext {
  readonly time: PageTime;
  readonly visitor: Visitor;
  readonly outcomes: Outcomes;
  /** The address to return to after an action. */
  readonly back: string;
  /** Each row then names its mailbox. */
  readonly hasSeveralMailboxes: boolean;
  /** All rows have one cause, which the heading names. */
  readonly hasHeading?: boolean;
  /** The form that the row's checkbox belongs to; without one there is no checkbox. */
  readonly selection?: string;
}

const DAY_MS = 24 * 60 * 60_000;

export function renderRows(transfers: readonly TransferStatus[], context: RowContext): Html {
  return html`<ul class="rows">${transfers.map((transfer) => renderRow(transfer, context))}</ul>`;
}

function renderRow(transfer: TransferStatus, context: RowContext): Html {
  const { time, hasSeveralMailboxes, hasHeading = false, selection, visitor } = context;
  const { trackingId, sender, mailbox, state, expires, subject, progress } = transfer;
  const words = hasHeading ? "" : describeState(transfer);
  const isSoon = expires !== undefined && Date.parse(expires) - time.nowMs < DAY_MS;
  const id = rowId(transfer);
  const box =
    selection === undefined
      ? undefined
      : html`<input type="checkbox" form="${selection}" name="t" value="${formatKey(transfer)}" id="pick-${id}" aria-label="Select ${trackingId}">`;
  return html`<li class="row ${state}${hasHeading ? " headed" : ""}" id="${id}">${box}<details id="open-${id}"><summary><span class="id">${trackingId}</span> <span class="who">${sender}${hasSeveralMailboxes ? html` → ${mailbox}` : undefined}</span> <span class="what">${words}</span> <span class="about">${describeContent(transfer)}</span> <span class="when${isSoon ? " soon" : ""}">${expires === undefined ? undefined : html`expires ${renderTime(expires, time)}`}</span></summary>
<div class="inside">${subject === undefined ? undefined : html`<p><strong>${subject}</strong></p>`}${renderFacts(transfer, time)}${visitor.proof === undefined ? renderCommands(transfer.commands) : renderActions(transfer, transfer.actions ?? [], context)}<p><a href="${addressOfStory(transfer)}">Whole story</a></p></div></details>${progress === undefined ? undefined : renderProgress(transfer)}${renderOutcome(transfer, context)}</li>
`;
}

/** A form for each action; `undefined` without actions, or if the visitor may not act. */
export function renderActions(
  transfer: TransferKey & Pick<TransferStatus, "state">,
  actions: readonly TransferAct[],
  { visitor, back }: Pick<RowContext, "visitor" | "back">,
): Html | undefined {
  const { proof } = visitor;
  if (proof === undefined || actions.length === 0) return undefined;
  const form = (action: TransferAct, inside?: Html) =>
    html`<form action="actions" method="post" data-act>${renderHidden({ proof, page: "yes", back, action, t: formatKey(transfer) })}${inside}<button>${labelOf(action, transfer)}</button></form>`;
  return html`<div class="actions">${actions.map((action) => {
    if (action === "password") {
      return form(
        action,
        html`<label>Password of ${transfer.trackingId} <input type="password" name="password" autocomplete="off" required></label>`,
      );
    }
    const warning = transfer.state === "gone" ? undefined : ACT_TEXTS[action].warning;
    if (warning === undefined) return form(action);
    return html`<details id="ask-${action}-${rowId(transfer)}" class="ask"><summary>${labelOf(action, transfer)}…</summary><p>${warning}</p>${form(action, renderHidden({ confirm: "yes" }))}</details>`;
  })}</div>`;
}

function labelOf(action: TransferAct, { state }: Pick<TransferStatus, "state">): string {
  return action === "discard" && state === "gone" ? "Acknowledge" : ACT_TEXTS[action].label;
}

export function renderCommands(commands: readonly string[] = []): Html {
  return html`${commands.map(
    (command) =>
      html`<p class="command"><code>${command}</code> <button type="button" class="copy" data-copy="${command}" hidden>Copy</button></p>`,
  )}`;
}

/** The result of the last action on this transfer, beside it. */
export function renderOutcome(
  key: TransferKey,
  { outcomes, time }: Pick<RowContext, "outcomes" | "time">,
): Html | undefined {
  const last = outcomes.of(key);
  if (last === undefined) return undefined;
  const { action, by, at, result, text } = last;
  return html`<p class="outcome ${result}">${ACT_TEXTS[action].label} by ${by.who}, ${renderTime(at, time)}: ${text}</p>`;
}

function renderFacts({ message, until, since, keptIn, mailbox }: TransferStatus, time: PageTime): Html {
  return html`${message === undefined ? undefined : html`<p>${message}</p>`}<p class="facts">${mailbox} · since ${renderTime(since, time)}${
    until === undefined ? undefined : html` · next try ${renderDue(until, time)}`
  }</p>${keptIn === undefined ? undefined : html`<p class="facts">Its content is kept in <span class="path">${keptIn}</span></p>`}`;
}

function renderProgress({ trackingId, progress }: TransferStatus): Html | undefined {
  if (progress === undefined) return undefined;
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

/** Names a transfer in a form. */
export function formatKey({ mailbox, trackingId }: TransferKey): string {
  return JSON.stringify([mailbox, trackingId]);
}

/** The reverse of `formatKey`; `undefined` for any other text. */
export function parseKey(text: string): TransferKey | undefined {
  try {
    const [mailbox, trackingId] = JSON.parse(text) as unknown[];
    return typeof mailbox === "string" && typeof trackingId === "string"
      ? { mailbox, trackingId }
      : undefined;
  } catch {
    return undefined;
  }
}

/** A name for the row that is valid in HTML, whatever the sender wrote. */
function rowId({ mailbox, trackingId }: TransferKey): string {
  return `t${createHash("sha256").update(`${mailbox}\0${trackingId}`).digest("hex").slice(0, 12)}`;
}
