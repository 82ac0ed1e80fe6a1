/** The part of the status page that lists mailboxes. */
import type { MailboxStatus, Status } from "../model/status.ts";
import { type Html, html } from "./html.ts";
import { type PageColumn, renderTable } from "./page-table.ts";
import { timeOf } from "./page-transfers.ts";

/** Those in trouble come first; more than so many are not listed, but counted. */
const MOST_LISTED = 200;

export function renderMailboxes({ mailboxes }: Status, nowMs: number): Html {
  const sorted = mailboxes.toSorted(
    (a, b) => Number(b.trouble !== undefined) - Number(a.trouble !== undefined),
  );
  const hidden = sorted.length - MOST_LISTED;
  return html`<h2>Mailboxes <span class="count">${mailboxes.length}</span></h2>
${renderTable("Mailboxes", columnsAt(nowMs), sorted.slice(0, MOST_LISTED))}
${hidden > 0 ? html`<p class="facts">and ${hidden} more, all without problems</p>` : undefined}`;
}

function columnsAt(nowMs: number): PageColumn<MailboxStatus>[] {
  const time = (iso: string | undefined) => (iso === undefined ? undefined : timeOf(iso, nowMs));
  return [
    { title: "Mailbox", isName: true, value: ({ name }) => name },
    { title: "State", value: (mailbox) => stateOf(mailbox, nowMs) },
    { title: "Last poll", value: ({ lastPoll }) => time(lastPoll) },
    { title: "Next poll", value: ({ nextPoll }) => time(nextPoll) },
    { title: "Listed", kind: "number", value: ({ listed }) => listed },
    { title: "Token valid until", value: ({ tokenValidUntil }) => time(tokenValidUntil) },
  ];
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
