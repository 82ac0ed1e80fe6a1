/** Answers requests for pages. */
import type { ServerResponse } from "node:http";
import { sendPage } from "./answers.ts";
import { showHistory } from "./history.ts";
import { html } from "./html.ts";
import { type Notice, type PageName, renderDocument, renderSignInPage } from "./layout.ts";
import { showMailbox, showMailboxes } from "./mailboxes.ts";
import { showOverview } from "./overview.ts";
import type { Sessions } from "./sessions.ts";
import { showStory } from "./story.ts";
import type { ConsoleTools, Shown, ShowPage } from "./tools.ts";
import { showTransfers } from "./transfers.ts";

export async function showPage(tools: ConsoleTools, response: ServerResponse, url: URL): Promise<void> {
  const { pathname, search, searchParams } = url;
  const [name, gather] = PAGES[pathname] ?? PAGES["/"];
  const address = pathname === "/" ? "./" : `${pathname}${search}`.slice(1);
  show(tools, response, name, address, await gather(tools, response, searchParams));
}

/** Answers a request that changes something, with a notice or a page of its own. */
export function showNotice(
  tools: ConsoleTools,
  response: ServerResponse,
  code: number,
  notice?: Notice,
  body = html`<section><p><a href="./">Back to the overview</a></p></section>`,
): void {
  const { access } = tools;
  const { req: request } = response;
  if ((access?.read ?? "open") !== "open" && access?.isSignedIn(request) === false) {
    const address = request.method === "GET" ? (request.url ?? "").slice(1) : "./";
    sendPage(response, code, renderSignInPage(address, notice));
  } else show(tools, response, "Overview", "./", { code, notice, render: () => body });
}

const NO_SESSION: ReturnType<Sessions["resume"]> = { visitor: { canSignIn: false } };

function show(
  { access, board, clock, outcomes }: ConsoleTools,
  response: ServerResponse,
  name: PageName,
  address: string,
  { code = 200, title, notice, render }: Shown,
): void {
  const status = board.read();
  const { visitor, cookie, notice: last } = access?.resume(response.req) ?? NO_SESSION;
  if (cookie !== undefined) response.setHeader("set-cookie", cookie);
  const time = { nowMs: clock.now(), zone: status.daemon.timezone };
  const hasSeveralMailboxes = status.mailboxes.length > 1;
  const context = { time, visitor, outcomes, back: address, hasSeveralMailboxes };
  const page = { name, address, title, body: render(status, context) };
  sendPage(response, code, renderDocument(status, page, visitor, time, notice ?? last));
}

type Page = readonly [PageName, ShowPage];

/** By path: the page's name in the navigation, and its content. */
const PAGES: Readonly<Record<"/", Page> & Partial<Record<string, Page>>> = {
  "/": ["Overview", showOverview],
  "/transfers": ["Transfers", showTransfers],
  "/transfer": ["Transfers", showStory],
  "/mailboxes": ["Mailboxes", showMailboxes],
  "/mailbox": ["Mailboxes", showMailbox],
  "/history": ["History", showHistory],
};

export const PAGE_PATHS: readonly string[] = Object.keys(PAGES);
