/**
 * The console: one document that works without its script. The script replaces sections by newer ones. All text from
 * senders is escaped.
 */
import { formatBytes, formatCount } from "../base/phrases.ts";
import { headlineOf, type LoadSlot, type MailboxStatus, type Status } from "../model/status.ts";
import { Html, html, type PageColumn, renderTable, renderTime } from "./html.ts";
import { renderAttention, renderInHand, renderQueued, renderRecent, type Visitor } from "./page-transfers.ts";
import type { PastTransfer } from "./past.ts";
import type { Notice } from "./sessions.ts";

/** By the id of their element. */
export type Sections = Readonly<Record<(typeof SECTIONS)[number], string>>;

export interface ShownHistory {
  /** The visitor's search; empty without one. */
  readonly search: string;
  /** Newest first. */
  readonly found: readonly PastTransfer[];
}

const SECTIONS = ["summary", "attention", "in-hand", "queued", "mailboxes", "recent", "load"] as const;
/** Mailboxes in trouble come first; the rest of a long list is only counted. */
const MOST_MAILBOXES = 200;
/** Size of a chart. */
const WIDTH = 480;
const HEIGHT = 60;

export function renderSections(status: Status, visitor: Visitor): Sections {
  const nowMs = Date.parse(status.at);
  return {
    summary: String(renderSummary(status)),
    attention: String(renderAttention(status, nowMs, visitor)),
    "in-hand": String(renderInHand(status)),
    queued: String(renderQueued(status, nowMs)),
    mailboxes: String(renderMailboxes(status, nowMs)),
    recent: String(renderRecent(status, nowMs)),
    load: String(renderLoad(status.load)),
  };
}

/** `notice`: the result of the visitor's last action. */
export function renderPage(
  status: Status,
  history: ShownHistory,
  visitor: Visitor,
  notice: Notice | undefined,
): string {
  const sections = renderSections(status, visitor);
  const { host, inbox, program } = status.daemon;
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="same-origin">
<title>${titleOf(status)}</title>
<link rel="stylesheet" href="page.css">
<link rel="icon" href="icon.svg">
<noscript><meta http-equiv="refresh" content="30"></noscript>
<script src="page.js" defer></script>
</head>
<body>
<a class="skip" href="#attention">Skip to transfers that need attention</a>
<header>
<h1>Inlet</h1>
<p class="place">${host} → <span class="path">${inbox}</span></p>
${notice === undefined ? undefined : renderNotice(notice)}
<div id="summary" role="status">${new Html(sections.summary)}</div>
</header>
<main>
${SECTIONS.slice(1).map((id) => html`<section id="${id}" tabindex="-1">${new Html(sections[id])}</section>\n`)}
<section id="history" tabindex="-1">${renderHistory(history)}</section>
${visitor.canSignIn ? renderSigning(visitor.proof) : undefined}
</main>
<footer><p>Inlet ${program} · <span id="live">as of <time datetime="${status.at}">${status.at.slice(11, 19)} UTC</time></span> · <a href="api/status">JSON</a> · <a href="metrics">metrics</a></p></footer>
</body>
</html>
`);
}

/** Also the title of a browser tab. */
export function titleOf(status: Status): string {
  return `${headlineOf(status).words} – Inlet on ${status.daemon.host}`;
}

function renderNotice({ text, isError }: Notice): Html {
  return isError
    ? html`<p class="notice bad" role="alert">${text}</p>`
    : html`<p class="notice" role="status">${text}</p>`;
}

function renderSigning(proof: string | undefined): Html {
  const page = html`<input type="hidden" name="page" value="yes">`;
  if (proof !== undefined) {
    return html`<section id="sign-out" tabindex="-1"><h2>Signed in</h2>
<form action="sign-out" method="post">${page}<input type="hidden" name="proof" value="${proof}"><button>Sign out</button></form></section>`;
  }
  return html`<section id="sign-in" tabindex="-1"><h2>Sign in</h2>
<form action="sign-in" method="post">${page}<label>Token, needed to supply passwords, retry, release and discard <input type="password" name="token" autocomplete="current-password" required></label> <button>Sign in</button></form></section>`;
}

function renderSummary(status: Status): Html {
  const { troubles, totals, needsRestart } = status;
  const facts = [
    totals.inHand > 0 ? `${totals.inHand} downloading` : undefined,
    totals.queued > 0 ? `${totals.queued} queued` : undefined,
    needsRestart.length > 0
      ? `changed, but not in force before a restart: ${needsRestart.join(", ")}`
      : undefined,
  ].filter((fact) => fact !== undefined);
  const { tone, words } = headlineOf(status);
  return html`<p class="mood ${tone}">${words}</p>${
    facts.length > 0 ? html`<p class="facts">${facts.join(" · ")}</p>` : undefined
  }
${troubles.map(
  ({ what, message, advice, since }) =>
    html`<div class="trouble"><h2>Problem: ${what}</h2><p>${message}</p><p class="advice">${advice}</p><p class="since">since <time datetime="${since}">${since.slice(0, 16).replace("T", " ")} UTC</time></p></div>`,
)}`;
}

function renderMailboxes({ mailboxes }: Status, nowMs: number): Html {
  const sorted = mailboxes.toSorted(
    (a, b) => Number(b.trouble !== undefined) - Number(a.trouble !== undefined),
  );
  const columns: PageColumn<MailboxStatus>[] = [
    { title: "Mailbox", isName: true, value: ({ name }) => name },
    { title: "State", value: (mailbox) => renderMailboxState(mailbox, nowMs) },
    { title: "Last poll", value: ({ lastPoll }) => renderTime(lastPoll, nowMs) },
    { title: "Next poll", value: ({ nextPoll }) => renderTime(nextPoll, nowMs) },
    { title: "Listed", kind: "number", value: ({ listed }) => listed },
    { title: "Token valid until", value: ({ tokenValidUntil }) => renderTime(tokenValidUntil, nowMs) },
  ];
  const hidden = sorted.length - MOST_MAILBOXES;
  return html`<h2>Mailboxes <span class="count">${mailboxes.length}</span></h2>
${renderTable("Mailboxes", columns, sorted.slice(0, MOST_MAILBOXES))}
${hidden > 0 ? html`<p class="facts">and ${hidden} more</p>` : undefined}`;
}

function renderMailboxState(mailbox: MailboxStatus, nowMs: number): Html {
  const { paused, trouble, lastSuccess, quietUntil } = mailbox;
  if (paused) return html`<span class="mark">paused</span>`;
  if (trouble !== undefined) {
    return html`<span class="mark bad">cannot be polled</span> since ${renderTime(trouble.since, nowMs)}: ${trouble.message}`;
  }
  const quiet =
    quietUntil === undefined ? undefined : html`, quiet hours end ${renderTime(quietUntil, nowMs)}`;
  if (lastSuccess === undefined) return html`<span class="mark">not polled yet</span>${quiet}`;
  return html`<span class="mark good">fine</span>${quiet}`;
}

function renderHistory({ search, found }: ShownHistory): Html {
  const columns: readonly PageColumn<PastTransfer>[] = [
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
  const matches =
    found.length === 0 ? html`<p class="nothing">No matches.</p>` : renderTable("History", columns, found);
  return html`<h2>History</h2>
<form action="./#history" method="get" role="search"><label>Sender, tracking-id or folder <input type="search" name="search" value="${search}" maxlength="200"></label> <button>Search</button></form>
${search === "" ? undefined : matches}`;
}

function renderLoad(slots: readonly LoadSlot[]): Html {
  const bytes = slots.map((slot) => slot.bytes);
  const delivered = slots.map((slot) => slot.delivered);
  const queued = slots.map((slot) => slot.mostQueued);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return html`<h2>Last 24 hours</h2>
<div class="charts">
${renderChart("Received", bytes, `${formatBytes(sum(bytes))} in all`, formatBytes)}
${renderChart("Delivered", delivered, formatCount(sum(delivered), "transfer", "transfers"), String)}
${renderChart("Queued", queued, `${Math.max(0, ...queued)} at most`, String)}
</div>`;
}

/** An SVG with the same facts in words for screen readers. */
function renderChart(
  title: string,
  values: readonly number[],
  caption: string,
  format: (value: number) => string,
): Html {
  const most = Math.max(1, ...values);
  const step = WIDTH / values.length;
  const bars = values.map((value, at) => {
    const height = value === 0 ? 0 : Math.max(1, (value / most) * HEIGHT);
    return html`<rect x="${(at * step).toFixed(1)}" y="${(HEIGHT - height).toFixed(1)}" width="${(step * 0.8).toFixed(1)}" height="${height.toFixed(1)}"/>`;
  });
  const peak = Math.max(0, ...values);
  return html`<figure><figcaption>${title} <span>${caption}</span></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title} over the last 24 hours: ${caption}, ${format(peak)} in the busiest quarter of an hour">${bars}</svg>
<p class="axis" aria-hidden="true"><span>24 h ago</span><span>at most ${format(peak)} in 15 minutes</span><span>now</span></p></figure>`;
}
