/** The part of the status page that searches what was. */
import { type Html, html } from "./html.ts";

export interface PastTransfer {
  readonly at: string;
  readonly state: string;
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  readonly folder?: string | undefined;
  readonly reason?: string | undefined;
}

export interface ShownHistory {
  /** What was searched for; empty where nothing was. */
  readonly search: string;
  /** Newest first. */
  readonly found: readonly PastTransfer[];
}

export function renderHistory({ search, found }: ShownHistory): Html {
  return html`<h2>History</h2>
<form action="./#history" method="get" role="search"><label>Sender, tracking-id or folder <input type="search" name="search" value="${search}" maxlength="200"></label> <button>Search</button></form>
${search === "" ? undefined : renderFound(found)}`;
}

function renderFound(found: readonly PastTransfer[]): Html {
  if (found.length === 0) return html`<p class="nothing">Nothing was found.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="History"><table>
<thead><tr><th>When</th><th>State</th><th>Sender</th><th>Mailbox</th><th>Transfer</th><th>Folder or reason</th></tr></thead>
<tbody>${found.map(
    ({ at, state, sender, mailbox, trackingId, folder, reason }) =>
      html`<tr><td><time datetime="${at}">${at.slice(0, 16).replace("T", " ")}</time></td><td>${state}</td><td>${sender}</td><td>${mailbox}</td><td class="id">${trackingId}</td><td class="path">${folder ?? reason}</td></tr>`,
  )}</tbody></table></div>`;
}
