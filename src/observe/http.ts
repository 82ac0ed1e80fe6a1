/** The console and its API over HTTP. Reading is open to everyone who reaches the address; actions need a token. */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP } from "node:net";
import { hostname } from "node:os";
import type { Status } from "../model/status.ts";
import { type Actions, act, type ShowPage, signIn, signOut } from "./actions.ts";
import type { Board } from "./board.ts";
import { Events, type Render } from "./events.ts";
import { renderPage, renderSections, type ShownHistory, titleOf } from "./page.ts";
import type { Visitor } from "./page-transfers.ts";
import { LONGEST_SEARCH, Past, parsePastQuery, type ReadPast } from "./past.ts";
import type { Notice } from "./sessions.ts";

export interface HttpOptions {
  readonly board: Board;
  /** In Prometheus's text format. */
  metrics(): Promise<string>;
  readonly history: ReadPast;
  /** `undefined`: the console is read-only. */
  readonly actions: Actions | undefined;
  /** Host names of the console, besides addresses, `localhost` and the machine's own name. */
  readonly hosts: readonly string[];
  /** Names the work that hangs, if any. */
  stuck(): string | undefined;
}

type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void;

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

/** For machines, under any host name: these reveal nothing about senders. */
const FOR_ANY_HOST: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);
const CHANGES: ReadonlySet<string> = new Set(["/sign-in", "/sign-out", "/api/actions"]);
const BUSY = "Other searches are running: try again in a moment.";

/** Not listening yet. Closing the server ends every connection. */
export function createHttp(options: HttpOptions): Server {
  const events = new Events(options.board);
  const routes = routesOf(options, events);
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    response.on("error", () => {});
    answer(routes, options.hosts, request, response).catch(() => response.destroy());
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
  if (url === null || handler === undefined) return refuse(response, 404, "Not found.");
  const isChange = CHANGES.has(url.pathname);
  if (isChange ? method !== "POST" : method !== "GET" && method !== "HEAD") {
    response.setHeader("allow", isChange ? "POST" : "GET, HEAD");
    return refuse(response, 405, isChange ? "Use POST." : "Use GET or HEAD.");
  }
  if (!FOR_ANY_HOST.has(url.pathname) && !isOurName(headers.host, hosts)) {
    return refuse(response, 421, "Unknown host name: add it to http.hosts in the configuration.");
  }
  if (headers["sec-fetch-site"] === "cross-site" && !isForAnySite(url)) {
    return refuse(response, 403, "Other sites may only link to the console itself.");
  }
  await handler(request, response, url);
}

/** Cheap requests whose answers browsers keep from other sites. */
function isForAnySite({ pathname, searchParams }: URL): boolean {
  return FOR_ANY_HOST.has(pathname) || (pathname === "/" && !searchParams.has("search"));
}

function routesOf(options: HttpOptions, events: Events): ReadonlyMap<string, Handler> {
  const { board, actions, metrics, stuck } = options;
  const past = new Past(options.history);
  const anonymous: Visitor = { canSignIn: actions?.sessions.needsToken === true, proof: undefined };
  const asStatus: Render = () => ({ event: "status", data: board.read() });
  // The same for all anonymous visitors, and rendered once for them.
  const asPage: Render = () => ({ event: "page", data: describePage(board.read(), anonymous) });
  const renderFor = (request: IncomingMessage): Render => {
    const proof = actions?.sessions.proofOf(request);
    if (proof === undefined) return asPage;
    return () => ({ event: "page", data: describePage(board.read(), { ...anonymous, proof }) });
  };
  const showPage = (
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    history: ShownHistory,
    notice?: Notice,
  ) => {
    const session = actions?.sessions.resume(request) ?? {};
    if (session.cookie !== undefined) response.setHeader("set-cookie", session.cookie);
    const visitor = { ...anonymous, proof: session.proof };
    const page = renderPage(board.read(), history, visitor, notice ?? session.notice);
    send(response, status, "text/html; charset=utf-8", page);
  };
  const showNotice: ShowPage = (request, response, status, notice) =>
    showPage(request, response, status, { search: "", found: [] }, notice);
  const changes: [string, Handler][] =
    actions === undefined
      ? []
      : [
          ["/sign-in", (request, response) => signIn(actions, request, response, showNotice)],
          ["/sign-out", (request, response) => signOut(actions, request, response, showNotice)],
          ["/api/actions", (request, response) => act(actions, request, response, showNotice)],
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
        if (!events.add(request, response, render)) refuse(response, 503, "Too many listeners.");
      },
    ],
    [
      "/healthz",
      (_request, response) => {
        const work = stuck();
        sendJson(response, work === undefined ? 200 : 503, { alive: work === undefined, stuck: work });
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
        send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await metrics()),
    ],
    ...changes,
  ]);
}

function describePage(status: Status, visitor: Visitor) {
  return { at: status.at, title: titleOf(status), sections: renderSections(status, visitor) };
}

export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

/** Not ready with trouble of the disk or the queue, or while not a single mailbox can be polled. */
export function readinessOf({ troubles, mailboxes, daemon }: Status): Readiness {
  const general = troubles.filter(({ what }) => what === "disk" || what === "queue");
  const active = mailboxes.filter(({ paused }) => !paused);
  const polls = daemon.role !== "worker" && active.length > 0;
  const allFail = polls && active.every(({ trouble }) => trouble !== undefined);
  const nonePolled = polls && active.every(({ lastPoll }) => lastPoll === undefined);
  const reasons = [
    ...general.map(({ message }) => message),
    ...(allFail ? ["No mailbox can be polled."] : []),
    ...(nonePolled ? ["No mailbox has been polled yet."] : []),
  ];
  return { ready: reasons.length === 0, reasons };
}

/** Read for each request, so that an unused page takes no memory. */
function asset(name: string, type: string): Handler {
  return async (_request, response) => {
    response.setHeader("cache-control", "no-cache");
    send(response, 200, type, await readFile(new URL(`assets/${name}`, import.meta.url), "utf8"));
  };
}

/** Prevents DNS rebinding: a foreign name that points at this address would let another site read the page. */
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
