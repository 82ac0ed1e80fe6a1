/** The parts of the status page that list transfers. */
import { formatBytes, formatSeconds, formatWhen } from "../base/phrases.ts";
import { type Delivery, describeStanding, type Status, type TransferStatus } from "../model/status.ts";
import { type Html, html } from "./html.ts";
import { renderForms } from "./page-forms.ts";
import { type PageColumn, renderTable } from "./page-table.ts";

/** Who looks at the page. */
export interface Visitor {
  /** It takes a token to act. */
  readonly canSignIn: boolean;
  /** What forms have to carry, of one who has signed in. */
  readonly proof: string | undefined;
}

export function renderAttention({ attention, totals }: Status, nowMs: number, { proof }: Visitor): Html {
  if (totals.attention === 0) return html`<h2>Needs attention</h2><p class="nothing">Nothing.</p>`;
  return html`<h2>Needs attention <span class="count">${totals.attention}</span></h2>${renderMore(attention, totals.attention)}
<ul class="cards">${attention.map(
    (transfer) => html`<li class="card ${transfer.state}">
<h3>${titleOf(transfer)}</h3>
<p class="who"><b>${transfer.sender || "unknown sender"}</b> → ${transfer.mailbox}</p>
<p class="id">${transfer.trackingId}</p>
${transfer.message === undefined ? undefined : html`<p>${transfer.message}</p>`}
${transfer.keptIn === undefined ? undefined : html`<p>What was received of it is kept in <span class="path">${transfer.keptIn}</span></p>`}
${proof === undefined ? renderHelp(transfer) : renderForms(transfer, proof)}
<p class="since">${transfer.since === undefined ? undefined : html`${timeOf(transfer.since, nowMs)}`}${
      transfer.expires === undefined ? undefined : html` · expires ${timeOf(transfer.expires, nowMs)}`
    }</p>
</li>`,
  )}</ul>`;
}

export function renderInHand({ inHand, totals }: Status): Html {
  if (inHand.length === 0) return html`<h2>Downloading</h2><p class="nothing">Nothing.</p>`;
  return html`<h2>Downloading <span class="count">${totals.inHand}</span></h2>${renderMore(inHand, totals.inHand)}
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
  return html`<h2>Queued <span class="count">${totals.queued}</span></h2>${renderMore(queued, totals.queued)}
${renderTable("Queued", queuedColumns(nowMs), queued)}`;
}

function queuedColumns(nowMs: number): PageColumn<TransferStatus>[] {
  return [
    { title: "Sender", value: ({ sender }) => sender },
    { title: "Mailbox", value: ({ mailbox }) => mailbox },
    { title: "Transfer", kind: "id", value: ({ trackingId }) => trackingId },
    { title: "Why", value: (transfer) => renderWhy(transfer, nowMs) },
    {
      title: "Expires",
      value: ({ expires }) => (expires === undefined ? undefined : timeOf(expires, nowMs)),
    },
  ];
}

function renderWhy(transfer: TransferStatus, nowMs: number): Html {
  const { until, message } = transfer;
  return html`${titleOf(transfer)}${until === undefined ? undefined : html`, next try ${timeOf(until, nowMs)}`}${
    message === undefined ? undefined : html`<br><span class="facts">${message}</span>`
  }`;
}

export function renderRecent({ recent }: Status, nowMs: number): Html {
  if (recent.length === 0) return html`<h2>Recently delivered</h2><p class="nothing">Nothing yet.</p>`;
  return html`<h2>Recently delivered</h2>
${renderTable("Recently delivered", recentColumns(nowMs), recent.slice(0, 20))}`;
}

function recentColumns(nowMs: number): PageColumn<Delivery>[] {
  return [
    { title: "When", value: ({ at }) => timeOf(at, nowMs) },
    { title: "Sender", value: ({ sender }) => sender },
    { title: "Folder", kind: "path", value: ({ folder }) => folder },
    {
      title: "Took",
      value: ({ tookSeconds }) => (tookSeconds === undefined ? undefined : formatSeconds(tookSeconds)),
    },
  ];
}

/** Where not all are listed. */
function renderMore(listed: readonly unknown[], total: number): Html | undefined {
  return total > listed.length
    ? html`<p class="facts">${listed.length} of ${total} are listed here</p>`
    : undefined;
}

export function timeOf(iso: string, nowMs: number): Html {
  return html`<time datetime="${iso}" title="${iso}">${formatWhen(iso, nowMs)}</time>`;
}

function titleOf(transfer: TransferStatus): string {
  const words = describeStanding(transfer);
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

/** The commands that help, and where to look. */
function renderHelp({ commands = [] }: TransferStatus): Html {
  return html`${commands.map((command) => html`<p><code>${command}</code></p>`)}`;
}
