/** The parts of the status page that list transfers. */
import { formatBytes, formatSeconds, formatWhen } from "../base/phrases.ts";
import { commandFor } from "../model/order.ts";
import type { Status, TransferStatus } from "../model/status.ts";
import { type Html, html } from "./html.ts";
import { renderForms } from "./page-forms.ts";

/** Who looks at the page. */
export interface Visitor {
  /** It takes a token to act. */
  readonly canSignIn: boolean;
  /** What forms have to carry, of one who has signed in. */
  readonly proof: string | undefined;
}

export function renderAttention({ attention, totals }: Status, nowMs: number, { proof }: Visitor): Html {
  if (totals.attention === 0) return html`<h2>Needs a person</h2><p class="nothing">Nothing.</p>`;
  return html`<h2>Needs a person <span class="count">${totals.attention}</span></h2>${renderMore(attention, totals.attention)}
<ul class="cards">${attention.map(
    (transfer) => html`<li class="card ${transfer.state}">
<h3>${reasonOf(transfer)}</h3>
<p class="who"><b>${transfer.sender || "unknown sender"}</b> → ${transfer.mailbox}</p>
<p class="id">${transfer.trackingId}</p>
${transfer.message === undefined ? undefined : html`<p>${transfer.message}</p>`}
${proof === undefined ? helpFor(transfer) : renderForms(transfer, proof)}
<p class="since">${transfer.since === undefined ? undefined : html`${timeOf(transfer.since, nowMs)}`}${
      transfer.expires === undefined ? undefined : html` · expires ${timeOf(transfer.expires, nowMs)}`
    }</p>
</li>`,
  )}</ul>`;
}

export function renderInHand({ inHand, totals }: Status): Html {
  if (inHand.length === 0) return html`<h2>Being collected</h2><p class="nothing">Nothing.</p>`;
  return html`<h2>Being collected <span class="count">${totals.inHand}</span></h2>${renderMore(inHand, totals.inHand)}
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
  if (totals.queued === 0) return html`<h2>Waiting for a turn</h2><p class="nothing">Nothing.</p>`;
  return html`<h2>Waiting for a turn <span class="count">${totals.queued}</span></h2>${renderMore(queued, totals.queued)}
<div class="scroll" tabindex="0" role="region" aria-label="Waiting for a turn"><table>
<thead><tr><th>Sender</th><th>Mailbox</th><th>Transfer</th><th>Why</th><th>Expires</th></tr></thead>
<tbody>${queued.map(
    (transfer) =>
      html`<tr><td>${transfer.sender}</td><td>${transfer.mailbox}</td><td class="id">${transfer.trackingId}</td><td>${reasonOf(transfer)}${
        transfer.until === undefined ? undefined : html`, again ${timeOf(transfer.until, nowMs)}`
      }</td><td>${transfer.expires === undefined ? undefined : timeOf(transfer.expires, nowMs)}</td></tr>`,
  )}</tbody></table></div>`;
}

export function renderRecent({ recent }: Status, nowMs: number): Html {
  if (recent.length === 0) return html`<h2>Delivered lately</h2><p class="nothing">Nothing yet.</p>`;
  return html`<h2>Delivered lately</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Delivered lately"><table>
<thead><tr><th>When</th><th>Sender</th><th>Folder</th><th>Took</th></tr></thead>
<tbody>${recent
    .slice(0, 20)
    .map(
      ({ at, sender, folder, tookSeconds }) =>
        html`<tr><td>${timeOf(at, nowMs)}</td><td>${sender}</td><td class="path">${folder}</td><td>${
          tookSeconds === undefined ? undefined : formatSeconds(tookSeconds)
        }</td></tr>`,
    )}</tbody></table></div>`;
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

function reasonOf({ state, reason }: TransferStatus): string {
  if (reason === "password") return "Needs a password";
  if (state === "quarantined") return "In quarantine";
  if (reason === "handoff") return "Delivered, and nobody could be told";
  if (reason === "uncollected") return "Delivered, and nobody has collected it";
  if (state === "gone") return "Gone before it was delivered";
  if (reason === "locked") return "Locked by the service";
  if (reason === "disk") return "Waits for room on the disk";
  if (reason === "retry") return "Failed, and is tried again";
  return state === "discovered" ? "Its turn comes" : `Is ${state}`;
}

/** The command that helps. */
function helpFor({ state, reason, trackingId, noAttemptsLeft }: TransferStatus): Html | undefined {
  const commands = (...actions: Parameters<typeof commandFor>[0][]) =>
    html`${actions.map((action) => html`<p><code>${commandFor(action, trackingId)}</code></p>`)}`;
  if (reason === "password") return noAttemptsLeft ? undefined : commands("password");
  if (reason === "handoff") return commands("retry");
  if (state === "gone") return commands("discard");
  return state === "quarantined" ? commands("retry", "release", "discard") : undefined;
}
