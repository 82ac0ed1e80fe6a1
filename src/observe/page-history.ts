/** The part of the status page that searches what was. */
import { type Html, html } from "./html.ts";
import { type PageColumn, renderTable } from "./page-table.ts";

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
  return renderTable("History", COLUMNS, found);
}

const COLUMNS: readonly PageColumn<PastTransfer>[] = [
  {
    title: "When",
    value: ({ at }) => html`<time datetime="${at}">${at.slice(0, 16).replace("T", " ")}</time>`,
  },
  { title: "State", value: ({ state }) => state },
  { title: "Sender", value: ({ sender }) => sender },
  { title: "Mailbox", value: ({ mailbox }) => mailbox },
  { title: "Transfer", kind: "id", value: ({ trackingId }) => trackingId },
  { title: "Folder or reason", kind: "path", value: ({ folder, reason }) => folder ?? reason },
];
