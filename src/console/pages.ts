/** Answers requests for pages. */
import type { ServerResponse } from "node:http";
import { send } from "./answers.ts";
import { showHistory, showStory } from "./history.ts";
import { html } from "./html.ts";
import { type PageName, renderDocument, renderSignInPage } from "./layout.ts";
import { showMailbox, showMailboxes, showOverview } from "./overview.ts";
import type { ConsoleTools, PageContext, ShowPage } from "./port.ts";
import type { Notice } from "./sessions.ts";
import { showTransfers } from "./transfers.ts";

const HTML = "text/html; charset=utf-8";

type NamedPage = readonly [PageName, ShowPage];

/** By path: the page's name in the navigation, and its content. */
export const PAGES: Readonly<Record<string, NamedPage>> = {
  "/": ["Overview", showOverview],
  "/transfers": ["Transfers", showTransfers],
  "/transfer": ["Transfers", showStory],
  "/mailboxes": ["Mailboxes", showMailboxes],
  "/mailbox": ["Mailboxes", showMailbox],
  "/history": ["History", showHistory],
};

/** What is known of a request before its page is made. */
type Requested = Pick<PageContext, "tools" | "response" | "parameters" | "address">;

export function showPage(
  tools: ConsoleTools,
  response: ServerResponse,
  { pathname, search, searchParams: parameters }: URL,
  [name, makePage]: NamedPage,
): Promise<void> {
  const address = pathname === "/" ? "./" : `${pathname}${search}`.slice(1);
  return show({ tools, response, parameters, address }, name, makePage);
}

/**
 * Answers a failed request with a notice, or shows the page of a form (`body`). Visitors who may not read get the sign-in
 * page instead.
 */
export async function showNotice(
  tools: ConsoleTools,
  response: ServerResponse,
  code: number,
  notice?: Notice,
  body = html`<section><p><a href="./">Back to the overview</a></p></section>`,
): Promise<void> {
  const { access } = tools;
  const { req: request } = response;
  if (access !== undefined && access.read !== "open" && access.find(request) === undefined) {
    const address = request.method === "GET" ? (request.url ?? "").slice(1) : "./";
    send(response, code, HTML, renderSignInPage(address, notice));
  } else {
    const requested = { tools, response, parameters: new URLSearchParams(), address: "./" };
    await show(requested, "Overview", () => ({ code, notice, body }));
  }
}

async function show(requested: Requested, name: PageName, makePage: ShowPage): Promise<void> {
  const { tools, response } = requested;
  const { access, board, clock } = tools;
  const status = board.read();
  const { visitor, cookie } = access?.resume(response.req) ?? { visitor: { canSignIn: false } };
  if (cookie !== undefined) response.setHeader("set-cookie", cookie);
  const time = { nowMs: clock.now(), zone: status.daemon.timezone };
  const context = { ...requested, status, time, visitor };
  const page = await makePage(context);
  const notice = page.notice ?? access?.takeNotice(response.req);
  send(response, page.code ?? 200, HTML, renderDocument(context, { ...page, notice }, name));
}
