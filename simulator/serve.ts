/** Answers requests: finds the endpoint, lets faults strike, and sends what comes of it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { prepareBody } from "./body.ts";
import type { World } from "./call.ts";
import { ServiceError } from "./errors.ts";
import type { Faults, Strike } from "./faults.ts";
import { type Asked, type Journal, type OpenRecord, recordOf } from "./journal.ts";
import { alterOutgoing, alterReply, beforeAnswer, isIntercepted, quirksOf } from "./misbehave.ts";
import { errorReply, jsonReply, type Reply } from "./reply.ts";
import { checkStandardParameters } from "./requests.ts";
import { type FoundRoute, findRoute, type Route } from "./routes.ts";
import { send } from "./send.ts";
import { isAtLeast } from "./settings.ts";
import type { Wires } from "./wire.ts";

/** What is at hand for every request. */
export interface Desk {
  readonly world: World;
  readonly routes: readonly Route[];
  readonly faults: Faults;
  readonly journal: Journal;
  readonly wires: Wires;
  /** Answers what is asked of the simulator itself; `undefined` where the request is for the service. */
  readonly control: (asked: Asked, message: IncomingMessage) => Promise<Reply> | undefined;
  /** Hears one line about each request when it is over. */
  readonly log: (line: string) => void;
}

/** One request and its answer to be. */
interface Exchange {
  readonly asked: Asked;
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  readonly desk: Desk;
  /** Aborted when the connection is gone. */
  readonly signal: AbortSignal;
}

/** Never rejects: whatever goes wrong ends in an answer, or in a connection that is closed. */
export async function serve(message: IncomingMessage, response: ServerResponse, desk: Desk): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  response.sendDate = false;
  const exchange = { asked: readAsked(message), message, response, desk, signal: gone.signal };
  try {
    const control = desk.control(exchange.asked, message);
    if (control === undefined) await serveService(exchange);
    else await sendReply(exchange, await control, []);
  } catch (error) {
    response.destroy();
    if (!gone.signal.aborted) desk.log(`could not answer: ${error}`);
  }
}

async function serveService(exchange: Exchange): Promise<void> {
  const { asked, desk, response, signal } = exchange;
  const startedAt = performance.now();
  const { found, strikes, record } = receive(asked, desk);
  response.once("close", () => desk.log(describe(record, strikes, performance.now() - startedAt)));
  const reply = isIntercepted(strikes)
    ? jsonReply(200, {})
    : await replyTo(exchange, found, strikes).catch((error) => {
        signal.throwIfAborted();
        return replyToFailure(error, desk);
      });
  await sendReply(exchange, reply, strikes, record);
}

interface Received {
  /** Or why there is no endpoint for the request. */
  readonly found: FoundRoute | ServiceError;
  readonly strikes: readonly Strike[];
  readonly record: OpenRecord;
}

/** Finds the endpoint and the faults that strike, and notes the request down. */
function receive(asked: Asked, { routes, faults, journal, world }: Desk): Received {
  const found = tryFindRoute(routes, asked);
  if (found instanceof ServiceError) {
    const record = journal.begin(recordOf(asked, undefined, undefined, [], world.clock.now()));
    return { found, strikes: [], record };
  }
  const { operation } = found.route;
  const { trackingId, transfers, file } = subjectOf(found.path, world);
  const hasRange = asked.headers.range !== undefined;
  const page = Number(asked.url.searchParams.get("page") ?? 1) || 1;
  const strikes = faults.strike({ operation, transfers, file, hasRange, page });
  const record = journal.begin(recordOf(asked, operation, trackingId, strikes, world.clock.now()));
  return { found, strikes, record };
}

async function replyTo(
  { asked, message, desk: { world } }: Exchange,
  found: FoundRoute | ServiceError,
  strikes: readonly Strike[],
): Promise<Reply> {
  if (found instanceof ServiceError) throw found;
  const { route, path } = found;
  const { since, until, needs = "everything" } = route;
  const { version } = world.settings;
  const call = { message, headers: asked.headers, url: asked.url, path, strikes };
  if (needs !== "nothing") checkStandardParameters(call, world.settings, needs === "everything");
  if ((since && !isAtLeast(version, since)) || (until && isAtLeast(version, until))) {
    throw new ServiceError("noSuchEndpoint");
  }
  return route.handler(call, world);
}

async function sendReply(
  { message, response, desk: { world, wires }, signal }: Exchange,
  reply: Reply,
  strikes: readonly Strike[],
  record?: OpenRecord,
): Promise<void> {
  const wire = wires.open(response, signal);
  const altered = strikes.reduce((sofar, { does }) => alterReply(sofar, does), reply);
  const headers = { Date: new Date(world.clock.now()).toUTCString(), ...altered.headers };
  const prepared = await prepareBody({ ...altered, headers }, message.headers, quirksOf(strikes), signal);
  const outgoing = strikes.reduce((sofar, { does }) => alterOutgoing(sofar, does, wire), prepared);
  if ((await beforeAnswer(strikes, wire)) === "stop") return;
  record?.status(outgoing.status);
  await send(outgoing, response, (bytes) => record?.bytes(bytes));
}

/** A target that cannot be read is taken for a path that there is not. */
function readAsked({ method = "GET", url = "/", headers }: IncomingMessage): Asked {
  const target = URL.parse(url.startsWith("/") ? `http://simulator${url}` : url);
  return { method, url: target ?? new URL("http://simulator/unreadable"), headers };
}

function tryFindRoute(routes: readonly Route[], { method, url }: Asked): FoundRoute | ServiceError {
  try {
    decodeURIComponent(url.search);
    return findRoute(routes, method, url.pathname);
  } catch (error) {
    return error instanceof ServiceError ? error : new ServiceError("badValue", "the query is malformed");
  }
}

/** Which transfer and which file a request is about. */
function subjectOf(path: Readonly<Record<string, string>>, world: World) {
  const { transfer: transferId, file: fileId } = path;
  if (transferId === undefined) return { trackingId: undefined, transfers: [], file: fileId };
  const transfer = world.transfers.open(transferId)?.transfer;
  const file = transfer?.files.find(({ id }) => id === fileId)?.name;
  const transfers = transfer === undefined ? [transferId] : [transferId, transfer.trackingId];
  return { trackingId: transfer?.trackingId, transfers, file };
}

function replyToFailure(error: unknown, { log }: Desk): Reply {
  if (error instanceof ServiceError) return errorReply(error);
  log(`failed: ${error}`);
  return errorReply(new ServiceError("serverFault"));
}

function describe(record: OpenRecord, strikes: readonly Strike[], tookMs: number): string {
  const { method, path, status, bytes } = record.read();
  const faults = strikes.map(({ id, does }) => ` ${id}:${does.kind}`).join("");
  return `${method} ${path} ${status} ${bytes} bytes ${Math.round(tookMs)} ms${faults}`;
}
