/** Requests that change something: signing in and out, and actions on one or many transfers. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";
import type { Clock } from "../base/clock.ts";
import { Secret } from "../base/secret.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { ACT_TEXTS } from "../model/actions.ts";
import { type Actor, TRANSFER_ACTS, type TransferAct } from "../model/order.ts";
import { ListQueryShape, parseQuery } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import type { TransferStatus } from "../model/status.ts";
import type { RunningAct } from "../operate/acting.ts";
import { filterOpen } from "../operate/list.ts";
import { sendJson } from "./answers.ts";
import type { Html } from "./html.ts";
import type { Notice } from "./layout.ts";
import type { Outcomes } from "./outcomes.ts";
import type { ConsoleActions, ConsolePort } from "./port.ts";
import { formatKey, parseKey } from "./rows.ts";
import { isTransferAct, renderConfirmation } from "./transfers.ts";

/** A list may name a thousand transfers. */
const MAX_BODY_BYTES = 512 * 1024;
const MAX_AT_ONCE = 10_000;
/** How long pages wait for an outcome. */
const PAGE_WAIT_MS = 10 * 60_000;
/** As long as `--timeout` of a command may be. */
const MAX_WAIT_SECONDS = 7 * 24 * 60 * 60;

/** Seconds to wait for the outcome. */
export const WaitShape = v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(MAX_WAIT_SECONDS)), 0);

const UNREADABLE = "A token cannot be read now: see http.token in the configuration.";
const NOT_ALLOWED = "Sign in first, or send a token.";
const WRONG_TOKEN = {
  refused: "The token is wrong.",
  throttled: "There were too many wrong tokens: wait a minute.",
} as const;

const RequestShape = v.object({
  action: v.picklist(TRANSFER_ACTS),
  mailbox: v.optional(v.string()),
  trackingId: v.optional(v.string()),
  transfers: v.optional(v.array(v.object({ mailbox: v.string(), trackingId: v.string() }))),
  password: v.optional(v.string()),
  wait: WaitShape,
});

export interface ActionTools {
  readonly actions: ConsoleActions;
  readonly operate: ConsolePort["operate"];
  readonly outcomes: Outcomes;
  readonly clock: Clock;
  transfers(): readonly TransferStatus[];
  /** Answers with a page that shows the notice, or `body`. */
  show(
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    notice?: Notice,
    body?: Html,
  ): void;
}

/** `/sign-in`: exchanges a token for a cookie. */
export async function signIn(
  tools: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const { actions, show } = tools;
  const fields = new URLSearchParams(body);
  const refuse = (status: number, text: string) =>
    fields.has("page")
      ? show(request, response, status, { text, isError: true })
      : sendJson(response, status, { error: text });
  if (!(await actions.renew())) return refuse(503, UNREADABLE);
  const { authorization, cookie } = await actions.sessions.signIn(request, fields.get("token") ?? "");
  if (authorization.kind !== "granted" || cookie === undefined) {
    const kind = authorization.kind === "throttled" ? "throttled" : "refused";
    return refuse(kind === "throttled" ? 429 : 403, WRONG_TOKEN[kind]);
  }
  response.writeHead(303, { location: backOf(fields), "set-cookie": cookie }).end();
}

/** `/sign-out`: ends the session. */
export async function signOut(
  { actions, show }: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const fields = new URLSearchParams(body);
  const { kind } = await actions.sessions.authorize(request, fields.get("proof") ?? undefined);
  if (kind !== "granted") return show(request, response, 403, { text: NOT_ALLOWED, isError: true });
  response.writeHead(303, { location: "./", "set-cookie": actions.sessions.signOut(request) }).end();
}

/** `/api/actions`: an action from a program, answered with the outcome of each transfer. */
export async function actForProgram(
  tools: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const by = await authorizeProgram(tools, request, response);
  if (by === undefined) return;
  const parsed = v.safeParse(RequestShape, parseJson(body));
  if (!parsed.success) return sendJson(response, 400, { error: explain(parsed.issues) });
  const { action, mailbox, trackingId, transfers, password, wait } = parsed.output;
  const one = mailbox === undefined || trackingId === undefined ? [] : [{ mailbox, trackingId }];
  const keys = transfers ?? one;
  const problem = problemOf(action, keys, password);
  if (problem !== undefined) return sendJson(response, 400, { error: problem });
  const clientGone = new AbortController();
  response.once("close", () => clientGone.abort());
  const waitEnded = pauseOrAbort(wait * 1000, clientGone.signal);
  const running = await act(tools, action, keys, password, by, waitEnded);
  await running.submitted;
  if (wait > 0) await Promise.race([running.settled, waitEnded]);
  const results = await running.results();
  const [first] = results;
  // A single transfer that is refused is an error of the request.
  const status = transfers === undefined && first !== undefined ? first.status : 200;
  sendJson(response, status, { results, ...(status === 200 ? {} : { error: first?.text }) });
}

/** `undefined` if the program may not act: then it is answered. */
export async function authorizeProgram(
  { actions }: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Actor | undefined> {
  if (!(await actions.renew())) return void sendJson(response, 503, { error: UNREADABLE });
  const authorization = await actions.sessions.authorize(request, undefined);
  if (authorization.kind === "granted") return authorization.by;
  const isThrottled = authorization.kind === "throttled";
  const error = isThrottled ? WRONG_TOKEN.throttled : NOT_ALLOWED;
  return void sendJson(response, isThrottled ? 429 : 403, { error });
}

/** `/actions`: an action from a form, answered with the page that it came from. */
export async function actForPage(
  tools: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const { actions, show } = tools;
  const fields = new URLSearchParams(body);
  const by = await authorizePage(tools, request, response, fields);
  if (by === undefined) return;
  const action = fields.get("action") ?? "";
  if (!isTransferAct(action)) return show(request, response, 400, { text: "Unknown action.", isError: true });
  const keys = selectedIn(fields, tools);
  const password = fields.get("password") ?? undefined;
  const back = backOf(fields);
  const needsQuestion =
    keys.length > 1 ? ACT_TEXTS[action].warning !== undefined : action === "password" && !password;
  const isAsked = needsQuestion && !fields.has("confirm");
  const problem = problemOf(action, keys, isAsked || password);
  if (problem !== undefined) {
    actions.sessions.setNotice(request, { text: problem, isError: true });
    return void response.writeHead(303, { location: back }).end();
  }
  if (isAsked) {
    const wanted = new Set(keys.map(formatKey));
    const found = tools.transfers().filter((transfer) => wanted.has(formatKey(transfer)));
    const hidden = { proof: fields.get("proof") ?? "", page: "yes", back };
    return show(request, response, 200, undefined, renderConfirmation(action, found, hidden, [...wanted]));
  }
  // The page shows the outcomes when they are known.
  await act(tools, action, keys, password, by);
  response.writeHead(303, { location: back }).end();
}

/** `undefined` if the visitor may not act: then a page says so. */
export async function authorizePage(
  { actions, show }: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  fields: URLSearchParams,
): Promise<Actor | undefined> {
  const refuse = (status: number, text: string) => show(request, response, status, { text, isError: true });
  if (!(await actions.renew())) return void refuse(503, UNREADABLE);
  const authorization = await actions.sessions.authorize(request, fields.get("proof") ?? undefined);
  return authorization.kind === "granted" ? authorization.by : void refuse(403, NOT_ALLOWED);
}

/** Starts the act, and shows its outcomes as they come. They are awaited at least ten minutes, and until `waitEnded`. */
function act(
  { operate, outcomes }: ActionTools,
  action: TransferAct,
  transfers: readonly TransferKey[],
  password: string | undefined,
  by: Actor,
  waitEnded?: Promise<void>,
): Promise<RunningAct> {
  const note = outcomes.begin(action, by, transfers);
  const stopWaiting = new AbortController();
  void Promise.all([pause(PAGE_WAIT_MS, undefined, { ref: false }), waitEnded]).then(() =>
    stopWaiting.abort(),
  );
  const secret = password === undefined ? undefined : new Secret(password);
  const request = { act: action, transfers, password: secret, isForMailbox: true };
  return operate.start(request, by, stopWaiting.signal, (result) => note(result, result));
}

function problemOf(
  action: TransferAct,
  keys: readonly TransferKey[],
  hasPassword: string | boolean | undefined,
): string | undefined {
  if (keys.length === 0) return "No transfer is selected.";
  if (keys.length > MAX_AT_ONCE) return `At most ${MAX_AT_ONCE} transfers at once.`;
  return action === "password" && !hasPassword ? "The password is missing." : undefined;
}

/** The transfers that a form selects: the ticked ones, or all that match its filter. */
function selectedIn(fields: URLSearchParams, { transfers, clock }: ActionTools): readonly TransferKey[] {
  if (!fields.has("all")) return fields.getAll("t").flatMap((text) => parseKey(text) ?? []);
  const query = parseQuery(ListQueryShape, new URLSearchParams(fields.get("filter") ?? ""), clock.now());
  return typeof query === "string" ? [] : filterOpen(transfers(), query);
}

/** The page that a form came from, as an address below the console's root. */
export function backOf(fields: URLSearchParams): string {
  const back = fields.get("back") ?? "";
  return /^(transfers|transfer|mailboxes|mailbox|history)(\?[^\s#]*)?$/.test(back) ? back : "./";
}

/** `undefined` if it is too large. All of it is read, because most clients send it before they read the answer. */
export async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks).toString();
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function explain([issue]: readonly v.BaseIssue<unknown>[]): string {
  const key = issue?.path?.map((step) => String(step.key)).join(".") ?? "the body";
  return `${key} is not valid. Send JSON with action (${TRANSFER_ACTS.join(", ")}), and mailbox and trackingId, or transfers.`;
}
