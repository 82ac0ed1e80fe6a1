/** The console and its API over HTTP. Reading is open unless a token is demanded; actions always need one. */
import { readFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { isIP, Server } from "node:net";
import { hostname } from "node:os";
import { MAX_BODY_BYTES, MAX_SIGN_IN_BYTES } from "../base/bounds.ts";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { asFault, Fault } from "../base/faults.ts";
import { monotonicMs } from "../base/timers.ts";
import { API, API_VERSION, type ApiPath, type ApiRoute } from "../model/api.ts";
import { isPolled, type MailboxStatus, type Status } from "../model/status.ts";
import { FORMS, readBody } from "./actions.ts";
import { explain, refuse, send, sendJson, statusOf, whenClosed } from "./answers.ts";
import { makeApi } from "./api.ts";
import { Callers, inTurn } from "./callers.ts";
import { EventStreams } from "./events.ts";
import { JournalAccess } from "./journal.ts";
import type { ConsoleServer } from "./listen.ts";
import { Outcomes } from "./outcomes.ts";
import { PAGES, showNotice, showPage } from "./pages.ts";
import type { ConsolePort, ConsoleTools } from "./port.ts";
import { requireRole } from "./sessions.ts";

interface Route {
  /** May throw faults. */
  handle(response: ServerResponse, url: URL): Promise<void> | void;
  /** Other sites may request a `machine` route, and link to a `page`. They may use no other kind. */
  readonly kind: "page" | "api" | "asset" | "machine" | "change";
  readonly method?: "POST";
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

const ASSETS = {
  "console.css": "text/css; charset=utf-8",
  "console.js": "text/javascript; charset=utf-8",
  "icon.svg": "image/svg+xml",
} as const;

const PROBES = ["/healthz", "/readyz"];
/** What `/readyz` answers is known for so long: it costs more than a visitor may ask for at will. */
const READINESS_KEPT_MS = 200;

/** Not listening yet. */
export function createConsole(port: ConsolePort, clock: Clock): ConsoleServer {
  const streams = new EventStreams();
  const changed = () => streams.changed();
  const outcomes = new Outcomes(clock, changed);
  const [server, http] = [new Server(), createServer()];
  const callers = new Callers(server, http, port.onLimited);
  const tools = { ...port, clock, journal: new JournalAccess(port), outcomes, streams, callers };
  const routes = routesOf(tools);
  http.on("request", (_request, response) => {
    // The client has gone.
    response.on("error", () => {});
    answer(tools, routes, response)
      // It rejects only if the answer has begun, or the client has left: every other error is answered.
      .catch(() => response.destroy())
      .finally(() => callers.trim());
  });
  let stopWatching = () => {};
  server.on("listening", () => {
    stopWatching();
    stopWatching = port.board.onChange(changed);
  });
  server.on("close", () => {
    stopWatching();
    streams.close();
  });
  return Object.assign(server, { closeAllConnections: () => callers.end() });
}

async function answer(
  tools: ConsoleTools,
  routes: ReadonlyMap<string, Route>,
  response: ServerResponse,
): Promise<void> {
  const { url: target = "" } = response.req;
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  if (target.startsWith("/api/")) response.setHeader("inlet-api", API_VERSION);
  const url = URL.parse(`http://here${target}`);
  const route = url === null ? undefined : routes.get(url.pathname);
  if (url === null || route === undefined) return refuse(response, 404, "Not found.");
  if (tryRefuse(route, url, tools, response)) return;
  const isProbe = PROBES.includes(url.pathname);
  if (!isProbe && !tools.callers.tryAdmit(response))
    return refuse(response, 503, "Too many requests at once: try again in a moment.", { code: "BUSY" });
  // A probe is answered at once, whatever other requests suffer.
  const gone = whenClosed(response);
  const run = <Result>(work: () => Result) => (isProbe ? work() : inTurn(gone, work));
  try {
    await run(() => checkRights(route, url, tools, response.req));
    await run(() => route.handle(response, url));
  } catch (error) {
    const fault = asFault(error);
    if (response.headersSent || gone.aborted) throw fault;
    if (route.kind !== "page" && route.kind !== "change")
      return refuse(response, statusOf(fault), explain(fault), { code: fault.code });
    const text = fault.code === "UNAUTHORIZED" ? "Sign in first." : explain(fault);
    await inTurn(gone, () => showNotice(tools, response, statusOf(fault), { text, isError: true }));
  }
}

/** Refuses requests with a wrong method, under a foreign name, or from another site. Returns whether it did. */
function tryRefuse(route: Route, url: URL, { hosts }: ConsolePort, response: ServerResponse): boolean {
  const { method = "", headers } = response.req;
  const methods = route.method === "POST" ? ["POST"] : ["GET", "HEAD"];
  // A proxy may have looked at another one than we do.
  const hasTwoHosts = (response.req.headersDistinct["host"] ?? []).length > 1;
  const isWrongMethod = !methods.includes(method);
  // A liveness probe reveals nothing, and may come under any name.
  const isForeignName = url.pathname !== "/healthz" && !isOurName(headers.host, hosts);
  const isOtherSite = headers["sec-fetch-site"] === "cross-site" && !isForAnySite(route, url, headers);
  if (hasTwoHosts) {
    refuse(response, 400, "More than one host name.");
  } else if (isWrongMethod) {
    response.setHeader("allow", methods.join(", "));
    refuse(response, 405, `Use ${methods.join(" or ")}.`);
  } else if (isForeignName) {
    refuse(response, 421, "Unknown host name: add it to http.hosts in the configuration.");
  } else if (isOtherSite) {
    refuse(response, 403, "Other sites may only link to the pages.", { code: "NOT_ALLOWED" });
  }
  return hasTwoHosts || isWrongMethod || isForeignName || isOtherSite;
}

/** The API and forms check the role of each request themselves. Assets reveal nothing, and neither does `/healthz`. */
async function checkRights(
  { kind }: Route,
  { pathname }: URL,
  { access }: ConsolePort,
  request: IncomingMessage,
): Promise<void> {
  const isClosed = kind === "machine" && access?.read === "token-for-all" && pathname !== "/healthz";
  if (kind === "page" || isClosed) await requireRole(access, "read", request);
  else if (pathname === "/metrics") await access?.refuseWrongToken(request);
}

/** Whether another site may cause this request. A link to a page is allowed, but no expensive search in the journal. */
function isForAnySite(
  { kind }: Route,
  { pathname, searchParams }: URL,
  { "sec-fetch-mode": mode = "navigate" }: IncomingHttpHeaders,
): boolean {
  const isSearch = pathname === "/history" && searchParams.has("text");
  return kind === "machine" || (kind === "page" && mode === "navigate" && !isSearch);
}

function routesOf(tools: ConsoleTools): ReadonlyMap<string, Route> {
  const { access, board, stuck } = tools;
  const metrics = new Coalesced(tools.metrics);
  const answerApi = makeApi(tools);
  const routes = new Map<string, Route>();
  for (const [path, page] of Object.entries(PAGES)) {
    routes.set(path, { kind: "page", handle: (response, url) => showPage(tools, response, url, page) });
  }
  for (const [path, { method }] of Object.entries(API) as [ApiPath, ApiRoute][]) {
    const handle: Route["handle"] = (response, url) => answerApi(path, response, url.searchParams);
    routes.set(path, { kind: "api", handle, ...(method === "POST" ? { method } : {}) });
  }
  for (const [name, type] of Object.entries(ASSETS)) {
    routes.set(`/${name}`, { kind: "asset", handle: (response) => sendAsset(response, name, type) });
  }
  const addMachine = (path: string, handle: Route["handle"]) => routes.set(path, { kind: "machine", handle });
  addMachine("/healthz", (response) => {
    const work = stuck();
    sendJson(response, work === undefined ? 200 : 503, { alive: work === undefined, stuck: work });
  });
  let known = { atMs: Number.NEGATIVE_INFINITY, readiness: { ready: false, reasons: [""] } };
  addMachine("/readyz", (response) => {
    const atMs = monotonicMs();
    if (atMs - known.atMs > READINESS_KEPT_MS) known = { atMs, readiness: readinessOf(board.read()) };
    const { readiness } = known;
    sendJson(response, readiness.ready ? 200 : 503, readiness);
  });
  addMachine("/metrics", async (response) =>
    send(response, 200, "text/plain; version=0.0.4; charset=utf-8", await metrics.run()),
  );
  if (access === undefined) return routes;
  for (const [path, handleForm] of Object.entries(FORMS)) {
    const handle = async (response: ServerResponse) => {
      const isSignIn = path === "/sign-in";
      await access.admitForm(response.req, isSignIn);
      const body = await readBody(response.req, isSignIn ? MAX_SIGN_IN_BYTES : MAX_BODY_BYTES);
      if (body === undefined) throw new Fault("REQUEST_TOO_LARGE");
      await handleForm(tools, { access, response, fields: new URLSearchParams(body) });
    };
    routes.set(path, { kind: "change", method: "POST", handle });
  }
  return routes;
}

/**
 * Not ready with trouble of the disk or the queue, before the first poll, while no mailbox can be polled, and while one is
 * not polled in time.
 */
export function readinessOf(status: Status) {
  const { troubles, mailboxes, daemon } = status;
  const general = troubles.filter(({ what }) => what === "disk" || what === "queue");
  const active = mailboxes.filter(({ paused }) => !paused);
  const polls = daemon.role !== "worker" && active.length > 0;
  const allFail = polls && active.every(({ trouble }) => trouble !== undefined);
  const late = active.filter(({ overdueSince }) => overdueSince !== undefined);
  const reasons = [
    ...general.map(({ message }) => message),
    ...(allFail ? ["No mailbox can be polled."] : []),
    ...(late.length > 0 && !allFail ? [describeLate(late)] : []),
    ...(!isPolled(status) ? ["No mailbox has been polled yet."] : []),
  ];
  return { ready: reasons.length === 0, reasons };
}

function describeLate([first, ...others]: readonly MailboxStatus[]): string {
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `Not polled in time: ${first?.name}${more}.`;
}

async function sendAsset(response: ServerResponse, name: string, type: string): Promise<void> {
  response.setHeader("cache-control", "no-cache");
  send(response, 200, type, await readFile(new URL(`assets/${name}`, import.meta.url)));
}

/** Prevents DNS rebinding: a foreign name that points at this address would let another site read the console. */
function isOurName(header: string | undefined, hosts: readonly string[]): boolean {
  const name = URL.parse(`http://${header ?? ""}`)?.hostname;
  if (name === undefined) return false;
  const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || ["localhost", hostname().toLowerCase(), ...hosts].includes(name);
}
