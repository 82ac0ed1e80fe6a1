/** What can be done through the page and its API: signing in, orders, and passwords. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { ACTIONS, type Order } from "../model/order.ts";
import type { Sessions } from "./sessions.ts";

const MOST_BYTES = 16 * 1024;
const UNREADABLE = "The token cannot be read now: see http.token in the configuration.";

/** Each returns a sentence for people: what was done, or why not. */
export interface Actions {
  readonly sessions: Sessions;
  /** Before each use of the sessions: the token may have changed. False where it cannot be read. */
  renew(): Promise<boolean>;
  order(order: Order): Promise<string>;
  password(mailbox: string, trackingId: string, password: string): Promise<string>;
}

type Fields = Readonly<Record<string, string>>;

/** `/sign-in`: a token for a cookie. */
export async function signIn(
  actions: Actions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { token = "" } = await readFields(request);
  if (!(await actions.renew())) return refuse(response, 503, UNREADABLE);
  const cookie = actions.sessions.signIn(request, token);
  if (cookie === undefined) return refuse(response, 403, "That is not the token, or it was tried too often.");
  response.writeHead(303, { location: "./#attention", "set-cookie": cookie }).end();
}

/** `/api/actions`: what a form or a program wants done. Programs get an answer in JSON, people the page again. */
export async function act(
  actions: Actions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const fields = await readFields(request);
  if (!(await actions.renew())) return refuse(response, 503, UNREADABLE);
  if (!actions.sessions.mayAct(request, fields["proof"])) {
    return refuse(response, 403, "Only whoever has signed in, or sends the token, may do that.");
  }
  const { action = "", mailbox = "", trackingId = "", password = "" } = fields;
  const known = ACTIONS.find((name) => name === action);
  if ((known === undefined && action !== "password") || mailbox === "" || trackingId === "") {
    return refuse(
      response,
      400,
      `action must be password, ${ACTIONS.join(", ")}; mailbox and trackingId name the transfer.`,
    );
  }
  const done =
    known === undefined
      ? await actions.password(mailbox, trackingId, password)
      : await actions.order({ action: known, mailbox, trackingId });
  if (fields["page"] === undefined) {
    response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
    response.end(`${JSON.stringify({ done })}\n`);
  } else response.writeHead(303, { location: `../?said=${encodeURIComponent(done)}#attention` }).end();
}

/** A form, or an object of texts in JSON. What is too large or neither is nothing. */
async function readFields(request: IncomingMessage): Promise<Fields> {
  let bytes = 0;
  const bounded = Readable.from(
    (async function* () {
      for await (const chunk of request) {
        bytes += (chunk as Buffer).length;
        if (bytes > MOST_BYTES) return;
        yield chunk;
      }
    })(),
  );
  const text = (await buffer(bounded)).toString();
  if (bytes > MOST_BYTES) return {};
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

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(`${message}\n`);
}
