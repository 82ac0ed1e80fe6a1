/** The API: each route with its parameters, body, answer and role. The server and the OpenAPI document follow this table. */
import * as v from "valibot";
import { MAILBOX_ACTS, type Role, TRANSFER_ACTS } from "./order.ts";
import { HistoryQueryShape, ListQueryShape } from "./queries.ts";
import { OpenListShape, OpenTransferShape, StatusShape } from "./status.ts";
import {
  ActEntryShape,
  ActResultShape,
  HistoryEntryShape,
  JournalPageShape,
  MailboxResultShape,
  StoryShape,
  TransferListShape,
  TransferShape,
} from "./views.ts";

/** Within one version, keys of answers and parameters are only added. Every answer names it in the header `inlet-api`. */
export const API_VERSION = 1;

/** The longest `--timeout` of a command. */
const MAX_WAIT_SECONDS = 7 * 24 * 60 * 60;

const Key = { mailbox: v.string(), trackingId: v.string() };

const Wait = v.optional(
  v.pipe(
    v.number(),
    v.minValue(0),
    v.maxValue(MAX_WAIT_SECONDS),
    v.description("Seconds to wait for the outcome."),
  ),
  0,
);

const ActRequestShape = v.object({
  action: v.picklist(TRANSFER_ACTS),
  mailbox: v.optional(v.string()),
  trackingId: v.optional(v.string()),
  transfers: v.optional(
    v.pipe(
      v.array(v.object(Key)),
      v.description("Instead of mailbox and trackingId, for several transfers."),
    ),
  ),
  password: v.optional(v.pipe(v.string(), v.description("For the action password."))),
  wait: Wait,
});

const MailboxRequestShape = v.object({
  action: v.picklist(MAILBOX_ACTS),
  mailbox: v.optional(v.pipe(v.string(), v.description("Missing: all mailboxes."))),
  wait: Wait,
});

const ResultsShape = v.object({ results: v.array(ActResultShape) });

/** Problem details of RFC 9457. `code` is in the table of faults; requests that reach no route have none. */
export const ProblemShape = v.object({
  type: v.string(),
  title: v.string(),
  status: v.number(),
  detail: v.string(),
  code: v.optional(v.string()),
  /** Of an action on a single transfer. */
  results: v.optional(ResultsShape.entries.results),
});

export type Problem = v.InferInput<typeof ProblemShape>;

/** The bodies and answers, by their names in the OpenAPI document. */
export const API_SHAPES = {
  Status: StatusShape,
  Transfers: v.union([TransferListShape, OpenListShape]),
  Story: StoryShape,
  /** `objection`: why an act is not possible, for people; null if nothing is known against it. */
  Objection: v.object({ objection: v.nullable(v.string()) }),
  JournalPage: JournalPageShape,
  Events: v.string(),
  OpenApi: v.record(v.string(), v.unknown()),
  ActRequest: ActRequestShape,
  ActResults: ResultsShape,
  MailboxRequest: MailboxRequestShape,
  MailboxResults: v.object({ results: v.array(MailboxResultShape) }),
  Problem: ProblemShape,
  // Parts of them.
  Transfer: TransferShape,
  OpenTransfer: OpenTransferShape,
  HistoryEntry: HistoryEntryShape,
  ActEntry: ActEntryShape,
  ActResult: ActResultShape,
};

type ShapeName = keyof typeof API_SHAPES;

const NoParameters = v.strictObject({});

export const API = {
  "/api/status": get("The whole status.", NoParameters, "Status"),
  "/api/transfers": get(
    "Every known transfer, in pages. With `group`, only open transfers, from memory.",
    ListQueryShape,
    "Transfers",
  ),
  "/api/transfers/story": get("Everything about one transfer.", v.strictObject(Key), "Story"),
  "/api/transfers/objection": get(
    "Why an action on a transfer is not possible; `null` if it may be.",
    v.strictObject({ act: v.picklist(TRANSFER_ACTS, `must be one of ${TRANSFER_ACTS.join(", ")}`), ...Key }),
    "Objection",
  ),
  "/api/history": get("The journal, newest first.", HistoryQueryShape, "JournalPage"),
  "/api/events": {
    ...get(
      "Each change of the status as server-sent events, and one at least every three seconds. With `as=heartbeat`, only a headline.",
      v.strictObject({ as: v.optional(v.picklist(["heartbeat"], "must be heartbeat")) }),
      "Events",
    ),
    type: "text/event-stream",
  },
  "/api/openapi.json": get("This API as an OpenAPI 3.1 document.", NoParameters, "OpenApi"),
  "/api/actions": post("Acts on one transfer or several.", "ActRequest", "ActResults"),
  "/api/mailboxes/actions": post(
    "Polls, pauses or resumes a mailbox, or all.",
    "MailboxRequest",
    "MailboxResults",
  ),
} as const satisfies Readonly<Record<string, ApiRoute>>;

export type ApiPath = keyof typeof API;

export interface ApiRoute {
  readonly method: "GET" | "POST";
  readonly role: Role;
  readonly summary: string;
  readonly query: v.GenericSchema & { readonly entries: v.ObjectEntries };
  readonly body: ShapeName | undefined;
  readonly answer: ShapeName;
  /** Missing: JSON. */
  readonly type?: string;
}

export type BodyOf<Path extends ApiPath> = (typeof API)[Path]["body"] extends infer Name extends ShapeName
  ? v.InferOutput<(typeof API_SHAPES)[Name]>
  : undefined;

export type AnswerOf<Path extends ApiPath> = v.InferOutput<(typeof API_SHAPES)[(typeof API)[Path]["answer"]]>;

function get<Query extends ApiRoute["query"], const Answer extends ShapeName>(
  summary: string,
  query: Query,
  answer: Answer,
) {
  return { method: "GET", role: "read", summary, query, body: undefined, answer } as const;
}

function post<const Body extends ShapeName, const Answer extends ShapeName>(
  summary: string,
  body: Body,
  answer: Answer,
) {
  return { method: "POST", role: "operate", summary, query: NoParameters, body, answer } as const;
}
