/** Records and notes as text: one line of JSON with the version of the format. */

import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import { RecordShape, type TransferRecord } from "../model/record.ts";

/** Why a round begins. */
const OCCASIONS = ["retry", "release", "redeliver", "discard", "acknowledge", "listed again"] as const;

const BegunShape = v.object({ why: v.picklist(OCCASIONS), by: v.string(), at: v.string() });

const Shape = v.object({
  ...RecordShape.entries,
  token: v.optional(v.string()),
  begun: v.optional(BegunShape),
});

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
  if (result.success) return result.output;
  const [issue] = result.issues;
  const key = issue?.path?.map((step) => String(step.key)).join(".") ?? "the file";
  throw new Fault("RECORD_UNREADABLE", { detail: `${path}: ${key} should be ${issue?.expected}` });
}

/** `undefined` for a text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
