/** The part of the status page that lists mailboxes. */
import type { MailboxStatus, Status } from "../model/status.ts";
import { type Html, html } from "./html.ts";
import { timeOf } from "./page-transfers.ts";

/** Those in trouble come first; more than so many are not listed, but counted. */
const MOST_LISTED = 200;

export function renderMailboxes({ mailboxes }: Status, nowMs: number): Html {
  const sorted = mailboxes.toSorted(
    (a, b) => Number(b.trouble !== undefined) - Number(a.trouble !== undefined),
  );
  const hidden = sorted.length - MOST_LISTED;
  return html`<h2>Mailboxes <span class="count">${mailboxes.length}</span></h2>
<div class="scroll" tabindex="0" role="region" aria-label="Mailboxes"><table>
<thead><tr><th>Mailbox</th><th>State</th><th>Last poll</th><th>Next poll</th><th>Listed</th><th>Token valid until</th></tr></thead>
<tbody>${sorted.slice(0, MOST_LISTED).map((mailbox) => renderRow(mailbox, nowMs))}</tbody></table></div>
${hidden > 0 ? html`<p class="facts">and ${hidden} more, none of them in trouble</p>` : undefined}`;
}

function renderRow(mailbox: MailboxStatus, nowMs: number): Html {
  const { name, lastPoll, nextPoll, listed, tokenValidUntil } = mailbox;
  return html`<tr><th scope="row">${name}</th><td>${stateOf(mailbox, nowMs)}</td>
<td>${lastPoll === undefined ? undefined : timeOf(lastPoll, nowMs)}</td>
<td>${nextPoll === undefined ? undefined : timeOf(nextPoll, nowMs)}</td>
<td class="number">${listed}</td>
<td>${tokenValidUntil === undefined ? undefined : timeOf(tokenValidUntil, nowMs)}</td></tr>`;
}

function stateOf({ paused, trouble, lastSuccess, quietUntil }: MailboxStatus, nowMs: number): Html {
  if (paused) return html`<span class="mark">paused</span>`;
  if (trouble !== undefined) {
    return html`<span class="mark bad">cannot be polled</span> since ${timeOf(trouble.since, nowMs)}: ${trouble.message}`;
  }
  const quiet = quietUntil === undefined ? undefined : html`, quiet hours end ${timeOf(quietUntil, nowMs)}`;
  if (lastSuccess === undefined) return html`<span class="mark">not polled yet</span>${quiet}`;
  return html`<span class="mark good">fine</span>${quiet}`;
}
