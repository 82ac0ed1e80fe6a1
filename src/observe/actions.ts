/** What can be done through the page and its API: signing in and out, orders, and passwords. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ACTIONS, type Order } from "../model/order.ts";
import { type Fields, readFields } from "./fields.ts";
import type { Said, Sessions, Verdict } from "./sessions.ts";

const UNREADABLE = "The token cannot be read now: see http.token in the configuration.";

/** A sentence for people: what was done, or, where it was refused, why not. */
interface Deed {
  readonly text: string;
  /** 400: what was sent makes no sense; 404: there is no such transfer; 409: not in its state. */
  readonly refused?: 400 | 404 | 409;
}

export interface Actions {
  readonly sessions: Sessions;
  /** Before each use of the sessions: the token may have changed. False where it cannot be read. */
  renew(): Promise<boolean>;
  order(order: Omit<Order, "round" | "by">): Promise<Deed>;
  password(mailbox: string, trackingId: string, password: string): Promise<Deed>;
}

/** Answers with the page, which says this. */
export type ShowPage = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  said: Said,
) => void;

/** `/sign-in`: a token for a cookie. */
export async function signIn(
  actions: Actions,
  request: IncomingMessage,
  response: ServerResponse,
  showPage: ShowPage,
): Promise<void> {
  const { sessions } = actions;
  const fields = await readFields(request);
  if (!(await actions.renew())) return refuse(request, response, 503, UNREADABLE, fields, showPage);
  const { verdict, cookie } = sessions.signIn(request, fields["token"] ?? "");
  if (cookie === undefined) {
    return refuse(request, response, await statusFor(sessions, verdict), WRONG[verdict], fields, showPage);
  }
  response.writeHead(303, { location: "./#attention", "set-cookie": cookie }).end();
}

/** `/sign-out`: the cookie is worth nothing any more. */
export async function signOut(
  { sessions }: Actions,
  request: IncomingMessage,
  response: ServerResponse,
  showPage: ShowPage,
): Promise<void> {
  const fields = await readFields(request);
  if (sessions.mayAct(request, fields["proof"]) !== "right") {
    return refuse(request, response, 403, NOT_ALLOWED, fields, showPage);
  }
  response.writeHead(303, { location: "./", "set-cookie": sessions.signOut(request) }).end();
}

/** `/api/actions`: what a form or a program wants done. Programs get an answer in JSON, people the page again. */
export async function act(
  actions: Actions,
  request: IncomingMessage,
  response: ServerResponse,
  showPage: ShowPage,
): Promise<void> {
  const fields = await readFields(request);
  if (!(await actions.renew())) return refuse(request, response, 503, UNREADABLE, fields, showPage);
  const verdict = actions.sessions.mayAct(request, fields["proof"]);
  if (verdict !== "right") {
    return refuse(
      request,
      response,
      await statusFor(actions.sessions, verdict),
      NOT_ALLOWED,
      fields,
      showPage,
    );
  }
  const { text, refused } = await perform(actions, fields);
  if (fields["page"] === undefined) {
    return sendJson(response, refused ?? 200, refused === undefined ? { done: text } : { error: text });
  }
  actions.sessions.say(request, { text, isError: refused !== undefined });
  response.writeHead(303, { location: "../#attention" }).end();
}

async function perform(actions: Actions, fields: Fields): Promise<Deed> {
  const { action = "", mailbox = "", trackingId = "", password = "" } = fields;
  const known = ACTIONS.find((name) => name === action);
  if ((known === undefined && action !== "password") || mailbox === "" || trackingId === "") {
    const text = `action must be password, ${ACTIONS.join(", ")}; mailbox and trackingId name the transfer.`;
    return { text, refused: 400 };
  }
  if (known !== undefined) return actions.order({ action: known, mailbox, trackingId });
  if (password === "") return { text: "A password is missing.", refused: 400 };
  return actions.password(mailbox, trackingId, password);
}

const NOT_ALLOWED = "Only whoever has signed in, or sends the token, may do that.";
const WRONG: Readonly<Record<Verdict, string>> = {
  right: "",
  wrong: "That is not the token.",
  "too often": "That is not the token, and wrong ones were tried too often.",
};

async function statusFor(sessions: Sessions, verdict: Verdict): Promise<number> {
  if (verdict !== "too often") return 403;
  await sessions.slowDown();
  return 429;
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  text: string,
  { page }: Fields,
  showPage: ShowPage,
): void {
  if (page === undefined) sendJson(response, status, { error: text });
  else showPage(request, response, status, { text, isError: true });
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(`${JSON.stringify(value)}\n`);
}
