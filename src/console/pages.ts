/** Answers requests for pages: gathers the data of each, and renders it. */
import type { ServerResponse } from "node:http";
import {
  DEFAULT_SIZE,
  HistoryQueryShape,
  ListQueryShape,
  parseQuery,
  type TransferFilter,
} from "../model/queries.ts";
import type { Status, TransferStatus } from "../model/status.ts";
import { listOpen } from "../operate/list.ts";
import { sendPage } from "./answers.ts";
import { RANGES, type Range, startOf } from "./chart.ts";
import { renderHistory } from "./history.ts";
import { type Html, html } from "./html.ts";
import { type Notice, type PageName, renderDocument, renderSignInPage, type Visitor } from "./layout.ts";
import { countByMailbox, renderMailbox, renderMailboxes } from "./mailboxes.ts";
import { renderOverview } from "./overview.ts";
import type { RowContext } from "./rows.ts";
import { renderStory } from "./story.ts";
import type { ConsoleTools } from "./tools.ts";
import { renderBatches, renderTransfers } from "./transfers.ts";

/** Past transfers on the page of a mailbox. */
const MAX_PAST = 50;
/** Entries of the journal that a search shows. */
const MAX_FOUND = 100;
/** Open transfers on a page. */
const MAX_ROWS = 500;

interface Shown {
  /** Missing: 200. */
  readonly code?: number;
  readonly title?: string;
  readonly notice?: Notice | undefined;
  render(status: Status, context: RowContext): Html;
}

/** Its name in the navigation, and how its data is gathered. */
type Page = readonly [PageName, Gather];

/** May throw faults. */
type Gather = (
  tools: ConsoleTools,
  response: ServerResponse,
  parameters: URLSearchParams,
) => Shown | Promise<Shown>;

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
  if ((access?.read ?? "open") !== "open" && access?.sessions.isSignedIn(request) === false) {
    const address = request.method === "GET" ? (request.url ?? "").slice(1) : "./";
    sendPage(response, code, renderSignInPage(address, notice));
  } else show(tools, response, "Overview", "./", { code, notice, render: () => body });
}

function show(
  { access, board, clock, outcomes }: ConsoleTools,
  response: ServerResponse,
  name: PageName,
  address: string,
  { code = 200, title, notice, render }: Shown,
): void {
  const status = board.read();
  const session = access?.sessions.resume(response.req) ?? {};
  if (session.cookie !== undefined) response.setHeader("set-cookie", session.cookie);
  const { proof: signOut, role } = session;
  const visitor: Visitor = {
    canSignIn: access?.sessions.needsToken === true,
    proof: role === "operate" ? signOut : undefined,
    signOut,
    name: session.name,
  };
  const time = { nowMs: clock.now(), zone: status.daemon.timezone };
  const hasSeveralMailboxes = status.mailboxes.length > 1;
  const context = { time, visitor, outcomes, back: address, hasSeveralMailboxes };
  const page = { name, address, title, body: render(status, context) };
  sendPage(response, code, renderDocument(status, page, visitor, time, notice ?? session.notice));
}

const gatherOverview: Gather = async ({ board, journal, clock, outcomes }, response) => {
  // The page says that the journal cannot be read.
  const day = await journal.tally(response, "day", clock.now()).catch(() => undefined);
  return {
    render(status, context) {
      const attention = board.transfers().filter(({ group }) => group === "attention");
      const batches = renderBatches(outcomes.recent(), context.time);
      const withHelp = (transfer: TransferStatus) => board.withHelp(transfer);
      return renderOverview({ status, attention, withHelp, batches, day }, context);
    },
  };
};

const gatherTransfers: Gather = ({ board, clock, outcomes }, _response, parameters) => {
  const all = board.transfers();
  const parsed = parseQuery(ListQueryShape, parameters, clock.now());
  const notice = noticeOf(parsed);
  const wanted = typeof parsed === "string" ? { page: 1, size: DEFAULT_SIZE } : parsed;
  const query = { ...wanted, size: Math.min(wanted.size, MAX_ROWS) };
  const { transfers, ...rest } = listOpen(all, query);
  const found = { ...rest, transfers: transfers.map((transfer) => board.withHelp(transfer)) };
  const reasons = [...new Set(all.flatMap(({ reason }) => reason ?? []))].toSorted();
  return {
    code: notice === undefined ? 200 : 400,
    notice,
    render(status, context) {
      const batches = renderBatches(outcomes.recent(), context.time);
      return renderTransfers({ status, query, found, reasons, batches }, context);
    },
  };
};

const gatherStory: Gather = async ({ operate }, _response, parameters) => {
  const [mailbox = "", trackingId = ""] = ["mailbox", "trackingId"].map((it) => parameters.get(it) ?? "");
  const story = await operate.story({ mailbox, trackingId });
  const none = html`<section><p>There is no such transfer. Its records may have been removed by retention.</p></section>`;
  return {
    code: story === undefined ? 404 : 200,
    title: "Transfer",
    render: (_status, context) => (story === undefined ? none : renderStory(story, context)),
  };
};

const gatherMailboxes: Gather = ({ board }) => ({
  render: (status, { time }) => renderMailboxes(status, countByMailbox(board.transfers()), time),
});

const gatherMailbox: Gather = async ({ board, journal }, response, parameters) => {
  const name = parameters.get("name") ?? "";
  const find = ({ mailboxes }: Status) => mailboxes.find((mailbox) => mailbox.name === name);
  const isKnown = find(board.read()) !== undefined;
  const query = { mailbox: name, limit: MAX_PAST };
  // The page says that the journal cannot be read.
  const read = () => journal.read(response, "transfers", query).catch(() => undefined);
  const past = isKnown ? (await read())?.entries : undefined;
  return {
    code: isKnown ? 200 : 404,
    title: name,
    render(status, context) {
      const mailbox = find(status);
      if (mailbox === undefined) return html`<section><p>There is no such mailbox.</p></section>`;
      const found = board.transfers().filter((transfer) => transfer.mailbox === name);
      const open = found.map((transfer) => board.withHelp(transfer));
      const troubles = status.troubles.filter(({ mailboxes = [] }) => mailboxes.includes(name));
      return renderMailbox({ mailbox, troubles, open, past }, context);
    },
  };
};

const gatherHistory: Gather = async ({ journal, clock }, response, given) => {
  const { range: wanted = "day", ...fields } = Object.fromEntries(given);
  const range = Object.hasOwn(RANGES, wanted) ? (wanted as Range) : "day";
  const parsed = parseQuery(HistoryQueryShape, new URLSearchParams(fields), clock.now());
  const notice = noticeOf(parsed);
  // The page says which part of the journal cannot be read.
  const ifRead = <Value>(part: Promise<Value>) => part.catch(() => undefined);
  const slots = await ifRead(journal.tally(response, range, clock.now()));
  const read = <Kind extends "transfers" | "acts">(kind: Kind, filter: TransferFilter) =>
    ifRead(journal.read(response, kind, { ...filter, limit: MAX_FOUND }));
  const found = (await read("transfers", typeof parsed === "string" ? {} : parsed))?.entries;
  const acts = (await read("acts", { sinceMs: startOf(range, clock.now()) }))?.entries;
  return {
    code: notice !== undefined ? 400 : found === undefined ? 503 : 200,
    notice,
    render({ mailboxes }, { time }) {
      const names = mailboxes.map(({ name }) => name);
      return renderHistory({ range, fields, mailboxes: names, slots, found, acts }, time);
    },
  };
};

/** By path. */
const PAGES: Readonly<Record<"/", Page> & Partial<Record<string, Page>>> = {
  "/": ["Overview", gatherOverview],
  "/transfers": ["Transfers", gatherTransfers],
  "/transfer": ["Transfers", gatherStory],
  "/mailboxes": ["Mailboxes", gatherMailboxes],
  "/mailbox": ["Mailboxes", gatherMailbox],
  "/history": ["History", gatherHistory],
};

export const PAGE_PATHS: readonly string[] = Object.keys(PAGES);

function noticeOf(parsed: object | string): Notice | undefined {
  return typeof parsed === "string" ? { text: parsed, isError: true } : undefined;
}
