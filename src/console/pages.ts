/** Answers requests for pages: gathers the data of each, and renders it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../base/clock.ts";
import { formatMoment } from "../base/phrases.ts";
import {
  DEFAULT_SIZE,
  HistoryQueryShape,
  ListQueryShape,
  parseQuery,
  type TransferFilter,
} from "../model/queries.ts";
import { headlineOf, type Status, type TransferStatus } from "../model/status.ts";
import { listOpen } from "../operate/list.ts";
import { sendPage } from "./answers.ts";
import { RANGES, type Range, startOf } from "./chart.ts";
import { renderHistory } from "./history.ts";
import { type Html, html } from "./html.ts";
import type { JournalAccess } from "./journal.ts";
import { type Notice, type Page, renderDocument, renderSignInPage, titleOf, type Visitor } from "./layout.ts";
import { countByMailbox, renderMailbox, renderMailboxes } from "./mailboxes.ts";
import type { Outcomes } from "./outcomes.ts";
import { renderOverview } from "./overview.ts";
import type { ConsolePort } from "./port.ts";
import type { PageQuery } from "./query.ts";
import type { RowContext } from "./rows.ts";
import { renderStory } from "./story.ts";
import { renderBatches, renderTransfers } from "./transfers.ts";

/** Past transfers on the page of a mailbox. */
const MAX_PAST = 50;
/** Entries of the journal that a search shows. */
const MAX_FOUND = 100;
/** Open transfers on a page. */
const MAX_ROWS = 500;

type Request = IncomingMessage;
type Response = ServerResponse;

export class PageRenderer {
  readonly #port: ConsolePort;
  readonly #outcomes: Outcomes;
  readonly #clock: Clock;

  constructor(port: ConsolePort, outcomes: Outcomes, clock: Clock) {
    this.#port = port;
    this.#outcomes = outcomes;
    this.#clock = clock;
  }

  headline() {
    const status = this.#port.board.read();
    const { at } = status;
    const clock = formatMoment(at, status.daemon.timezone).slice(11);
    return { at, clock, title: titleOf(status), ...headlineOf(status) };
  }

  async showOverview(request: Request, response: Response, journal: JournalAccess): Promise<void> {
    const { board } = this.#port;
    // The page says that the journal cannot be read.
    const day = await journal.tally(request, response, "day", this.#clock.now()).catch(() => undefined);
    const status = board.read();
    this.#show(request, response, status, 200, "Overview", "./", (context) => {
      const attention = board.transfers().filter(({ group }) => group === "attention");
      const batches = renderBatches(this.#outcomes.recent(), context.time);
      const withHelp = (transfer: TransferStatus) => board.withHelp(transfer);
      return renderOverview({ status, attention, withHelp, batches, day }, context);
    });
  }

  showTransfers(request: Request, response: Response, { searchParams }: URL): void {
    const { board } = this.#port;
    const status = board.read();
    const all = board.transfers();
    const parsed = parseQuery(ListQueryShape, searchParams, this.#clock.now());
    const wanted = typeof parsed === "string" ? EVERYTHING : parsed;
    const query = { ...wanted, size: Math.min(wanted.size, MAX_ROWS) };
    const notice = typeof parsed === "string" ? { text: parsed, isError: true } : undefined;
    const { transfers, ...rest } = listOpen(all, query);
    const found = { ...rest, transfers: transfers.map((transfer) => board.withHelp(transfer)) };
    const reasons = [...new Set(all.flatMap(({ reason }) => reason ?? []))].toSorted();
    const address = searchParams.size === 0 ? "transfers" : `transfers?${searchParams}`;
    this.#show(
      request,
      response,
      status,
      notice === undefined ? 200 : 400,
      "Transfers",
      address,
      (context) => {
        const batches = renderBatches(this.#outcomes.recent(), context.time);
        return renderTransfers({ status, query, found, reasons, batches }, context);
      },
      { notice },
    );
  }

  async showStory(request: Request, response: Response, { searchParams }: URL): Promise<void> {
    const key = {
      mailbox: searchParams.get("mailbox") ?? "",
      trackingId: searchParams.get("trackingId") ?? "",
    };
    const story = await this.#port.operate.story(key);
    const status = this.#port.board.read();
    const address = `transfer?${searchParams}`;
    const body = (context: RowContext) =>
      story === undefined
        ? html`<section><p>There is no such transfer. Its records may have been removed by retention.</p></section>`
        : renderStory(story, context);
    const title = "Transfer";
    this.#show(request, response, status, story === undefined ? 404 : 200, "Transfers", address, body, {
      title,
    });
  }

  showMailboxes(request: Request, response: Response): void {
    const { board } = this.#port;
    const status = board.read();
    this.#show(request, response, status, 200, "Mailboxes", "mailboxes", ({ time }) =>
      renderMailboxes(status, countByMailbox(board.transfers()), time),
    );
  }

  async showMailbox(request: Request, response: Response, url: URL, journal: JournalAccess): Promise<void> {
    const { board } = this.#port;
    const name = url.searchParams.get("name") ?? "";
    const known = board.read().mailboxes.some((mailbox) => mailbox.name === name);
    const query = { mailbox: name, limit: MAX_PAST };
    // The page says that the journal cannot be read.
    const read = () => journal.read(request, response, "transfers", query).catch(() => undefined);
    const past = known ? (await read())?.entries : undefined;
    const status = board.read();
    const mailbox = status.mailboxes.find((it) => it.name === name);
    const body = (context: RowContext) => {
      if (mailbox === undefined) return html`<section><p>There is no such mailbox.</p></section>`;
      const open = board.transfers().filter((transfer) => transfer.mailbox === name);
      const troubles = status.troubles.filter(({ mailboxes = [] }) => mailboxes.includes(name));
      const helped = open.map((transfer) => board.withHelp(transfer));
      return renderMailbox({ mailbox, troubles, open: helped, past }, context);
    };
    const address = `mailbox?${url.searchParams}`;
    const options = { title: name };
    this.#show(
      request,
      response,
      status,
      mailbox === undefined ? 404 : 200,
      "Mailboxes",
      address,
      body,
      options,
    );
  }

  async showHistory(request: Request, response: Response, { searchParams }: URL, journal: JournalAccess) {
    const parameters = new URLSearchParams(searchParams);
    const wanted = parameters.get("range") ?? "day";
    parameters.delete("range");
    const range = Object.hasOwn(RANGES, wanted) ? (wanted as Range) : "day";
    const parsed = parseQuery(HistoryQueryShape, parameters, this.#clock.now());
    const query = typeof parsed === "string" ? {} : parsed;
    const notice = typeof parsed === "string" ? { text: parsed, isError: true } : undefined;
    // The page says which part of the journal cannot be read.
    const ifRead = <Value>(part: Promise<Value>) => part.catch(() => undefined);
    const slots = await ifRead(journal.tally(request, response, range, this.#clock.now()));
    const read = <Kind extends "transfers" | "acts">(kind: Kind, filter: TransferFilter) =>
      ifRead(journal.read(request, response, kind, { ...filter, limit: MAX_FOUND }));
    const found = (await read("transfers", query))?.entries;
    const acts = (await read("acts", { sinceMs: startOf(range, this.#clock.now()) }))?.entries;
    const status = notice !== undefined ? 400 : found === undefined ? 503 : 200;
    const address = searchParams.size === 0 ? "history" : `history?${searchParams}`;
    const board = this.#port.board.read();
    const mailboxes = board.mailboxes.map(({ name }) => name);
    const fields = Object.fromEntries(parameters);
    this.#show(
      request,
      response,
      board,
      status,
      "History",
      address,
      ({ time }) => renderHistory({ range, fields, mailboxes, slots, found, acts }, time),
      { notice },
    );
  }

  /** Answers a request that changes something, with a notice or a page of its own. */
  showNotice(request: Request, response: Response, status: number, notice?: Notice, body?: Html): void {
    const { access } = this.#port;
    if ((access?.read ?? "open") !== "open" && access?.sessions.isSignedIn(request) === false) {
      const address = request.method === "GET" ? (request.url ?? "").slice(1) : "./";
      sendPage(response, status, renderSignInPage(address, notice));
      return;
    }
    const content = () => body ?? html`<section><p><a href="./">Back to the overview</a></p></section>`;
    this.#show(request, response, this.#port.board.read(), status, "Overview", "./", content, { notice });
  }

  #show(
    request: Request,
    response: Response,
    status: Status,
    code: number,
    name: Page["name"],
    address: string,
    render: (context: RowContext) => Html,
    { notice, title }: { readonly notice?: Notice | undefined; readonly title?: string } = {},
  ): void {
    const { access } = this.#port;
    const session = access?.sessions.resume(request) ?? {};
    if (session.cookie !== undefined) response.setHeader("set-cookie", session.cookie);
    const { proof: signOut, role } = session;
    const visitor: Visitor = {
      canSignIn: access?.sessions.needsToken === true,
      proof: role === "operate" ? signOut : undefined,
      signOut,
      name: session.name,
    };
    const time = { nowMs: this.#clock.now(), zone: status.daemon.timezone };
    const context: RowContext = {
      time,
      visitor,
      outcomes: this.#outcomes,
      back: address,
      hasSeveralMailboxes: status.mailboxes.length > 1,
    };
    const page: Page = { name, address, body: render(context), ...(title === undefined ? {} : { title }) };
    sendPage(response, code, renderDocument(status, page, visitor, time, notice ?? session.notice));
  }
}

const EVERYTHING: PageQuery = { page: 1, size: DEFAULT_SIZE };
