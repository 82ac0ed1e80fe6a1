/** Requests that change something: signing in and out, orders, and passwords. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { ACTIONS, type Order } from "../model/order.ts";
import type { Authorization, Notice, Sessions } from "./sessions.ts";

const MOST_BODY_BYTES = 16 * 1024;

const UNREADABLE = "The token cannot be read now: see http.token in the configuration.";
const NOT_ALLOWED = "Sign in first, or send the token.";
const WRONG_TOKEN: Readonly<Record<Authorization, string>> = {
  granted: "",
  refused: "The token is wrong.",
  throttled: "The token is wrong, and there were too many wrong ones: wait a minute.",
};

interface ActionResult {
  /** A sentence for people. */
  readonly text: string;
  /** 400: invalid request; 404: no such transfer; 409: not possible in its state. */
  readonly refused?: 400 | 404 | 409;
}

export interface Actions {
  readonly sessions: Sessions;
  /** Called before each use of the sessions, because the token may have changed. False if it cannot be read. */
  renew(): Promise<boolean>;
  order(order: Omit<Order, "round" | "by">): Promise<ActionResult>;
  password(mailbox: string, trackingId: string, password: string): Promise<ActionResult>;
}

/** Answers with the page and a notice. */
export type ShowPage = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  notice: Notice,
) => void;

type Fields = Readonly<Record<string, string>>;

/** `/sign-in`: exchanges a token for a cookie. */
export async function signIn(
  actions: Actions,
  request: IncomingMessage,
  response: ServerResponse,
  showPage: ShowPage,
): Promise<void> {
  const { sessions } = actions;
  const fields = await readFields(request);
  if (!(await actions.renew())) return refuse(request, response, 503, UNREADABLE, fields, showPage);
  const { authorization, cookie } = sessions.signIn(request, fields["token"] ?? "");
  if (cookie === undefined) {
    const status = await statusFor(sessions, authorization);
    return refuse(request, response, status, WRONG_TOKEN[authorization], fields, showPage);
  }
  response.writeHead(303, { location: "./#attention", "set-cookie": cookie }).end();
}

/** `/sign-out`: ends the session. */
export async function signOut(
  { sessions }: Actions,
  request: IncomingMessage,
  response: ServerResponse,
  showPage: ShowPage,
): Promise<void> {
  const fields = await readFields(request);
  if (sessions.authorize(request, fields["proof"]) !== "granted") {
    return refuse(request, response, 403, NOT_ALLOWED, fields, showPage);
  }
  response.writeHead(303, { location: "./", "set-cookie": sessions.signOut(request) }).end();
}

/** `/api/actions`: an order or a password, from a form or a program. Programs get JSON, people the page. */
export async function act(
  actions: Actions,
  request: IncomingMessage,
  response: ServerResponse,
  showPage: ShowPage,
): Promise<void> {
  const fields = await readFields(request);
  if (!(await actions.renew())) return refuse(request, response, 503, UNREADABLE, fields, showPage);
  const authorization = actions.sessions.authorize(request, fields["proof"]);
  if (authorization !== "granted") {
    const status = await statusFor(actions.sessions, authorization);
    return refuse(request, response, status, NOT_ALLOWED, fields, showPage);
  }
  const { text, refused } = await perform(actions, fields);
  if (fields["page"] === undefined) {
    return sendJson(response, refused ?? 200, refused === undefined ? { done: text } : { error: text });
  }
  actions.sessions.setNotice(request, { text, isError: refused !== undefined });
  response.writeHead(303, { location: "../#attention" }).end();
}

async function perform(actions: Actions, fields: Fields): Promise<ActionResult> {
  const { action = "", mailbox = "", trackingId = "", password = "" } = fields;
  const known = ACTIONS.find((name) => name === action);
  if ((known === undefined && action !== "password") || mailbox === "" || trackingId === "") {
    const text = `action must be password, ${ACTIONS.join(", ")}; mailbox and trackingId name the transfer.`;
    return { text, refused: 400 };
  }
  if (known !== undefined) return actions.order({ action: known, mailbox, trackingId });
  if (password === "") return { text: "The password is missing.", refused: 400 };
  return actions.password(mailbox, trackingId, password);
}

/** Reads a form, or a JSON object of strings. Returns nothing for other or larger bodies. */
async function readFields(request: IncomingMessage): Promise<Fields> {
  let bytes = 0;
  const bounded = Readable.from(
    (async function* () {
      for await (const chunk of request) {
        bytes += (chunk as Buffer).length;
        if (bytes > MOST_BODY_BYTES) return;
        yield chunk;
      }
    })(),
  );
  const text = (await buffer(bounded)).toString();
  if (bytes > MOST_BODY_BYTES) return {};
  if (request.headers["content-type"]?.startsWith("application/json") !== true) {
    return Object.fromEntries(new URLSearchParams(text));
  }
  try {
    const parsed: unknown = JSON.parse(text);
    const entries = Object.entries(parsed ?? {}).filter(([, value]) => typeof value === "string");
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}

async function statusFor(sessions: Sessions, authorization: Authorization): Promise<number> {
  if (authorization !== "throttled") return 403;
  await sessions.throttle();
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
