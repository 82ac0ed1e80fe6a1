/** Answers requests for pages. */
import type { ServerResponse } from "node:http";
import { send } from "./answers.ts";
import { showHistory, showStory } from "./history.ts";
import { html } from "./html.ts";
import { type Notice, type PageName, renderDocument, renderSignInPage } from "./layout.ts";
import { showMailbox, showMailboxes, showOverview } from "./overview.ts";
import type { ConsoleTools, ShowPage } from "./port.ts";
import { showTransfers } from "./transfers.ts";

const HTML = "text/html; charset=utf-8";

export function showPage(tools: ConsoleTools, response: ServerResponse, url: URL): Promise<void> {
  const { pathname, search, searchParams } = url;
  const [name, makePage] = PAGES[pathname] ?? PAGES["/"];
  const address = pathname === "/" ? "./" : `${pathname}${search}`.slice(1);
  return show(tools, response, name, address, makePage, searchParams);
}

/** Answers an action or a failed request with a notice or its own page, or with the sign-in page. */
export async function showNotice(
  tools: ConsoleTools,
  response: ServerResponse,
  code: number,
  notice?: Notice,
  body = html`<section><p><a href="./">Back to the overview</a></p></section>`,
): Promise<void> {
  const { access } = tools;
  const { req: request } = response;
  if (access !== undefined && access.read !== "open" && !access.isSignedIn(request)) {
    const address = request.method === "GET" ? (request.url ?? "").slice(1) : "./";
    send(response, code, HTML, renderSignInPage(address, notice));
  } else await show(tools, response, "Overview", "./", () => ({ code, notice, body }));
}

async function show(
  tools: ConsoleTools,
  response: ServerResponse,
  name: PageName,
  address: string,
  makePage: ShowPage,
  parameters = new URLSearchParams(),
): Promise<void> {
  const { access, board, clock } = tools;
  const status = board.read();
  const { visitor, cookie } = access?.resume(response.req) ?? { visitor: { canSignIn: false } };
  if (cookie !== undefined) response.setHeader("set-cookie", cookie);
  const time = { nowMs: clock.now(), zone: status.daemon.timezone };
  const page = await makePage({ tools, response, parameters, status, time, visitor, address });
  const notice = page.notice ?? access?.takeNotice(response.req);
  const text = renderDocument(status, { ...page, notice, name, address }, visitor, time);
  send(response, page.code ?? 200, HTML, text);
}

type NamedPage = readonly [PageName, ShowPage];

/** By path: the page's name in the navigation, and its content. */
const PAGES: Readonly<Record<"/", NamedPage> & Partial<Record<string, NamedPage>>> = {
  "/": ["Overview", showOverview],
  "/transfers": ["Transfers", showTransfers],
  "/transfer": ["Transfers", showStory],
  "/mailboxes": ["Mailboxes", showMailboxes],
  "/mailbox": ["Mailboxes", showMailbox],
  "/history": ["History", showHistory],
};

export const PAGE_PATHS: readonly string[] = Object.keys(PAGES);
