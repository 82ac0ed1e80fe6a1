/** The status of a daemon out of an answer that anybody may have given. */
import * as v from "valibot";
import { STATES } from "../model/record.ts";
import { STATUS_VERSION, type Status } from "../model/status.ts";

const Time = v.pipe(v.string(), v.isoTimestamp());
const Text = v.optional(v.string());
const State = v.picklist(STATES);

const Trouble = v.looseObject({
  what: v.string(),
  since: Time,
  code: v.string(),
  message: v.string(),
  advice: v.string(),
});

const Transfer = v.looseObject({
  mailbox: v.string(),
  trackingId: v.string(),
  sender: v.string(),
  state: State,
  since: v.optional(Time),
  reason: Text,
  message: Text,
  until: v.optional(Time),
  expires: v.optional(Time),
  commands: v.optional(v.array(v.string())),
  keptIn: Text,
  progress: v.optional(
    v.looseObject({
      doneBytes: v.number(),
      totalBytes: v.number(),
      bytesPerSecond: v.number(),
      secondsLeft: v.optional(v.number()),
    }),
  ),
});

const Mailbox = v.looseObject({
  name: v.string(),
  email: v.string(),
  paused: v.boolean(),
  pollSeconds: v.number(),
  lastPoll: v.optional(Time),
  lastSuccess: v.optional(Time),
  nextPoll: v.optional(Time),
  listed: v.optional(v.number()),
  tokenValidUntil: v.optional(Time),
  quietUntil: v.optional(Time),
  trouble: v.optional(Trouble),
});

/** What is printed is checked; keys of a later version are passed on. */
const Shape = v.looseObject({
  version: v.literal(STATUS_VERSION),
  at: Time,
  live: v.optional(v.literal(true), true),
  daemon: v.looseObject({
    program: v.string(),
    host: v.string(),
    pid: v.number(),
    startedAt: Time,
    queue: v.picklist(["embedded", "redis"]),
    role: v.picklist(["all", "worker", "scheduler"]),
    inbox: v.string(),
    config: Text,
  }),
  troubles: v.array(Trouble),
  needsRestart: v.array(v.string()),
  mailboxes: v.array(Mailbox),
  counts: v.record(v.string(), v.number()),
  totals: v.object({ attention: v.number(), inHand: v.number(), queued: v.number() }),
  waitingSince: v.optional(Time),
  attention: v.array(Transfer),
  inHand: v.array(Transfer),
  queued: v.array(Transfer),
  recent: v.array(
    v.looseObject({
      mailbox: v.string(),
      trackingId: v.string(),
      sender: v.string(),
      folder: v.string(),
      at: Time,
      tookSeconds: v.optional(v.number()),
    }),
  ),
  load: v.array(v.unknown()),
});

/** `undefined` where it is none. */
export function parseStatus(text: string): Status | undefined {
  return parse(Shape, text) as Status | undefined;
}

const Health = v.union([
  v.object({ ready: v.boolean(), reasons: v.array(v.string()) }),
  v.object({ alive: v.boolean(), stuck: v.optional(v.string()) }),
]);

export function parseHealth(text: string): v.InferOutput<typeof Health> | undefined {
  return parse(Health, text);
}

function parse<Schema extends v.GenericSchema>(
  schema: Schema,
  text: string,
): v.InferOutput<Schema> | undefined {
  try {
    const result = v.safeParse(schema, JSON.parse(text));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
}
