/** The sections of the console that list transfers, with forms that need no script. */
import { formatBytes, formatSeconds } from "../base/phrases.ts";
import type { Action } from "../model/order.ts";
import { type Delivery, describeState, type Status, type TransferStatus } from "../model/status.ts";
import { type Html, html, type PageColumn, renderTable, renderTime } from "./html.ts";

export interface Visitor {
  /** Actions need a token. */
  readonly canSignIn: boolean;
  /** The proof in each form of a signed-in visitor. */
  readonly proof: string | undefined;
}

/** Shown before the button. */
const WARNINGS: Readonly<Partial<Record<Action, string>>> = {
  release: "It failed verification. It is delivered marked as not verified.",
  discard: "Its content is deleted, and it is not downloaded again.",
};
const LABELS: Readonly<Record<Action, string>> = {
  retry: "Try now",
  release: "Release",
  discard: "Discard",
  redeliver: "Deliver again",
};

export function renderAttention({ attention, totals }: Status, nowMs: number, { proof }: Visitor): Html {
  if (totals.attention === 0) return html`<h2>Needs attention</h2><p class="nothing">Nothing.</p>`;
  return html`<h2>Needs attention <span class="count">${totals.attention}</span></h2>${renderCut(attention, totals.attention)}
<ul class="cards">${attention.map(
    (transfer) => html`<li class="card ${transfer.state}">
<h3>${titleOf(transfer)}</h3>
<p class="who"><b>${transfer.sender || "unknown sender"}</b> → ${transfer.mailbox}</p>
<p class="id">${transfer.trackingId}</p>
${transfer.message === undefined ? undefined : html`<p>${transfer.message}</p>`}
${transfer.keptIn === undefined ? undefined : html`<p>Its content is kept in <span class="path">${transfer.keptIn}</span></p>`}
${proof === undefined ? renderCommands(transfer) : renderForms(transfer, proof)}
<p class="since">${renderTime(transfer.since, nowMs)}${
      transfer.expires === undefined ? undefined : html` · expires ${renderTime(transfer.expires, nowMs)}`
    }</p>
</li>`,
  )}</ul>`;
}

export function renderInHand({ inHand, totals }: Status): Html {
  if (inHand.length === 0) return html`<h2>Downloading</h2><p class="nothing">Nothing.</p>`;
  return html`<h2>Downloading <span class="count">${totals.inHand}</span></h2>${renderCut(inHand, totals.inHand)}
<ul class="rows">${inHand.map(({ trackingId, mailbox, sender, progress }) => {
    const { doneBytes = 0, totalBytes = 0, bytesPerSecond = 0, secondsLeft } = progress ?? {};
    const words = [
      totalBytes > 0 ? `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}` : "opening",
      bytesPerSecond > 0 ? `${formatBytes(bytesPerSecond)}/s` : undefined,
      secondsLeft === undefined ? undefined : `${formatSeconds(secondsLeft)} left`,
    ].filter((word) => word !== undefined);
    return html`<li>
<p class="who"><b>${sender || "unknown sender"}</b> → ${mailbox}</p><p class="id">${trackingId}</p>
<progress max="${Math.max(totalBytes, 1)}" value="${doneBytes}" aria-label="progress of ${trackingId}"></progress>
<p class="facts">${words.join(" · ")}</p>
</li>`;
  })}</ul>`;
}

export function renderQueued({ queued, totals }: Status, nowMs: number): Html {
  if (totals.queued === 0) return html`<h2>Queued</h2><p class="nothing">Nothing.</p>`;
  const columns: PageColumn<TransferStatus>[] = [
    { title: "Sender", value: ({ sender }) => sender },
    { title: "Mailbox", value: ({ mailbox }) => mailbox },
    { title: "Transfer", kind: "id", value: ({ trackingId }) => trackingId },
    { title: "Why", value: (transfer) => renderWhy(transfer, nowMs) },
    { title: "Expires", value: ({ expires }) => renderTime(expires, nowMs) },
  ];
  return html`<h2>Queued <span class="count">${totals.queued}</span></h2>${renderCut(queued, totals.queued)}
${renderTable("Queued", columns, queued)}`;
}

export function renderRecent({ recent }: Status, nowMs: number): Html {
  if (recent.length === 0) return html`<h2>Recently delivered</h2><p class="nothing">Nothing yet.</p>`;
  const columns: PageColumn<Delivery>[] = [
    { title: "When", value: ({ at }) => renderTime(at, nowMs) },
    { title: "Sender", value: ({ sender }) => sender },
    { title: "Folder", kind: "path", value: ({ folder }) => folder },
    {
      title: "Took",
      value: ({ tookSeconds }) => (tookSeconds === undefined ? undefined : formatSeconds(tookSeconds)),
    },
  ];
  return html`<h2>Recently delivered</h2>
${renderTable("Recently delivered", columns, recent.slice(0, 20))}`;
}

function renderWhy(transfer: TransferStatus, nowMs: number): Html {
  const { until, message } = transfer;
  return html`${titleOf(transfer)}${until === undefined ? undefined : html`, next try ${renderTime(until, nowMs)}`}${
    message === undefined ? undefined : html`<br><span class="facts">${message}</span>`
  }`;
}

/** A note if the list is cut. */
function renderCut(listed: readonly unknown[], total: number): Html | undefined {
  return total > listed.length
    ? html`<p class="facts">The first ${listed.length} of ${total} are shown.</p>`
    : undefined;
}

function titleOf(transfer: TransferStatus): string {
  const words = describeState(transfer);
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

function renderCommands({ commands = [] }: TransferStatus): Html {
  return html`${commands.map((command) => html`<p><code>${command}</code></p>`)}`;
}

function renderForms(transfer: TransferStatus, proof: string): Html {
  const { state, reason, noAttemptsLeft } = transfer;
  const canSupply = reason === "password" && noAttemptsLeft !== true;
  if (reason === "not-picked-up") return html``;
  if (state === "gone")
    return html`<div class="actions">${renderForm("discard", "Acknowledge", transfer, proof)}</div>`;
  if (reason === "handoff") return html`<div class="actions">${renderAction("retry", transfer, proof)}</div>`;
  const actions: Action[] = state === "quarantined" ? ["retry", "release", "discard"] : ["retry", "discard"];
  return html`<div class="actions">${canSupply ? renderPassword(transfer, proof) : undefined}${actions.map(
    (action) => renderAction(action, transfer, proof),
  )}</div>`;
}

function renderPassword(transfer: TransferStatus, proof: string): Html {
  return html`<form action="api/actions" method="post">${hidden("password", transfer, proof)}<label>Password of ${transfer.trackingId} <input type="password" name="password" autocomplete="off" required></label> <button>Supply</button></form>`;
}

function renderAction(action: Action, transfer: TransferStatus, proof: string): Html {
  const warning = WARNINGS[action];
  const form = renderForm(action, LABELS[action], transfer, proof);
  if (warning === undefined) return form;
  return html`<details><summary>${LABELS[action]}…</summary><p>${warning}</p>${form}</details>`;
}

function renderForm(action: Action, label: string, transfer: TransferStatus, proof: string): Html {
  return html`<form action="api/actions" method="post">${hidden(action, transfer, proof)}<button>${label}</button></form>`;
}

function hidden(action: string, { mailbox, trackingId }: TransferStatus, proof: string): Html {
  const fields = { action, mailbox, trackingId, proof, page: "yes" };
  return html`${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`;
}
