/** Answers requests to the API, by the table of its routes. */
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import * as v from "valibot";
import { MAX_BODY_BYTES } from "../base/bounds.ts";
import { Mutex } from "../base/concurrency.ts";
import { Fault } from "../base/faults.ts";
import { formatMoment } from "../base/phrases.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { PACKAGE_FOLDER } from "../base/version.ts";
import { type AnswerOf, API, API_SHAPES, type ApiPath, type ApiRoute, type BodyOf } from "../model/api.ts";
import type { Actor } from "../model/order.ts";
import { type Parsed, parseQuery } from "../model/queries.ts";
import { headlineOf } from "../model/status.ts";
import { listOpen } from "../operate/list.ts";
import { act, failureOf, problemOf, readBody } from "./actions.ts";
import { refuse, sendJson, sendList, whenClosed } from "./answers.ts";
import { inTurn } from "./callers.ts";
import { titleOf } from "./layout.ts";
import type { ConsoleTools } from "./port.ts";
import { requireRole } from "./sessions.ts";

const OPENAPI = join(PACKAGE_FOLDER, "config/inlet.openapi.json");

interface Asked<Path extends ApiPath> {
  readonly query: Parsed<(typeof API)[Path]["query"]>;
  readonly body: BodyOf<Path>;
  /** Without a name if reading is open. */
  readonly by: Actor;
  readonly response: ServerResponse;
}

/** Handlers throw faults, or return `undefined` after they have answered themselves. */
type Handlers = {
  readonly [Path in ApiPath]: (
    asked: Asked<Path>,
  ) => AnswerOf<Path> | undefined | Promise<AnswerOf<Path> | undefined>;
};

/** Returns a function that answers one request, or throws a fault. */
export function makeApi(tools: ConsoleTools) {
  const handlers = handlersOf(tools);
  return async (path: ApiPath, response: ServerResponse, parameters: URLSearchParams): Promise<void> => {
    const route: ApiRoute = API[path];
    const by = await requireRole(tools.access, route.role, response.req);
    const text = route.body === undefined ? "" : await readBody(response.req, MAX_BODY_BYTES);
    if (text === undefined) throw new Fault("REQUEST_TOO_LARGE");
    const query = parseQuery(route.query as v.GenericSchema<unknown, object>, parameters, tools.clock.now());
    if (typeof query === "string") throw new Fault("REQUEST_INVALID", { detail: query });
    const body = route.body === undefined ? undefined : parseBody(API_SHAPES[route.body], text);
    // The table gives each handler the types of its own route.
    const handle = handlers[path] as (asked: unknown) => Promise<object | undefined>;
    const answer = await handle({ query, body, by, response });
    if (answer !== undefined) sendJson(response, 200, answer);
  };
}

function handlersOf(tools: ConsoleTools): Handlers {
  const { board, operate, journal, streams, callers } = tools;
  const lists = new Mutex();
  /** Sends an answer of the journal before the next one is read: only one is in memory at once. */
  const sendJournal = async <Key extends string>(
    response: ServerResponse,
    key: Key,
    read: (signal: AbortSignal) => Promise<Readonly<Record<Key, readonly unknown[]>>>,
  ) => {
    const isSent = await journal.run(response, async (signal) => {
      const { [key]: list, ...others } = await read(signal);
      await sendList(callers, response, others, key, list);
      return true;
    });
    if (isSent === undefined) throw new Fault("BUSY");
    return undefined;
  };
  const makeStatus = () => ({ event: "status", data: board.read() });
  const makeHeartbeat = () => {
    const status = board.read();
    const { at } = status;
    const clock = formatMoment(at, status.daemon.timezone).slice(11);
    const data = { at, clock, title: titleOf(status), ...headlineOf(status), version: streams.version };
    return { event: "heartbeat", data };
  };
  return {
    "/api/status": () => board.read(),
    "/api/transfers": async ({ query, response }) => {
      if (query.group === undefined)
        return sendJournal(response, "transfers", (signal) => operate.list(query, signal));
      const gone = whenClosed(response);
      const release = await lists.lock(gone);
      try {
        const { transfers, ...page } = await inTurn(gone, () => listOpen(board.transfers(), query));
        const helped = transfers.values().map((it) => board.withHelp(it));
        await sendList(callers, response, page, "transfers", helped);
      } finally {
        release?.();
      }
      return undefined;
    },
    "/api/transfers/story": async ({ query }) => {
      const story = await operate.story(query);
      if (story === undefined) throw new Fault("NO_SUCH_TRANSFER");
      return story;
    },
    "/api/transfers/objection": async ({ query: { act, ...key } }) => ({
      objection: (await operate.objectionTo(act, key)) ?? null,
    }),
    "/api/history": ({ query, response }) =>
      sendJournal(response, "entries", (signal) => operate.history(query.kind, query, signal)),
    "/api/events": ({ query, response }) => {
      if (streams.add(response, query.as === "heartbeat" ? makeHeartbeat : makeStatus))
        return callers.release(response) as undefined;
      throw new Fault("BUSY", { detail: "There are too many listeners." });
    },
    // Made from the table of routes and its shapes.
    "/api/openapi.json": async () => JSON.parse(await readFile(OPENAPI, "utf8")),
    "/api/actions": (asked) => actForProgram(tools, asked),
    "/api/mailboxes/actions": async ({ body: { action: act, mailbox, wait }, by, response }) => {
      const gone = whenClosed(response);
      const given = { act, mailbox, isAwaited: wait > 0 };
      const acted = operate.actOnMailboxes(given, by, wait * 1000, gone);
      return { results: await acted.catch(failureOf(mailbox)) };
    },
  };
}

/** `/api/actions`: an action from a program, answered with the outcome of each transfer. */
async function actForProgram(
  tools: ConsoleTools,
  { body, by, response }: Asked<"/api/actions">,
): Promise<AnswerOf<"/api/actions"> | undefined> {
  const { action, mailbox, trackingId, transfers, password, wait } = body;
  const one = mailbox === undefined || trackingId === undefined ? [] : [{ mailbox, trackingId }];
  const keys = transfers ?? one;
  const problem = problemOf(action, keys, password);
  if (problem !== undefined) throw new Fault("REQUEST_INVALID", { detail: problem });
  const waitEnded = pauseOrAbort(wait * 1000, whenClosed(response));
  const running = await act(tools, action, keys, password, by, waitEnded);
  await running.submitted;
  if (wait > 0) await Promise.race([running.settled, waitEnded]);
  const results = running.results();
  const [first] = results;
  // A single transfer that is refused is an error of the request.
  if (transfers !== undefined || first === undefined || first.status === 200) return { results };
  const code = ({ 404: "NO_SUCH_TRANSFER", 409: "ORDER_IMPOSSIBLE" } as const)[first.status];
  refuse(response, first.status, first.text, { results, ...(code === undefined ? {} : { code }) });
  return undefined;
}

function parseBody(shape: v.GenericSchema, text: string): unknown {
  // A body may be wrong in many places.
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), shape), text, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const key = parsed.issues[0].path?.map((step) => String(step.key)).join(".") ?? "the body";
  const detail = `${key} is not valid: /api/openapi.json describes the body.`;
  throw new Fault("REQUEST_INVALID", { detail });
}
