/**
 * The frame of every page: headline, navigation, sign-in, and the bar that says when the connection is lost. Also the parts
 * that several pages share.
 */
import { formatCount, localizeTimes, zoneName } from "../base/phrases.ts";
import { linkTo } from "../model/queries.ts";
import { STATES } from "../model/record.ts";
import { headlineOf, type Status, type Trouble } from "../model/status.ts";
import { type Html, html, type PageTime, renderClock, renderTime } from "./html.ts";
import type { Page, PageContext } from "./port.ts";
import type { Notice, Visitor } from "./sessions.ts";

const LINKS = [
  ["Overview", "./"],
  ["Transfers", "transfers"],
  ["Mailboxes", "mailboxes"],
  ["History", "history"],
] as const;

export type PageName = (typeof LINKS)[number][0];

/** `name`: of the page in the navigation. */
export function renderDocument(
  { status, time, visitor, address }: PageContext,
  { title, notice, body }: Page,
  name: PageName,
): string {
  const { host, inbox, program } = status.daemon;
  const script = html`<script src="console.js" defer></script>`;
  return renderFrame(
    titleOf(status),
    script,
    html`<a class="skip" href="#main">Skip to the content</a>
<p id="silence" class="silence" hidden></p>
<p id="said" class="unseen" role="status"></p>
<header>
<div class="brand"><h1>Inlet</h1> <span class="facts">${inbox} on ${host}</span></div>
${renderSigning(visitor, address)}
<nav aria-label="Pages"><ul>${LINKS.map(
      ([link, href]) =>
        html`<li><a href="${href}"${link === name && html` aria-current="page"`}>${link}</a></li>`,
    )}</ul></nav>
<div id="headline" data-live>${renderHeadline(status)}</div>
</header>
<main id="main" tabindex="-1">
${notice && renderNotice(notice)}
${title && html`<h2 class="title">${title}</h2>`}
${body}
</main>
<footer><p>Inlet ${program} · <span id="live">as of ${renderClock(status.at, time)}</span> · times in ${zoneName(time.zone)} · <a href="api/status">JSON</a> · <a href="metrics">metrics</a></p></footer>`,
  );
}

/** Reveals nothing. For visitors who may not read before they sign in. */
export function renderSignInPage(address: string, notice: Notice | undefined): string {
  const body = html`<header><div class="brand"><h1>Inlet</h1></div></header>
<main id="main" tabindex="-1">${notice && renderNotice(notice)}
<section><h2>Sign in</h2>${renderSignIn(address)}</section></main>`;
  return renderFrame("Sign in – Inlet", undefined, body);
}

function renderFrame(title: string, script: Html | undefined, body: Html): string {
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="console.css">
<link rel="icon" href="icon.svg" type="image/svg+xml">
${script}
</head>
<body>
${body}
</body>
</html>
`);
}

/** Also the title of a browser tab. */
export function titleOf(status: Status): string {
  return `${headlineOf(status).words} – Inlet on ${status.daemon.host}`;
}

function renderHeadline(status: Status): Html {
  const { totals, needsRestart } = status;
  const { tone, words } = headlineOf(status);
  const facts = [
    totals.attention > 0 &&
      tone === "bad" &&
      html`<a href="transfers?group=attention">${formatCount(totals.attention, "transfer needs", "transfers need")} attention</a>`,
    totals.downloading > 0 && html`${totals.downloading} downloading`,
    totals.queued > 0 && html`<a href="transfers?group=queued">${totals.queued} queued</a>`,
    needsRestart.length > 0 && html`changed, but not in force before a restart: ${needsRestart.join(", ")}`,
  ].filter((fact) => fact !== false);
  const list = facts.map((fact, at) => html`${at > 0 ? " · " : ""}${fact}`);
  return html`<p class="tone ${tone}">${words}</p>${facts.length > 0 && html`<p class="facts">${list}</p>`}`;
}

/** One card per cause; many mailboxes are counted, and listed on demand. */
export function renderTroubles(troubles: readonly Trouble[], time: PageTime): Html {
  return html`${troubles.map(({ what, message, advice, since, mailboxes = [] }) => {
    const affected =
      mailboxes.length > 1 &&
      html`<details id="affected-${what}"><summary>${mailboxes.length} mailboxes are affected</summary><ul class="names">${mailboxes.map((name) => html`<li>${linkToMailbox(name)}</li>`)}</ul></details>`;
    return html`<div class="trouble"><h3>Problem: ${what}</h3><p>${localizeTimes(message, time.zone)}</p><p class="advice">${advice}</p>${affected}<p class="facts">since ${renderTime(since, time)}</p></div>`;
  })}`;
}

export function linkToMailbox(name: string): Html {
  return html`<a href="${linkTo("mailbox", { name })}">${name}</a>`;
}

export function renderHidden(fields: Readonly<Record<string, string>>): Html {
  return html`${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`;
}

function renderNotice({ text, isError }: Notice): Html {
  return html`<p class="notice${isError && " bad"}">${text}</p>`;
}

function renderSigning({ canSignIn, proof, signOut, name }: Visitor, address: string): Html {
  if (signOut !== undefined) {
    const role = proof === undefined ? " (read only)" : "";
    const who = html`<span>Signed in${name && html` as <strong>${name}</strong>`}${role}</span>`;
    if (!canSignIn) return html`<div class="signing">${who}</div>`;
    return html`<form class="signing" action="sign-out" method="post">${renderHidden({ proof: signOut })}${who} <button>Sign out</button></form>`;
  }
  return canSignIn ? renderSignIn(address) : html`<p class="signing facts">Read only</p>`;
}

function renderSignIn(address: string): Html {
  return html`<form class="signing" action="sign-in" method="post">${renderHidden({ back: address })}<label>Token <input type="password" name="token" autocomplete="current-password" required></label> <button>Sign in</button></form>`;
}

export type Choices = readonly (readonly [value: string, words: string])[];

interface FilterForm {
  readonly page: "transfers" | "history";
  /** The values of all fields, by name. */
  readonly fields: Readonly<Record<string, string>>;
  /** Reasons to choose from, if the page knows them. */
  readonly reasons?: readonly string[];
  readonly mailboxes: readonly string[];
  /** More choices of this page, by the name of the field. */
  readonly more?: Readonly<Record<string, { readonly title: string; readonly choices: Choices }>>;
  readonly hidden?: Html;
}

const MAX_NAMES = 200;

/** The form to search and filter transfers. All fields but the text are folded, unless one of them is set. */
export function renderFilterForm({
  page,
  fields,
  reasons = [],
  mailboxes,
  more = {},
  hidden,
}: FilterForm): Html {
  const names = ["sender", "mailbox", "since", "state", "reason", ...Object.keys(more)];
  const isOpen = names.some((name) => (fields[name] ?? "") !== "");
  const text = (name: string, title: string, hint: string, list?: string) =>
    html`<label>${title} <input type="search" name="${name}" value="${fields[name]}" placeholder="${hint}"${list && html` list="${list}"`}></label>`;
  const select = (name: string, title: string, choices: Choices) =>
    html`<label>${title} <select name="${name}">${choices.map(
      ([value, words]) =>
        html`<option value="${value}"${value === (fields[name] ?? "") && html` selected`}>${words}</option>`,
    )}</select></label>`;
  const choicesOf = (values: readonly string[]): Choices => [
    ["", "any"],
    ...values.map((it) => [it, it] as const),
  ];
  return html`<form class="filters" action="${page}" method="get" role="search">${hidden}
<div class="fields">${text("text", "Text", "tracking-id, sender, subject, folder …")}<button>Search</button> <a href="${page}">Clear</a></div>
<details id="more-filters"${isOpen && html` open`}><summary>More filters</summary><div class="fields">
${text("sender", "Sender", "*@supplier.example")}${text("mailbox", "Mailbox", "* is any text", "mailbox-names")}${text("since", "Since", "12h, 7d or 2026-03-01")}
<datalist id="mailbox-names">${mailboxes.slice(0, MAX_NAMES).map((name) => html`<option value="${name}">`)}</datalist>
${select("state", "State", choicesOf(STATES))}${reasons.length > 0 && select("reason", "Reason", choicesOf(reasons))}
${Object.entries(more).map(([name, { title, choices }]) => select(name, title, choices))}</div></details></form>`;
}
