/** Requests that change something: signing in and out, and actions on one or many transfers. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";
import { forEachLimit, mapLimit } from "../base/concurrency.ts";
import { asFault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { type Actor, TRANSFER_ACTS, type TransferAct } from "../model/order.ts";
import type { TransferKey } from "../model/record.ts";
import type { TransferStatus } from "../model/status.ts";
import { type ActResult, isOpenedBy, isTried, splitForTrial } from "../model/views.ts";
import { sendJson } from "./answers.ts";
import type { Html } from "./html.ts";
import type { Notice } from "./layout.ts";
import type { Outcomes, ShownOutcome } from "./outcomes.ts";
import type { ActionRequest, ConsoleActions } from "./port.ts";
import { filterTransfers, parseTransferQuery } from "./query.ts";
import { formatKey, parseKey, WARNINGS } from "./rows.ts";
import { isTransferAct, renderConfirmation } from "./transfers.ts";

/** A list may name a thousand transfers. */
const MAX_BODY_BYTES = 512 * 1024;
const MAX_AT_ONCE = 10_000;
const SUBMITTED_AT_ONCE = 8;
/** Each wait looks at the ledger regularly. */
const AWAITED_AT_ONCE = 16;
/** How long pages wait for an outcome. */
const PAGE_WAIT_MS = 10 * 60_000;
/** As long as `--timeout` of a command may be. */
const MAX_WAIT_SECONDS = 7 * 24 * 60 * 60;

const UNREADABLE = "A token cannot be read now: see http.token in the configuration.";
const NOT_ALLOWED = "Sign in first, or send a token.";
const WRONG_TOKEN = {
  refused: "The token is wrong.",
  throttled: "There were too many wrong tokens: wait a minute.",
} as const;

const PENDING = { result: "pending", text: "In progress." } as const;
const NO_TRIAL = { first: [], others: [] };
const UNTRIED = {
  result: "refused",
  text: "The password was not tried: it did not open another transfer, which was tried first.",
} as const;

const RequestShape = v.object({
  action: v.picklist(TRANSFER_ACTS),
  mailbox: v.optional(v.string()),
  trackingId: v.optional(v.string()),
  transfers: v.optional(v.array(v.object({ mailbox: v.string(), trackingId: v.string() }))),
  password: v.optional(v.string()),
  /** Seconds to wait for the outcome. */
  wait: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(MAX_WAIT_SECONDS)), 0),
});

export interface ActionTools {
  readonly actions: ConsoleActions;
  readonly outcomes: Outcomes;
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
  const { actions } = tools;
  if (!(await actions.renew())) return sendJson(response, 503, { error: UNREADABLE });
  const authorization = await actions.sessions.authorize(request, undefined);
  if (authorization.kind !== "granted") {
    const isThrottled = authorization.kind === "throttled";
    const error = isThrottled ? WRONG_TOKEN.throttled : NOT_ALLOWED;
    return sendJson(response, isThrottled ? 429 : 403, { error });
  }
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
  const running = act(tools, action, keys, password, authorization.by, waitEnded);
  await running.submitted;
  if (wait > 0) await Promise.race([running.settled, waitEnded]);
  const results = await running.results();
  const [first] = results;
  // A single transfer that is refused is an error of the request.
  const status = transfers === undefined && first !== undefined ? first.status : 200;
  sendJson(response, status, { results, ...(status === 200 ? {} : { error: first?.text }) });
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
  const refuse = (status: number, text: string) => show(request, response, status, { text, isError: true });
  if (!(await actions.renew())) return refuse(503, UNREADABLE);
  const proof = fields.get("proof") ?? undefined;
  const authorization = await actions.sessions.authorize(request, proof);
  if (authorization.kind !== "granted") return refuse(403, NOT_ALLOWED);
  const action = fields.get("action") ?? "";
  if (!isTransferAct(action)) return refuse(400, "Unknown action.");
  const keys = selectedIn(fields, tools.transfers());
  const password = fields.get("password") ?? undefined;
  const back = backOf(fields);
  const needsQuestion = keys.length > 1 ? WARNINGS[action] !== undefined : action === "password" && !password;
  const isAsked = needsQuestion && !fields.has("confirm");
  const problem = problemOf(action, keys, isAsked || password);
  if (problem !== undefined) {
    actions.sessions.setNotice(request, { text: problem, isError: true });
    return void response.writeHead(303, { location: back }).end();
  }
  if (isAsked) {
    const wanted = new Set(keys.map(formatKey));
    const found = tools.transfers().filter((transfer) => wanted.has(formatKey(transfer)));
    const hidden = { proof: proof ?? "", page: "yes", back };
    return show(request, response, 200, undefined, renderConfirmation(action, found, hidden, [...wanted]));
  }
  // The page shows the outcomes when they are known.
  act(tools, action, keys, password, authorization.by);
  response.writeHead(303, { location: back }).end();
}

/** `submitted`: every action is accepted or refused. `settled`: every outcome is known. `results`: as they are now. */
interface Running {
  readonly submitted: Promise<unknown>;
  readonly settled: Promise<void>;
  results(): Promise<ActResult[]>;
}

/**
 * Submits the action for each transfer, and records the outcomes. Waits for them at least ten minutes, and at least until
 * `waitEnded`.
 */
function act(
  { actions, outcomes }: ActionTools,
  action: TransferAct,
  keys: readonly TransferKey[],
  password: string | undefined,
  by: Actor,
  waitEnded?: Promise<void>,
): Running {
  const note = outcomes.begin(action, by, keys);
  const results = new Map<TransferKey, () => Promise<ActResult>>();
  const settle = (key: TransferKey, status: number, outcome: ShownOutcome) => {
    const { mailbox, trackingId } = key;
    const result = { mailbox, trackingId, status, ...outcome };
    results.set(key, async () => result);
    note(key, outcome);
  };
  const stopWaiting = new AbortController();
  void Promise.all([pause(PAGE_WAIT_MS, undefined, { ref: false }), waitEnded]).then(() =>
    stopWaiting.abort(),
  );
  const waits: (() => Promise<void>)[] = [];
  const submit = async (key: TransferKey) => {
    const { mailbox, trackingId } = key;
    const secret = password === undefined ? undefined : new Secret(password);
    const request: ActionRequest = { mailbox, trackingId, action, password: secret };
    try {
      const answer = await actions.submit(request, by);
      if ("refused" in answer) {
        const { status, mailbox: _mailbox, trackingId: _id, ...outcome } = answer.refused;
        return settle(key, status, outcome);
      }
      settle(key, 200, PENDING);
      results.set(key, async () => {
        // Not known yet.
        const outcome = await answer.outcome(AbortSignal.abort()).catch(() => PENDING);
        return { mailbox, trackingId, status: 200, ...outcome };
      });
      waits.push(async () => settle(key, 200, await answer.outcome(stopWaiting.signal)));
    } catch (error) {
      settle(key, 503, { result: "refused", text: asFault(error).message });
    }
  };
  const readResults = (some: readonly TransferKey[]) =>
    mapLimit(
      some.flatMap((key) => results.get(key) ?? []),
      SUBMITTED_AT_ONCE,
      (read) => read(),
    );
  const awaitAll = () =>
    // Its result stays pending.
    forEachLimit(waits.splice(0), AWAITED_AT_ONCE, (wait) => wait().catch(() => {}));
  const submitAll = (some: readonly TransferKey[]) => forEachLimit(some, SUBMITTED_AT_ONCE, submit);
  const submitTrial = async (
    left: readonly TransferKey[],
  ): Promise<ReturnType<typeof splitForTrial<TransferKey>>> => {
    const trial = splitForTrial(left);
    await submitAll(trial.first);
    const isOver = trial.others.length === 0 || isTried(await readResults(trial.first));
    return isOver ? trial : submitTrial(trial.others);
  };
  for (const key of keys) results.set(key, async () => ({ ...key, status: 200, ...PENDING }));
  const submitted = action === "password" ? submitTrial(keys) : submitAll(keys).then(() => NO_TRIAL);
  const settled = submitted.then(async ({ first, others }) => {
    await awaitAll();
    if (others.length === 0) return;
    if (!isOpenedBy(await readResults(first))) return others.forEach((key) => void settle(key, 409, UNTRIED));
    await submitAll(others);
    await awaitAll();
  });
  return { submitted, settled, results: () => readResults(keys) };
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
function selectedIn(fields: URLSearchParams, open: readonly TransferStatus[]): TransferKey[] {
  if (!fields.has("all")) return fields.getAll("t").flatMap((text) => parseKey(text) ?? []);
  const query = parseTransferQuery(new URLSearchParams(fields.get("filter") ?? ""));
  return typeof query === "string" ? [] : filterTransfers(open, query.filter);
}

/** The page that a form came from, as an address below the console's root. */
function backOf(fields: URLSearchParams): string {
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

function parseJson(text: string): unknown {
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
