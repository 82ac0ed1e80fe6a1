/**
 * The status page: one document, made here, that needs no script. With its script, sections are exchanged for newer
 * ones as they come. Whatever a sender wrote is text.
 */
import { formatCount } from "../base/phrases.ts";
import type { Status } from "../model/status.ts";
import { Html, html } from "./html.ts";
import { renderHistory, type ShownHistory } from "./page-history.ts";
import { renderLoad } from "./page-load.ts";
import { renderMailboxes } from "./page-mailboxes.ts";
import { renderAttention, renderInHand, renderQueued, renderRecent, type Visitor } from "./page-transfers.ts";
import type { Said } from "./sessions.ts";

/** By the id of the element that each fills. */
export type Sections = Readonly<Record<(typeof SECTIONS)[number], string>>;

const SECTIONS = ["summary", "attention", "in-hand", "queued", "mailboxes", "recent", "load"] as const;

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

/** `said`: what became of what the visitor did last. */
export function renderPage(
  status: Status,
  history: ShownHistory,
  visitor: Visitor,
  said: Said | undefined,
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
<a class="skip" href="#attention">Skip to what needs attention</a>
<header>
<h1>Inlet</h1>
<p class="place">${host} → <span class="path">${inbox}</span></p>
${said === undefined ? undefined : renderSaid(said)}
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

function renderSaid({ text, isError }: Said): Html {
  return isError
    ? html`<p class="said bad" role="alert">${text}</p>`
    : html`<p class="said" role="status">${text}</p>`;
}

function renderSigning(proof: string | undefined): Html {
  const page = html`<input type="hidden" name="page" value="yes">`;
  if (proof !== undefined) {
    return html`<section id="sign-out" tabindex="-1"><h2>You have signed in</h2>
<form action="sign-out" method="post">${page}<input type="hidden" name="proof" value="${proof}"><button>Sign out</button></form></section>`;
  }
  return html`<section id="sign-in" tabindex="-1"><h2>Act</h2>
<form action="sign-in" method="post">${page}<label>Token, to supply passwords, retry, release and discard here <input type="password" name="token" autocomplete="current-password" required></label> <button>Sign in</button></form></section>`;
}

/** One glance must do. */
function renderSummary({ troubles, totals, needsRestart }: Status): Html {
  const facts = [
    totals.inHand > 0 ? `${totals.inHand} downloading` : undefined,
    totals.queued > 0 ? `${totals.queued} queued` : undefined,
    needsRestart.length > 0
      ? `changed, but not in force before a restart: ${needsRestart.join(", ")}`
      : undefined,
  ].filter((fact) => fact !== undefined);
  const [mood, words] = moodOf(troubles.length, totals.attention);
  return html`<p class="mood ${mood}">${words}</p>${
    facts.length > 0 ? html`<p class="facts">${facts.join(" · ")}</p>` : undefined
  }
${troubles.map(
  ({ what, message, advice, since }) =>
    html`<div class="trouble"><h2>Problem: ${what}</h2><p>${message}</p><p class="advice">${advice}</p><p class="since">since <time datetime="${since}">${since.slice(0, 16).replace("T", " ")} UTC</time></p></div>`,
)}`;
}

function moodOf(troubles: number, attention: number): [mood: string, words: string] {
  if (troubles > 0) return ["bad", formatCount(troubles, "problem", "problems")];
  if (attention > 0)
    return ["warn", `${formatCount(attention, "transfer needs", "transfers need")} attention`];
  return ["good", "All is well"];
}

/** Also the name of a tab, where it says how things are. */
export function titleOf({ troubles, totals, daemon }: Status): string {
  return `${moodOf(troubles.length, totals.attention)[1]} – Inlet on ${daemon.host}`;
}
