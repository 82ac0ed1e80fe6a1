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
import { keyOf } from "./outcomes.ts";
import { showNotice } from "./pages.ts";
import type { ConsoleTools } from "./port.ts";
import { type Notice, requireRole, type Sessions } from "./sessions.ts";
import { renderConfirmation } from "./transfers.ts";

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

/** By path. Handlers throw faults, or answer with a page or a redirect. */
export const FORMS: Readonly<Record<string, (tools: ConsoleTools, form: Form) => Promise<void>>> = {
  "/sign-in": signIn,
  "/sign-out": signOut,
  "/actions": actForPage,
  "/mailbox-actions": actOnMailboxes,
};

async function signIn(tools: ConsoleTools, { access, response, fields }: Form): Promise<void> {
  const cookie = await access.signIn(response.req, fields.get("token") ?? "");
  const notice = { text: "The token is wrong.", isError: true };
  if (cookie === undefined) return showNotice(tools, response, 401, notice);
  response.writeHead(303, { location: backOf(fields), "set-cookie": cookie }).end();
}

async function signOut(_tools: ConsoleTools, { access, response, fields }: Form): Promise<void> {
  const cookie = access.signOut(response.req, fields.get("proof"));
  response.writeHead(303, { location: "./", "set-cookie": cookie }).end();
}

async function actOnMailboxes({ operate }: ConsoleTools, form: Form): Promise<void> {
  const { access, response, fields } = form;
  const by = await requireRole(access, "operate", response.req, fields.get("proof"));
  const act = actIn(MAILBOX_ACTS, fields);
  const mailbox = fields.get("mailbox") ?? undefined;
  const acted = operate.actOnMailboxes({ act, mailbox }, by, POLL_WAIT_MS);
  const results = await acted.catch(failureOf(mailbox));
  const isError = results.some(({ result }) => result === "attention" || result === "refused");
  goBack(form, { text: results.map(({ text }) => text).join(" "), isError });
}

function actIn<const Acts extends readonly string[]>(acts: Acts, fields: URLSearchParams): Acts[number] {
  const parsed = v.safeParse(v.picklist(acts), fields.get("action"));
  if (parsed.success) return parsed.output;
  throw new Fault("REQUEST_INVALID", { detail: "Unknown action." });
}

/** Returns a function that describes why an order or a pause could not be written. */
export function failureOf(mailbox = ""): (error: unknown) => MailboxResult[] {
  return (error) => [{ mailbox, status: 503, result: "attention", text: asFault(error).message }];
}

/** Acts on transfers. The page shows the outcomes when they are known. */
async function actForPage(tools: ConsoleTools, form: Form): Promise<void> {
  const { access, response, fields } = form;
  const proof = fields.get("proof") ?? "";
  const by = await requireRole(access, "operate", response.req, proof);
  const action = actIn(TRANSFER_ACTS, fields);
  const keys = selectedIn(fields, tools);
  const password = fields.get("password") ?? undefined;
  // The form of a single transfer has asked already, except for the password if the transfer was selected in the list.
  const hasQuestion =
    keys.length > 1 ? ACT_TEXTS[action].warning !== undefined : action === "password" && !password;
  const mustAsk = hasQuestion && !fields.has("confirm");
  // The question asks for the password too.
  const problem = problemOf(action, keys, mustAsk || password);
  if (problem !== undefined) return goBack(form, { text: problem, isError: true });
  if (mustAsk) {
    const wanted = new Set(keys.map(keyOf));
    const found = tools.board.transfers().filter((transfer) => wanted.has(keyOf(transfer)));
    const body = renderConfirmation(action, found, { proof, back: backOf(fields) }, [...wanted]);
    return showNotice(tools, response, 200, undefined, body);
  }
  await act(tools, action, keys, password, by);
  goBack(form);
}

/** Starts the act, and shows its outcomes as they come, for ten minutes and as long as a program waits for them. */
export function act(
  { operate, outcomes }: ConsoleTools,
  action: TransferAct,
  transfers: readonly TransferKey[],
  password: string | undefined,
  by: Actor,
  programLeft?: Promise<void>,
): Promise<RunningAct> {
  const stopWaiting = new AbortController();
  const pageLeft = pause(PAGE_WAIT_MS, undefined, { ref: false });
  void Promise.all([pageLeft, programLeft]).then(() => stopWaiting.abort());
  const secret = password === undefined ? undefined : new Secret(password);
  const request = { act: action, transfers, password: secret, isForMailbox: true };
  return operate.start(request, by, stopWaiting.signal, outcomes.begin(action, by));
}

/** Why a request is not valid, for people. */
export function problemOf(
  action: TransferAct,
  keys: readonly TransferKey[],
  hasPassword: string | boolean | undefined,
): string | undefined {
  if (keys.length === 0) return "No transfer is selected.";
  if (keys.length > MAX_AT_ONCE) return `At most ${MAX_AT_ONCE} transfers at once.`;
  return action === "password" && !hasPassword ? "The password is missing." : undefined;
}

const KeyShape = v.pipe(v.string(), v.parseJson(), v.tuple([v.string(), v.string()]));

/** The transfers that a form selects: the ticked ones, as `keyOf` names them, or all that match its filter. */
function selectedIn(fields: URLSearchParams, { board, clock }: ConsoleTools): readonly TransferKey[] {
  if (fields.has("all")) {
    const query = parseQuery(ListQueryShape, new URLSearchParams(fields.get("filter") ?? ""), clock.now());
    return typeof query === "string" ? [] : filterOpen(board.transfers(), query);
  }
  return fields.getAll("t").flatMap((text) => {
    const { success, output } = v.safeParse(KeyShape, text);
    return success ? [{ mailbox: output[0], trackingId: output[1] }] : [];
  });
}

function goBack({ access, response, fields }: Form, notice?: Notice): void {
  const session = access.find(response.req);
  if (session !== undefined && notice !== undefined) session.notice = notice;
  response.writeHead(303, { location: backOf(fields) }).end();
}

/** The page that a form came from, as an address below the console's root. */
function backOf(fields: URLSearchParams): string {
  const back = fields.get("back") ?? "";
  return /^(transfers|transfer|mailboxes|mailbox|history)(\?[^\s#]*)?$/.test(back) ? back : "./";
}

/** `undefined` if the body is too large. All of it is read, because most clients send it before they read the answer. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= maxBytes) chunks.push(chunk);
  }
  return bytes > maxBytes ? undefined : Buffer.concat(chunks).toString();
}
