/** The console and its API over HTTP. Reading is open to everyone who reaches the address; actions need a token. */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import { HistoryQueryShape, ListQueryShape, parseQuery } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import type { MailboxStatus, Status } from "../model/status.ts";
import { listOpen } from "../operate/list.ts";
import { type ActionTools, actForPage, actForProgram, readBody, signIn, signOut } from "./actions.ts";
import { refuse, send, sendJson } from "./answers.ts";
import { limitConnections } from "./connections.ts";
import { EventStreams } from "./events.ts";
import { JournalAccess } from "./journal.ts";
import { actOnMailboxesForPage, actOnMailboxesForProgram } from "./mailbox-actions.ts";
import { Outcomes } from "./outcomes.ts";
import { PageRenderer } from "./pages.ts";
import type { ConsolePort } from "./port.ts";
import { isTransferAct } from "./transfers.ts";

type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void;

type ChangeHandler = (
  tools: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
) => Promise<void>;

interface Route {
  readonly handle: Handler;
  /** Other sites may request a `machine` route, and link to a `page`. They may use no other kind. */
  readonly kind: "page" | "api" | "asset" | "machine" | "change";
}

/** No resources of other origins, no inline script or style, no framing. */
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  // With "no-referrer" browsers would not send the origin of forms either.
  "referrer-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
} as const;

const TOO_LARGE = "The request is too large: choose fewer transfers.";
const BUSY = "Other searches are running: try again in a moment.";

/** Not listening yet. Closing the server ends every connection. */
export function createConsole(port: ConsolePort, clock: Clock): Server {
  const streams = new EventStreams();
  let version = 0;
  const changed = () => {
    version++;
    streams.changed();
  };
  const outcomes = new Outcomes(clock, changed);
  const pages = new PageRenderer(port, outcomes, clock);
  const routes = routesOf(port, pages, outcomes, streams, () => version, clock);
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    // The client has gone.
    response.on("error", () => {});
    // Only if the answer has begun: others become an error page.
    answer(routes, port.hosts, request, response).catch(() => response.destroy());
  });
  limitConnections(server);
  let stopWatching = () => {};
  server.on("listening", () => {
    stopWatching();
    stopWatching = port.board.onChange(changed);
  });
  server.on("close", () => {
    stopWatching();
    streams.close();
  });
  return server;
}

async function answer(
  routes: ReadonlyMap<string, Route>,
  hosts: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", url: target = "", headers } = request;
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  const url = URL.parse(`http://here${target}`);
  const route = url === null ? undefined : routes.get(url.pathname);
  if (url === null || route === undefined) return refuse(response, 404, "Not found.");
  const isChange = route.kind === "change";
  if (isChange ? method !== "POST" : method !== "GET" && method !== "HEAD") {
    response.setHeader("allow", isChange ? "POST" : "GET, HEAD");
    return refuse(response, 405, isChange ? "Use POST." : "Use GET or HEAD.");
  }
  // A liveness probe reveals nothing, and may come under any name.
  if (url.pathname !== "/healthz" && !isOurName(headers.host, hosts)) {
    return refuse(response, 421, "Unknown host name: add it to http.hosts in the configuration.");
  }
  if (headers["sec-fetch-site"] === "cross-site" && !isForAnySite(route, url, request)) {
    return refuse(response, 403, "Other sites may only link to the pages.");
  }
  await route.handle(request, response, url);
}

/** Whether another site may cause this request. A link to a page is allowed, but no expensive search in the journal. */
function isForAnySite(
  { kind }: Route,
  { pathname, searchParams }: URL,
  { headers }: IncomingMessage,
): boolean {
  if (kind === "machine") return true;
  const isLink = headers["sec-fetch-mode"] === "navigate" || headers["sec-fetch-mode"] === undefined;
  return kind === "page" && isLink && !(pathname === "/history" && searchParams.has("text"));
}

function routesOf(
  port: ConsolePort,
  pages: PageRenderer,
  outcomes: Outcomes,
  streams: EventStreams,
  version: () => number,
  clock: Clock,
): ReadonlyMap<string, Route> {
  const { board, operate, actions, metrics, stuck } = port;
  const journal = new JournalAccess(port);
  const makeStatus = () => ({ event: "status", data: board.read() });
  const makeHeartbeat = () => ({ event: "heartbeat", data: { ...pages.headline(), version: version() } });
  const page = (handle: Handler): Route => ({ kind: "page", handle });
  const api = (handle: Handler): Route => ({ kind: "api", handle });
  const machine = (handle: Handler): Route => ({ kind: "machine", handle });
  const routes: [string, Route][] = [
    ["/", page((request, response) => pages.showOverview(request, response, journal))],
    ["/transfers", page((request, response, url) => pages.showTransfers(request, response, url))],
    ["/transfer", page((request, response, url) => pages.showStory(request, response, url))],
    ["/mailboxes", page((request, response) => pages.showMailboxes(request, response))],
    ["/mailbox", page((request, response, url) => pages.showMailbox(request, response, url, journal))],
    ["/history", page((request, response, url) => pages.showHistory(request, response, url, journal))],
    ["/console.css", asset("console.css", "text/css; charset=utf-8")],
    ["/console.js", asset("console.js", "text/javascript; charset=utf-8")],
    ["/icon.svg", asset("icon.svg", "image/svg+xml")],
    ["/api/status", api((_request, response) => sendJson(response, 200, board.read()))],
    [
      "/api/transfers",
      api(async (request, response, url) => {
        const query = parseQuery(ListQueryShape, url.searchParams, clock.now());
        if (typeof query === "string") return sendJson(response, 400, { error: query });
        if (query.group !== undefined) {
          const { transfers, ...page } = listOpen(board.transfers(), query);
          return sendJson(response, 200, { ...page, transfers: transfers.map((it) => board.withHelp(it)) });
        }
        const found = await journal.run(request, response, (signal) => operate.list(query, signal));
        if (found === undefined) sendJson(response, 503, { error: BUSY });
        else sendJson(response, 200, found);
      }),
    ],
    [
      "/api/transfers/story",
      api(async (_request, response, { searchParams }) => {
        const story = await operate.story(keyIn(searchParams));
        if (story === undefined) sendJson(response, 404, { error: "There is no such transfer." });
        else sendJson(response, 200, story);
      }),
    ],
    [
      "/api/transfers/objection",
      api(async (_request, response, { searchParams }) => {
        const act = searchParams.get("act") ?? "";
        if (!isTransferAct(act)) return sendJson(response, 400, { error: "act is not valid." });
        sendJson(response, 200, { objection: (await operate.objectionTo(act, keyIn(searchParams))) ?? null });
      }),
    ],
    [
      "/api/history",
      api(async (request, response, url) => {
        const query = parseQuery(HistoryQueryShape, url.searchParams, clock.now());
        if (typeof query === "string") return sendJson(response, 400, { error: query });
        const found = await journal.read(request, response, query.kind, query);
        if (found === undefined) sendJson(response, 503, { error: BUSY });
        else sendJson(response, 200, found);
      }),
    ],
    [
      "/api/events",
      api((request, response, url) => {
        const makeEvent = url.searchParams.get("as") === "heartbeat" ? makeHeartbeat : makeStatus;
        if (!streams.add(request, response, makeEvent)) refuse(response, 503, "Too many listeners.");
      }),
    ],
    [
      "/healthz",
      machine((_request, response) => {
        const work = stuck();
        sendJson(response, work === undefined ? 200 : 503, { alive: work === undefined, stuck: work });
      }),
    ],
    [
      "/readyz",
      machine((_request, response) => {
        const readiness = readinessOf(board.read());
        sendJson(response, readiness.ready ? 200 : 503, readiness);
      }),
    ],
    [
      "/metrics",
      machine(async (_request, response) =>
        send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await metrics()),
      ),
    ],
  ];
  if (actions === undefined) return new Map(routes);
  const tools: ActionTools = {
    actions,
    operate,
    outcomes,
    clock,
    transfers: () => board.transfers(),
    show: (...answer) => pages.showNotice(...answer),
  };
  const change = (handle: ChangeHandler): Route => ({
    kind: "change",
    async handle(request, response, { pathname }) {
      const body = await readBody(request);
      if (body !== undefined) return handle(tools, request, response, body);
      if (pathname.startsWith("/api/")) return sendJson(response, 413, { error: TOO_LARGE });
      tools.show(request, response, 413, { text: TOO_LARGE, isError: true });
    },
  });
  return new Map<string, Route>([
    ...routes,
    ["/sign-in", change(signIn)],
    ["/sign-out", change(signOut)],
    ["/actions", change(actForPage)],
    ["/mailbox-actions", change(actOnMailboxesForPage)],
    ["/api/actions", change(actForProgram)],
    ["/api/mailboxes/actions", change(actOnMailboxesForProgram)],
  ]);
}

function keyIn(parameters: URLSearchParams): TransferKey {
  return { mailbox: parameters.get("mailbox") ?? "", trackingId: parameters.get("trackingId") ?? "" };
}

export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/**
 * Not ready with trouble of the disk or the queue, before the first poll, while no mailbox can be polled, and while one is
 * not polled in time.
 */
export function readinessOf({ troubles, mailboxes, daemon }: Status): Readiness {
  const general = troubles.filter(({ what }) => what === "disk" || what === "queue");
  const active = mailboxes.filter(({ paused }) => !paused);
  const polls = daemon.role !== "worker" && active.length > 0;
  const allFail = polls && active.every(({ trouble }) => trouble !== undefined);
  const late = active.filter(({ overdueSince }) => overdueSince !== undefined);
  const nonePolled =
    polls && daemon.queue !== "redis" && active.every(({ lastPoll }) => lastPoll === undefined);
  const reasons = [
    ...general.map(({ message }) => message),
    ...(allFail ? ["No mailbox can be polled."] : []),
    ...(late.length > 0 && !allFail ? [describeLate(late)] : []),
    ...(nonePolled ? ["No mailbox has been polled yet."] : []),
  ];
  return { ready: reasons.length === 0, reasons };
}

function describeLate([first, ...others]: readonly MailboxStatus[]): string {
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `Not polled in time: ${first?.name}${more}.`;
}

/** Read for each request, so that an unused console takes no memory. */
function asset(name: string, type: string): Route {
  return {
    kind: "asset",
    async handle(_request, response) {
      response.setHeader("cache-control", "no-cache");
      send(response, 200, type, await readFile(new URL(`assets/${name}`, import.meta.url)));
    },
  };
}

/** Prevents DNS rebinding: a foreign name that points at this address would let another site read the console. */
function isOurName(header: string | undefined, hosts: readonly string[]): boolean {
  const name = URL.parse(`http://${header ?? ""}`)?.hostname;
  if (name === undefined) return false;
  const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || ["localhost", hostname().toLowerCase(), ...hosts].includes(name);
}
