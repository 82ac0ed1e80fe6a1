/** Forms that change something: signing in and out, and actions on one or many transfers. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { ACT_TEXTS } from "../model/actions.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import { ListQueryShape, parseQuery } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import type { TransferStatus } from "../model/status.ts";
import type { RunningAct } from "../operate/acting.ts";
import { filterOpen } from "../operate/list.ts";
import { renewTokens, requireGrant, requireRole } from "./access.ts";
import type { Html } from "./html.ts";
import type { Notice } from "./layout.ts";
import type { Outcomes } from "./outcomes.ts";
import type { ConsoleAccess, ConsolePort } from "./port.ts";
import { formatKey, parseKey } from "./rows.ts";
import { isTransferAct, renderConfirmation } from "./transfers.ts";

/** A list may name a thousand transfers. */
const MAX_BODY_BYTES = 512 * 1024;
const MAX_AT_ONCE = 10_000;
/** How long pages wait for an outcome. */
const PAGE_WAIT_MS = 10 * 60_000;

export interface ActionTools {
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

/** A form that a page has sent. Handlers throw faults. */
export interface Form {
  readonly access: ConsoleAccess;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly fields: URLSearchParams;
}

/** `/sign-in`: exchanges a token for a cookie. */
export async function signIn(
  { show }: ActionTools,
  { access, request, response, fields }: Form,
): Promise<void> {
  await renewTokens(access);
  const { authorization, cookie } = await access.sessions.signIn(request, fields.get("token") ?? "");
  if (authorization.kind === "refused") {
    return show(request, response, 401, { text: "The token is wrong.", isError: true });
  }
  requireGrant(authorization);
  response.writeHead(303, { location: backOf(fields), "set-cookie": cookie }).end();
}

/** `/sign-out`: ends the session. */
export async function signOut(
  _tools: ActionTools,
  { access: { sessions }, request, response, fields }: Form,
): Promise<void> {
  requireGrant(await sessions.authorize(request, "change", fields.get("proof") ?? undefined));
  response.writeHead(303, { location: "./", "set-cookie": sessions.signOut(request) }).end();
}

/** `/actions`: an action from a form, answered with the page that it came from. */
export async function actForPage(
  tools: ActionTools,
  { access, request, response, fields }: Form,
): Promise<void> {
  const proof = fields.get("proof") ?? undefined;
  const by = await requireRole(access, "operate", request, proof);
  const action = fields.get("action") ?? "";
  if (!isTransferAct(action)) throw new Fault("REQUEST_INVALID", { detail: "Unknown action." });
  const keys = selectedIn(fields, tools);
  const password = fields.get("password") ?? undefined;
  const back = backOf(fields);
  const needsQuestion =
    keys.length > 1 ? ACT_TEXTS[action].warning !== undefined : action === "password" && !password;
  const isAsked = needsQuestion && !fields.has("confirm");
  const problem = problemOf(action, keys, isAsked || password);
  if (problem !== undefined) {
    access.sessions.setNotice(request, { text: problem, isError: true });
    return void response.writeHead(303, { location: back }).end();
  }
  if (isAsked) {
    const wanted = new Set(keys.map(formatKey));
    const found = tools.transfers().filter((transfer) => wanted.has(formatKey(transfer)));
    const hidden = { proof: proof ?? "", page: "yes", back };
    return tools.show(
      request,
      response,
      200,
      undefined,
      renderConfirmation(action, found, hidden, [...wanted]),
    );
  }
  // The page shows the outcomes when they are known.
  await act(tools, action, keys, password, by);
  response.writeHead(303, { location: back }).end();
}

/** Starts the act, and shows its outcomes as they come. They are awaited at least ten minutes, and until `waitEnded`. */
export function act(
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

export function problemOf(
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
