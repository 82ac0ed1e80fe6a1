/** Decodes the service's answers by schemas. An answer that does not fit becomes a fault that names the field. */
import * as v from "valibot";
import { type AnsweredBy, Fault } from "../base/faults.ts";

/** One page of a list. An entry that cannot be decoded is rejected without affecting the others. */
export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** Tracking-ids of known entries, which were not decoded. */
  readonly known: readonly string[];
  readonly rejected: readonly Rejected[];
}

/** An entry of a list that cannot be decoded. */
export interface Rejected {
  readonly fault: Fault;
  /** Missing if it is unreadable, too. */
  readonly trackingId: string | undefined;
}

export type Decoder<Value> = (answer: unknown, what: string) => Value;

const MAX_ENTRIES_PER_PAGE = 1_000;

type Schema<Output> = v.GenericSchema<unknown, Output>;

/** Stop at the first problem: a hostile answer can have millions. */
const FIRST_PROBLEM = { abortEarly: true, abortPipeEarly: true };

/** All successful answers except the server status are wrapped: `{ data, meta }`. */
export function decodeData<Output>(schema: Schema<Output>): Decoder<Output> {
  const envelope = v.object({ data: schema });
  return (answer, what) => check(envelope, answer, what).data;
}

/**
 * A list whose entries are decoded one by one, so that a bad entry does not spoil the others. Known entries are not decoded
 * beyond their tracking-id.
 */
export function decodePage<Entry>(
  schema: Schema<Entry>,
): (answer: unknown, what: string, isKnown?: (trackingId: string) => boolean) => Page<Entry> {
  const decodeList = decodeData(v.array(v.unknown()));
  return (answer, what, isKnown = () => false) => {
    const list = decodeList(answer, what);
    if (list.length > MAX_ENTRIES_PER_PAGE) {
      const detail = `${what}: ${list.length} entries on one page`;
      throw new Fault("ANSWER_TOO_LARGE", { detail, answeredBy: "service" });
    }
    const entries: Entry[] = [];
    const known: string[] = [];
    const rejected: Rejected[] = [];
    for (const [at, raw] of list.entries()) {
      const trackingId = trackingIdOf(raw);
      if (trackingId !== undefined && isKnown(trackingId)) {
        known.push(trackingId);
        continue;
      }
      const result = v.safeParse(schema, raw, FIRST_PROBLEM);
      if (result.success) entries.push(result.output);
      else {
        const fault = mismatch(result.issues, `${what}, entry ${at + 1}`, "service");
        rejected.push({ fault, trackingId });
      }
    }
    return { entries, known, rejected };
  };
}

function trackingIdOf(raw: unknown): string | undefined {
  const trackingId = (raw as { readonly trackingId?: unknown } | null)?.trackingId;
  return typeof trackingId === "string" ? trackingId : undefined;
}

export function check<Output>(schema: Schema<Output>, value: unknown, what: string): Output {
  const result = v.safeParse(schema, value, FIRST_PROBLEM);
  if (result.success) return result.output;
  throw mismatch(result.issues, what, isEnvelope(value) ? "service" : "intermediary");
}

function isEnvelope(value: unknown): boolean {
  return typeof value === "object" && value !== null && "data" in value;
}

/** Names the field and the expected type, but never the received value, which may be a secret. */
function mismatch(issues: readonly v.BaseIssue<unknown>[], what: string, answeredBy: AnsweredBy): Fault {
  const [first] = issues;
  const path = first?.path?.map((step) => String(step.key)).join(".") || "the answer";
  const expected =
    first?.type === "max_length"
      ? `at most ${first.expected?.replace("<=", "")} ${typeof first.input === "string" ? "characters long" : "entries"}`
      : (first?.expected ?? first?.type ?? "something else");
  return new Fault("BAD_ANSWER", { detail: `${what}: ${path} should be ${expected}`, answeredBy });
}
