/** Answers requests: finds the endpoint, applies faults, and sends the answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { prepareBody } from "./body.ts";
import type { World } from "./call.ts";
import type { Control } from "./control.ts";
import { filesWithMessage } from "./eml.ts";
import { ServiceError } from "./errors.ts";
import type { Faults, Strike } from "./faults.ts";
import { type HttpRequest, type Journal, type OpenRecord, recordOf } from "./journal.ts";
import { alterOutgoing, alterReply, beforeAnswer, isIntercepted, quirksOf } from "./misbehave.ts";
import { errorReply, jsonReply, type Reply } from "./reply.ts";
import { checkAccept, checkPath, checkStandardParameters } from "./requests.ts";
import { type FoundRoute, findRoute, type Route } from "./routes.ts";
import { send } from "./send.ts";
import { isAtLeast } from "./settings.ts";
import type { Wires } from "./wire.ts";

/** The parts of the server that requests share. */
export interface Parts {
  readonly world: World;
  readonly routes: readonly Route[];
  readonly faults: Faults;
  readonly journal: Journal;
  readonly wires: Wires;
  readonly control: Control;
  /** Called with one line per finished request. */
  readonly log: (line: string) => void;
}

/** One request, before its answer. */
interface Exchange {
  readonly request: HttpRequest;
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  readonly parts: Parts;
  /** Aborts when the connection closes. */
  readonly signal: AbortSignal;
}

/** Never rejects: a failure ends in an error answer or a closed connection. */
export async function serve(message: IncomingMessage, response: ServerResponse, parts: Parts): Promise<void> {
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  response.sendDate = false;
  const exchange = { request: readRequest(message), message, response, parts, signal: closed.signal };
  try {
    const control = parts.control(exchange.request, message);
    if (control === undefined) await serveService(exchange);
    // Not in the journal, which is for requests to the service.
    else await sendReply(exchange, await control, [], { status: 0, bytes: 0 });
  } catch (error) {
    response.destroy();
    if (!closed.signal.aborted) parts.log(`could not answer: ${error}`);
  }
}

async function serveService(exchange: Exchange): Promise<void> {
  const { request, parts, response, signal } = exchange;
  const startedAt = performance.now();
  const { found, strikes, record } = receive(request, parts);
  response.once("close", () => parts.log(describe(record, strikes, performance.now() - startedAt)));
  const reply = isIntercepted(strikes)
    ? jsonReply(200, {})
    : await replyTo(exchange, found, strikes).catch((error) => {
        signal.throwIfAborted();
        return replyToFailure(error, parts);
      });
  await sendReply(exchange, reply, strikes, record);
}

interface Received {
  /** The route, or the error for an unknown endpoint. */
  readonly found: FoundRoute | ServiceError;
  readonly strikes: readonly Strike[];
  readonly record: OpenRecord;
}

/** Finds the endpoint and the faults that strike, and records the request. */
function receive(request: HttpRequest, { routes, faults, journal, world }: Parts): Received {
  const found = tryFindRoute(routes, request);
  if (found instanceof ServiceError) {
    const record = journal.add(recordOf(request, undefined, undefined, [], world.clock.now()));
    return { found, strikes: [], record };
  }
  const { operation } = found.route;
  const { trackingId, transfers, file } = subjectOf(found.path, world);
  const hasRange = request.headers.range !== undefined;
  const page = Number(request.url.searchParams.get("page") ?? 1) || 1;
  const strikes = faults.strike({ operation, transfers, file, hasRange, page });
  const record = journal.add(recordOf(request, operation, trackingId, strikes, world.clock.now()));
  return { found, strikes, record };
}

async function replyTo(
  { request, message, parts: { world } }: Exchange,
  found: FoundRoute | ServiceError,
  strikes: readonly Strike[],
): Promise<Reply> {
  if (found instanceof ServiceError) throw found;
  const { route, path } = found;
  const { since, until, needs = "everything", type = "application/json" } = route;
  const { version } = world.settings;
  const call = { message, headers: request.headers, url: request.url, path, strikes };
  if (needs !== "nothing") checkStandardParameters(call, world.settings, needs === "everything");
  if ((since && !isAtLeast(version, since)) || (until && isAtLeast(version, until))) {
    throw new ServiceError("noSuchEndpoint");
  }
  checkAccept(call, type);
  checkPath(call);
  return route.handler(call, world);
}

async function sendReply(
  { message, response, parts: { world, wires }, signal }: Exchange,
  reply: Reply,
  strikes: readonly Strike[],
  record: Pick<OpenRecord, "status" | "bytes">,
): Promise<void> {
  const wire = wires.open(response, signal);
  const altered = strikes.reduce((changed, { does }) => alterReply(changed, does), reply);
  const headers = { Date: new Date(world.clock.now()).toUTCString(), ...altered.headers };
  const prepared = await prepareBody({ ...altered, headers }, message.headers, quirksOf(strikes), signal);
  const outgoing = strikes.reduce((changed, { does }) => alterOutgoing(changed, does, wire), prepared);
  if ((await beforeAnswer(strikes, wire)) === "stop") return;
  record.status = outgoing.status;
  await send(outgoing, response, (bytes) => {
    record.bytes += bytes;
  });
}

/** An invalid target becomes an unknown path. */
function readRequest({ method = "GET", url = "/", headers }: IncomingMessage): HttpRequest {
  const target = URL.parse(url.startsWith("/") ? `http://simulator${url}` : url);
  return { method, url: target ?? new URL("http://simulator/unreadable"), headers };
}

function tryFindRoute(routes: readonly Route[], { method, url }: HttpRequest): FoundRoute | ServiceError {
  try {
    decodeURIComponent(url.search);
    return findRoute(routes, method, url.pathname);
  } catch (error) {
    return error instanceof ServiceError ? error : new ServiceError("badValue", "the query is malformed");
  }
}

/** The transfer and the file of a request. */
function subjectOf(path: Readonly<Record<string, string>>, world: World) {
  const { transfer: transferId, file: fileId } = path;
  // A language file belongs to no transfer.
  if (transferId === undefined) return { trackingId: undefined, transfers: [], file: fileId };
  const transfer = world.transfers.open(transferId)?.transfer;
  const file = transfer && filesWithMessage(transfer).find(({ id }) => id === fileId)?.name;
  const transfers = transfer === undefined ? [transferId] : [transferId, transfer.trackingId];
  return { trackingId: transfer?.trackingId, transfers, file };
}

function replyToFailure(error: unknown, { log }: Parts): Reply {
  if (error instanceof ServiceError) return errorReply(error);
  log(`failed: ${error}`);
  return errorReply(new ServiceError("serverFault"));
}

function describe(record: OpenRecord, strikes: readonly Strike[], tookMs: number): string {
  const { method, path, status, bytes } = record;
  const faults = strikes.map(({ id, does }) => ` ${id}:${does.kind}`).join("");
  return `${method} ${path} ${status} ${bytes} bytes ${Math.round(tookMs)} ms${faults}`;
}
