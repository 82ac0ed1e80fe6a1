/** Forms that change something: signing in and out, and actions on transfers and mailboxes. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import * as v from "valibot";
import { asFault, Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { ACT_TEXTS } from "../model/actions.ts";
import { type Actor, MAILBOX_ACTS, TRANSFER_ACTS, type TransferAct } from "../model/order.ts";
import { ListQueryShape, parseQuery } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import type { MailboxResult } from "../model/views.ts";
import type { RunningAct } from "../operate/acting.ts";
import { filterOpen } from "../operate/list.ts";
import { showNotice } from "./pages.ts";
import { formatKey, parseKey } from "./rows.ts";
import { requireRole, type Sessions } from "./sessions.ts";
import type { ConsoleTools } from "./tools.ts";
import { renderConfirmation } from "./transfers.ts";

/** A list may name a thousand transfers. */
const MAX_BODY_BYTES = 512 * 1024;
const MAX_AT_ONCE = 10_000;
/** How long pages wait for an outcome, and for a poll. */
const PAGE_WAIT_MS = 10 * 60_000;
const POLL_WAIT_MS = 10_000;

/** A form that a page has sent. */
interface Form {
  readonly access: Sessions;
  readonly response: ServerResponse;
  readonly fields: URLSearchParams;
}

type HandleForm = (tools: ConsoleTools, form: Form) => Promise<void>;

/** By path. Handlers throw faults. */
export const FORMS: Readonly<Record<string, HandleForm>> = {
  "/sign-in": signIn,
  "/sign-out": signOut,
  "/actions": actForPage,
  "/mailbox-actions": actOnMailboxes,
};

/** Exchanges a token for a cookie. */
async function signIn(tools: ConsoleTools, { access, response, fields }: Form): Promise<void> {
  const cookie = await access.signIn(response.req, fields.get("token") ?? "");
  if (cookie === undefined) {
    return showNotice(tools, response, 401, { text: "The token is wrong.", isError: true });
  }
  response.writeHead(303, { location: backOf(fields), "set-cookie": cookie }).end();
}

/** Ends the session. */
async function signOut(_tools: ConsoleTools, { access, response, fields }: Form): Promise<void> {
  const cookie = access.signOut(response.req, fields.get("proof") ?? undefined);
  response.writeHead(303, { location: "./", "set-cookie": cookie }).end();
}

/** Polls, pauses or resumes mailboxes. */
async function actOnMailboxes({ operate }: ConsoleTools, { access, response, fields }: Form): Promise<void> {
  const by = await requireRole(access, "operate", response.req, fields.get("proof") ?? undefined);
  const act = actIn(MAILBOX_ACTS, fields);
  const mailbox = fields.get("mailbox") ?? undefined;
  const acted = operate.actOnMailboxes({ act, mailbox }, by, POLL_WAIT_MS);
  const results = await acted.catch(failedFor(mailbox));
  const isError = results.some(({ result }) => result === "attention" || result === "refused");
  const text = results.map((each) => each.text).join(" ");
  access.setNotice(response.req, { text, isError });
  response.writeHead(303, { location: backOf(fields) }).end();
}

function actIn<const Acts extends readonly string[]>(acts: Acts, fields: URLSearchParams): Acts[number] {
  const parsed = v.safeParse(v.picklist(acts), fields.get("action"));
  if (parsed.success) return parsed.output;
  throw new Fault("REQUEST_INVALID", { detail: "Unknown action." });
}

/** The disk has refused an order or a pause. */
export function failedFor(mailbox = ""): (error: unknown) => MailboxResult[] {
  return (error) => [{ mailbox, status: 503, result: "attention", text: asFault(error).message }];
}

/** Acts on transfers, and answers with the page that the form came from. */
async function actForPage(tools: ConsoleTools, { access, response, fields }: Form): Promise<void> {
  const proof = fields.get("proof") ?? undefined;
  const by = await requireRole(access, "operate", response.req, proof);
  const action = actIn(TRANSFER_ACTS, fields);
  const keys = selectedIn(fields, tools);
  const password = fields.get("password") ?? undefined;
  const back = backOf(fields);
  const needsQuestion =
    keys.length > 1 ? ACT_TEXTS[action].warning !== undefined : action === "password" && !password;
  const isAsked = needsQuestion && !fields.has("confirm");
  const problem = problemOf(action, keys, isAsked || password);
  if (problem !== undefined) {
    access.setNotice(response.req, { text: problem, isError: true });
    return void response.writeHead(303, { location: back }).end();
  }
  if (isAsked) {
    const wanted = new Set(keys.map(formatKey));
    const found = tools.board.transfers().filter((transfer) => wanted.has(formatKey(transfer)));
    const hidden = { proof: proof ?? "", page: "yes", back };
    const body = renderConfirmation(action, found, hidden, [...wanted]);
    return showNotice(tools, response, 200, undefined, body);
  }
  // The page shows the outcomes when they are known.
  await act(tools, action, keys, password, by);
  response.writeHead(303, { location: back }).end();
}

/** Starts the act, and shows its outcomes as they come. They are awaited at least ten minutes, and until `waitEnded`. */
export function act(
  { operate, outcomes }: ConsoleTools,
  action: TransferAct,
  transfers: readonly TransferKey[],
  password: string | undefined,
  by: Actor,
  waitEnded?: Promise<void>,
): Promise<RunningAct> {
  const note = outcomes.begin(action, by);
  const stopWaiting = new AbortController();
  void Promise.all([pause(PAGE_WAIT_MS, undefined, { ref: false }), waitEnded]).then(() =>
    stopWaiting.abort(),
  );
  const secret = password === undefined ? undefined : new Secret(password);
  const request = { act: action, transfers, password: secret, isForMailbox: true };
  return operate.start(request, by, stopWaiting.signal, note);
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
function selectedIn(fields: URLSearchParams, { board, clock }: ConsoleTools): readonly TransferKey[] {
  if (!fields.has("all")) return fields.getAll("t").flatMap((text) => parseKey(text) ?? []);
  const query = parseQuery(ListQueryShape, new URLSearchParams(fields.get("filter") ?? ""), clock.now());
  return typeof query === "string" ? [] : filterOpen(board.transfers(), query);
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
