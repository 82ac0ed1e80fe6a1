/** Records and notes as text: one line of JSON with the version of the format. */

import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import { STEPS } from "../model/handoff.ts";
import { RECORD_VERSION, ReleaseShape, STATES, type TransferRecord, VERIFIED } from "../model/record.ts";

const Text = v.optional(v.string());

/** Why a round begins. */
const OCCASIONS = ["retry", "release", "redeliver", "discard", "acknowledge", "listed again"] as const;

const BegunShape = v.object({ why: v.picklist(OCCASIONS), by: v.string(), at: v.string() });

/** Every key of a record: a key that is missing here would be lost when a note is read. */
const KEYS = {
  version: v.literal(RECORD_VERSION),
  mailbox: v.string(),
  trackingId: v.string(),
  transferId: v.string(),
  sender: v.string(),
  state: v.picklist(STATES),
  round: v.pipe(v.number(), v.integer(), v.minValue(1)),
  reason: Text,
  message: Text,
  code: Text,
  output: Text,
  until: Text,
  expires: Text,
  passwordInLink: v.boolean(),
  hasNoPassword: v.optional(v.boolean()),
  hasMessage: v.optional(v.boolean()),
  folder: Text,
  inbox: Text,
  subject: Text,
  files: v.optional(v.number()),
  bytes: v.optional(v.number()),
  verified: v.optional(v.picklist(VERIFIED)),
  complete: Text,
  acknowledgement: Text,
  placement: v.optional(v.picklist(["folder", "files"])),
  released: v.optional(ReleaseShape),
  route: Text,
  routedBecause: Text,
  rule: Text,
  steps: v.optional(v.pipe(v.array(v.picklist(STEPS)), v.readonly())),
  heldBy: Text,
  allowedBy: Text,
  acknowledged: v.optional(v.boolean()),
  password: v.optional(v.object({ spent: v.number(), isExhausted: v.boolean(), isUnusable: v.boolean() })),
  needsPerson: v.optional(v.boolean()),
  wanted: v.optional(v.boolean()),
  missedPolls: v.optional(v.number()),
  vanished: v.optional(v.boolean()),
  attempts: v.number(),
  failures: v.optional(v.record(v.string(), v.number())),
  at: v.record(v.string(), v.string()),
  token: Text,
  begun: v.optional(BegunShape),
} satisfies Record<keyof EndRecord | keyof BeginRecord, v.GenericSchema>;

const Shape = v.object(KEYS);

export type Occasion = (typeof OCCASIONS)[number];

/** Who began a round, when and why. */
export type Begun = Readonly<v.InferOutput<typeof BegunShape>>;

/** The end of a round. `token`: of the staged folder that it ended with; missing for a round without content. */
export type EndRecord = TransferRecord & { readonly token?: string | undefined };
/** The beginning of a round. */
export type BeginRecord = TransferRecord & { readonly begun?: Begun | undefined };

export function formatRecord(record: EndRecord | BeginRecord): string {
  return `${JSON.stringify(record)}\n`;
}

/** Throws `RECORD_UNREADABLE` if the text is damaged or of another version. */
export function parseRecord(text: string, path: string): EndRecord & BeginRecord {
  const result = v.safeParse(Shape, parseJson(text));
  if (result.success) return { ...EMPTY, ...result.output } as EndRecord & BeginRecord;
  const [issue] = result.issues;
  const key = issue?.path?.map((step) => String(step.key)).join(".") ?? "the file";
  throw new Fault("RECORD_UNREADABLE", { detail: `${path}: ${key} should be ${issue?.expected}` });
}

/** JSON leaves out keys whose value is undefined. */
const EMPTY = {
  reason: undefined,
  message: undefined,
  until: undefined,
  expires: undefined,
  folder: undefined,
};

/** `undefined` for a text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
