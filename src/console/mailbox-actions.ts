/** Requests that act on mailboxes: poll now, pause, resume. */
import * as v from "valibot";
import { asFault, Fault } from "../base/faults.ts";
import { MAILBOX_ACTS } from "../model/order.ts";
import type { MailboxResult } from "../model/views.ts";
import { requireRole } from "./access.ts";
import { type ActionTools, backOf, type Form } from "./actions.ts";

/** How long a page waits for a poll. */
const PAGE_WAIT_MS = 10_000;

const FormShape = v.object({ action: v.picklist(MAILBOX_ACTS), mailbox: v.optional(v.string()) });

/** `/mailbox-actions`: from a form, answered with the page that it came from. */
export async function actOnMailboxesForPage(
  { operate }: ActionTools,
  { access, request, response, fields }: Form,
): Promise<void> {
  const by = await requireRole(access, "operate", request, fields.get("proof") ?? undefined);
  const parsed = v.safeParse(FormShape, Object.fromEntries(fields));
  if (!parsed.success) throw new Fault("REQUEST_INVALID", { detail: "Unknown action." });
  const { action: act, mailbox } = parsed.output;
  const acted = operate.actOnMailboxes({ act, mailbox }, by, PAGE_WAIT_MS);
  const results = await acted.catch(failedFor(mailbox));
  const isError = results.some(({ result }) => result === "attention" || result === "refused");
  const text = results.map((each) => each.text).join(" ");
  access.sessions.setNotice(request, { text, isError });
  response.writeHead(303, { location: backOf(fields) }).end();
}

/** The disk has refused an order or a pause. */
export function failedFor(mailbox = ""): (error: unknown) => MailboxResult[] {
  return (error) => [{ mailbox, status: 503, result: "attention", text: asFault(error).message }];
}
