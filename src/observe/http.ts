/** The status page and its API over HTTP: reading for whoever reaches the address, acting for whoever may. */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import type { Status } from "../model/status.ts";
import { type Actions, act, type ShowPage, signIn, signOut } from "./actions.ts";
import type { Board } from "./board.ts";
import { Events, type Render } from "./events.ts";
import { readinessOf } from "./health.ts";
import { renderPage, renderSections, titleOf } from "./page.ts";
import type { ShownHistory } from "./page-history.ts";
import type { Visitor } from "./page-transfers.ts";
import { LONGEST_SEARCH, Past, parsePastQuery, type ReadPast } from "./past.ts";
import type { Said } from "./sessions.ts";

export interface Desk {
  readonly board: Board;
  /** In Prometheus's text form. */
  metrics(): Promise<string>;
  /** Without a search, the newest of all. */
  readonly history: ReadPast;
  /** `undefined`: the page is for reading only. */
  readonly actions: Actions | undefined;
  /** Names by which this page may be called, beside addresses, `localhost` and the machine's own name. */
  readonly hosts: readonly string[];
  /** What does not get on any more, or `undefined`. */
  stuck(): string | undefined;
}

type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void;

/** Nothing from elsewhere, no script or style that is not a file of ours, and no frame around it. */
const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  // Without any referrer browsers would not say either that a form comes from here.
  "referrer-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** For machines, which may call us by any name: they say nothing of a sender. */
const FOR_ANY_HOST: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);
const CHANGES: ReadonlySet<string> = new Set(["/sign-in", "/sign-out", "/api/actions"]);
const BUSY = "Others are searching the history: try again in a moment.";

/** Not listening yet. Closing the server ends every connection. */
export function createHttp(desk: Desk): Server {
  const events = new Events(desk.board);
  const routes = routesOf(desk, events);
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    response.on("error", () => {});
    answer(routes, desk.hosts, request, response).catch(() => response.destroy());
  });
  server.maxConnections = 200;
  server.once("close", () => events.close());
  return server;
}

async function answer(
  routes: ReadonlyMap<string, Handler>,
  hosts: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", url: target = "", headers } = request;
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  const url = URL.parse(`http://here${target}`);
  const handler = url === null ? undefined : routes.get(url.pathname);
  if (url === null || handler === undefined) return refuse(response, 404, "There is nothing here.");
  const isChange = CHANGES.has(url.pathname);
  if (isChange ? method !== "POST" : method !== "GET" && method !== "HEAD") {
    response.setHeader("allow", isChange ? "POST" : "GET, HEAD");
    return refuse(response, 405, isChange ? "This is for POST." : "This can only be read.");
  }
  if (!FOR_ANY_HOST.has(url.pathname) && !isOurName(headers.host, hosts)) {
    return refuse(
      response,
      421,
      "This page is not called by that name: see http.hosts in the configuration.",
    );
  }
  if (headers["sec-fetch-site"] === "cross-site" && !isForAnySite(url)) {
    return refuse(response, 403, "Another site may link to this page, but not ask for more than that.");
  }
  await handler(request, response, url);
}

/** What costs nothing, and tells no program anything: browsers keep the page itself from other sites. */
function isForAnySite({ pathname, searchParams }: URL): boolean {
  return FOR_ANY_HOST.has(pathname) || (pathname === "/" && !searchParams.has("search"));
}

function routesOf(desk: Desk, events: Events): ReadonlyMap<string, Handler> {
  const { board } = desk;
  const past = new Past(desk.history);
  const asStatus: Render = () => ({ event: "status", data: board.read() });
  // Without a proof the page is the same for all, and is made once.
  const asPage: Render = () => ({ event: "page", data: describePage(board.read(), reader(desk.actions)) });
  const renderFor = (request: IncomingMessage): Render => {
    const proof = desk.actions?.sessions.proofOf(request);
    if (proof === undefined) return asPage;
    const visitor = { ...reader(desk.actions), proof };
    return () => ({ event: "page", data: describePage(board.read(), visitor) });
  };
  const { actions } = desk;
  const showPage = (
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    history: ShownHistory,
    told?: Said,
  ) => {
    const { proof, cookie, said } = actions?.sessions.greet(request) ?? {};
    if (cookie !== undefined) response.setHeader("set-cookie", cookie);
    const page = renderPage(board.read(), history, { ...reader(actions), proof }, told ?? said);
    send(response, status, "text/html; charset=utf-8", page);
  };
  const saying: ShowPage = (request, response, status, said) =>
    showPage(request, response, status, { search: "", found: [] }, said);
  const changes: [string, Handler][] =
    actions === undefined
      ? []
      : [
          ["/sign-in", (request, response) => signIn(actions, request, response, saying)],
          ["/sign-out", (request, response) => signOut(actions, request, response, saying)],
          ["/api/actions", (request, response) => act(actions, request, response, saying)],
        ];
  return new Map<string, Handler>([
    [
      "/",
      async (request, response, url) => {
        const search = (url.searchParams.get("search") ?? "").trim().slice(0, LONGEST_SEARCH);
        const found = search === "" ? [] : await past.ask(request, response, { search });
        if (found === undefined) {
          return showPage(request, response, 503, { search, found: [] }, { text: BUSY, isError: true });
        }
        showPage(request, response, 200, { search, found });
      },
    ],
    ["/page.css", asset("page.css", "text/css; charset=utf-8")],
    ["/page.js", asset("page.js", "text/javascript; charset=utf-8")],
    ["/icon.svg", asset("icon.svg", "image/svg+xml")],
    ["/api/status", (_request, response) => sendJson(response, 200, board.read())],
    [
      "/api/history",
      async (request, response, url) => {
        const query = parsePastQuery(url.searchParams, Date.now());
        if (typeof query === "string") return sendJson(response, 400, { error: query });
        const found = await past.ask(request, response, query);
        if (found === undefined) sendJson(response, 503, { error: BUSY });
        else sendJson(response, 200, found);
      },
    ],
    [
      "/api/events",
      (request, response, url) => {
        const render = url.searchParams.get("as") === "page" ? renderFor(request) : asStatus;
        if (!events.add(request, response, render)) refuse(response, 503, "Too many are listening.");
      },
    ],
    [
      "/healthz",
      (_request, response) => {
        const stuck = desk.stuck();
        sendJson(response, stuck === undefined ? 200 : 503, { alive: stuck === undefined, stuck });
      },
    ],
    [
      "/readyz",
      (_request, response) => {
        const readiness = readinessOf(board.read());
        sendJson(response, readiness.ready ? 200 : 503, readiness);
      },
    ],
    [
      "/metrics",
      async (_request, response) =>
        send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await desk.metrics()),
    ],
    ...changes,
  ]);
}

function describePage(status: Status, visitor: Visitor) {
  return { at: status.at, title: titleOf(status), sections: renderSections(status, visitor) };
}

/** Whoever has not signed in. */
function reader(actions: Actions | undefined): Visitor {
  return { canSignIn: actions?.sessions.needsToken === true, proof: undefined };
}

/** Read when it is asked for: a daemon whose page nobody opens does not hold it. */
function asset(name: string, type: string): Handler {
  return async (_request, response) => {
    response.setHeader("cache-control", "no-cache");
    send(response, 200, type, await readFile(new URL(`assets/${name}`, import.meta.url), "utf8"));
  };
}

/** A name that somebody else points at this address would let a stranger's page read ours. */
function isOurName(header: string | undefined, hosts: readonly string[]): boolean {
  const name = URL.parse(`http://${header ?? ""}`)?.hostname;
  if (name === undefined) return false;
  const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || ["localhost", hostname().toLowerCase(), ...hosts].includes(name);
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(value)}\n`);
}

function refuse(response: ServerResponse, status: number, message: string): void {
  send(response, status, "text/plain; charset=utf-8", `${message}\n`);
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
  response.end(response.req.method === "HEAD" ? undefined : body);
}
