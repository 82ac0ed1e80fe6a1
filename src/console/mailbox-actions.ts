/** Requests that act on mailboxes: poll now, pause, resume. */
import type { IncomingMessage, ServerResponse } from "node:http";
import * as v from "valibot";
import { asFault } from "../base/faults.ts";
import { MAILBOX_ACTS } from "../model/order.ts";
import type { MailboxResult } from "../model/views.ts";
import {
  type ActionTools,
  authorizePage,
  authorizeProgram,
  backOf,
  parseJson,
  WaitShape,
} from "./actions.ts";
import { sendJson } from "./answers.ts";

/** How long a page waits for a poll. */
const PAGE_WAIT_MS = 10_000;

const RequestShape = v.object({
  action: v.picklist(MAILBOX_ACTS),
  /** Missing: all mailboxes. */
  mailbox: v.optional(v.string()),
  wait: WaitShape,
});

/** `/api/mailboxes/actions`: answered with the outcome of each mailbox. */
export async function actOnMailboxesForProgram(
  tools: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const by = await authorizeProgram(tools, request, response);
  if (by === undefined) return;
  const parsed = v.safeParse(RequestShape, parseJson(body));
  if (!parsed.success) {
    const error = `Send JSON with action (${MAILBOX_ACTS.join(", ")}), and mailbox, unless all are meant.`;
    return sendJson(response, 400, { error });
  }
  const { action: act, mailbox, wait } = parsed.output;
  const clientGone = new AbortController();
  response.once("close", () => clientGone.abort());
  const given = { act, mailbox, isAwaited: wait > 0 };
  const results = await tools.operate
    .actOnMailboxes(given, by, wait * 1000, clientGone.signal)
    .catch(failedFor(mailbox));
  sendJson(response, 200, { results });
}

/** `/mailbox-actions`: from a form, answered with the page that it came from. */
export async function actOnMailboxesForPage(
  tools: ActionTools,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const fields = new URLSearchParams(body);
  const by = await authorizePage(tools, request, response, fields);
  if (by === undefined) return;
  const parsed = v.safeParse(RequestShape, Object.fromEntries(fields));
  if (!parsed.success) return tools.show(request, response, 400, { text: "Unknown action.", isError: true });
  const { action: act, mailbox } = parsed.output;
  const acted = tools.operate.actOnMailboxes({ act, mailbox }, by, PAGE_WAIT_MS);
  const results = await acted.catch(failedFor(mailbox));
  const isError = results.some(({ result }) => result === "attention" || result === "refused");
  const text = results.map((each) => each.text).join(" ");
  tools.actions.sessions.setNotice(request, { text, isError });
  response.writeHead(303, { location: backOf(fields) }).end();
}

/** The disk has refused an order or a pause. */
function failedFor(mailbox = ""): (error: unknown) => MailboxResult[] {
  return (error) => [{ mailbox, status: 503, result: "attention", text: asFault(error).message }];
}
