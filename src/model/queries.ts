/** One language to choose transfers: in commands, the console, the API, the history and actions on many. */

import * as v from "valibot";
import { composed } from "../base/fold-name.ts";
import { addressForm, makeMatcher, textForm } from "../base/normal-form.ts";
import { parseMoment } from "../base/phrases.ts";
import { TRANSFER_ACTS } from "./order.ts";
import { STATES, shownFolder, type TransferKey } from "./record.ts";
import { TRANSFER_GROUPS } from "./status.ts";
import { type MailboxId, mailboxIdOf } from "./transfer.ts";

/** Missing keys choose all. `sinceMs`: changed from then on; `untilMs`: before then. */
export interface TransferFilter extends Omit<v.InferOutput<typeof FilterShape>, "since" | "until"> {
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** A filter of records. `mailboxes`: more that `mailbox` matches, by their labels and addresses. */
export type KeyedFilter = TransferFilter & { readonly mailboxes?: ReadonlySet<MailboxId> };

/** What a filter looks at: a record, an entry of the journal, or an act. */
type Facts = Readonly<Partial<Record<FactName, string | undefined>>>;

type FactName = keyof TransferKey | "sender" | "state" | "reason" | "who" | TextName;
type TextName = "subject" | "message" | "folder" | "inbox";

/** `at`: when it changed. */
export function makeFilter(filter: KeyedFilter): (facts: Facts, at: string | undefined) => boolean {
  const { state, sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY } = filter;
  const isSender = makeMatcher(filter.sender, addressForm);
  const isMailbox = makeMatcher(filter.mailbox, textForm);
  const reason = filter.reason === undefined ? undefined : fold(filter.reason);
  const text = fold(filter.text ?? "");
  const isTimed = filter.sinceMs !== undefined || filter.untilMs !== undefined;
  return (facts, at = "") => {
    const atMs = isTimed ? Date.parse(at) : 0;
    return (
      (!isTimed || (atMs >= sinceMs && atMs < untilMs)) &&
      (state === undefined || facts.state === state) &&
      (reason === undefined || fold(facts.reason ?? "") === reason) &&
      (isMailbox(facts.mailbox ?? "") || filter.mailboxes?.has(mailboxIdOf(facts.mailbox ?? "")) === true) &&
      isSender(facts.sender ?? "") &&
      (text === "" || textsOf(facts).some((each) => fold(each).includes(text)))
    );
  };
}

function textsOf({ trackingId, sender, mailbox, subject, message, folder, inbox, who }: Facts): string[] {
  const shown = folder === undefined ? undefined : shownFolder({ inbox, folder });
  return [trackingId, sender, mailbox, subject, message, shown, who].filter((text) => text !== undefined);
}

function fold(text: string): string {
  return composed(text).toLowerCase();
}

/** The most transfers, or entries of the journal, in one answer of a daemon. */
export const MAX_PAGE_SIZE = 5_000;
export const DEFAULT_SIZE = 50;
const MAX_LENGTH = 200;

const MOMENT = "an age (30m, 12h, 7d, 4w), a date (2026-03-01) or a moment (2026-03-01T14:30Z)";

function text(description: string) {
  const said = `must have at most ${MAX_LENGTH} characters`;
  return v.optional(v.pipe(v.string(), v.trim(), v.maxLength(MAX_LENGTH, said), v.description(description)));
}

function moment(description: string) {
  const isMoment = v.check((given: string) => parseMoment(given, 0) !== undefined, `must be ${MOMENT}`);
  return v.optional(v.pipe(v.string(), isMoment, v.description(`${description}: ${MOMENT}.`)));
}

function oneOf<const Names extends readonly string[]>(names: Names, description: string) {
  const name = v.picklist(names, `must be one of ${names.join(", ")}`);
  return v.optional(v.pipe(name, v.description(description)));
}

function count(max: number) {
  const said = `must be a number from 1 to ${max}`;
  const digits = v.pipe(v.string(), v.regex(/^[1-9]\d{0,6}$/, said), v.transform(Number));
  return v.pipe(digits, v.maxValue(max, said));
}

/** Case is ignored. */
const FilterShape = v.object({
  mailbox: text("The whole name of the mailbox. * stands for any text, ? for any character."),
  sender: text("The whole address of the sender, in the same way."),
  state: oneOf(STATES, "The state."),
  reason: text("The reason, such as password or CHECKSUM_MISMATCH."),
  text: text("A part of the tracking-id, sender, mailbox, subject, message, folder or operator."),
  since: moment("Changed from then on"),
  until: moment("Changed before then"),
});

/** `urgency`: the first to expire first, as open transfers are sorted unless told otherwise. */
export const SORTS = ["urgency", "newest", "oldest", "sender", "size"] as const;

export const ListQueryShape = v.strictObject({
  ...FilterShape.entries,
  group: oneOf(["open", ...TRANSFER_GROUPS], "Only open transfers, or only this group of them."),
  act: oneOf(TRANSFER_ACTS, "Only transfers for which this action may be possible."),
  sort: oneOf(SORTS, "By default urgency with group, else newest."),
  page: v.optional(count(1_000_000), "1"),
  size: v.optional(count(MAX_PAGE_SIZE), String(DEFAULT_SIZE)),
});

/** `transfers`: the last change of each; `changes`: every change; `acts`: what operators did. */
const JOURNAL_KINDS = ["transfers", "changes", "acts"] as const;

export type JournalKind = (typeof JOURNAL_KINDS)[number];

export const HistoryQueryShape = v.strictObject({
  ...FilterShape.entries,
  kind: v.optional(v.picklist(JOURNAL_KINDS, `must be one of ${JOURNAL_KINDS.join(", ")}`), "transfers"),
  limit: v.optional(count(MAX_PAGE_SIZE), String(DEFAULT_SIZE)),
});

export type Parsed<Shape extends v.GenericSchema> = v.InferOutput<Shape> & TransferFilter;

export type ListQuery = Omit<Parsed<typeof ListQueryShape>, "since" | "until">;

/** Reads the parameters of an address; empty ones are missing. Returns a sentence if one is not valid. */
export function parseQuery<Shape extends v.GenericSchema<unknown, object>>(
  shape: Shape,
  given: URLSearchParams,
  nowMs: number,
): Parsed<Shape> | string {
  const parsed = v.safeParse(shape, Object.fromEntries([...given].filter(([, value]) => value !== "")));
  if (!parsed.success) return explain(parsed.issues[0], shape);
  const { since, until }: { readonly since?: string; readonly until?: string } = parsed.output;
  const sinceMs = since === undefined ? undefined : parseMoment(since, nowMs);
  const untilMs = until === undefined ? undefined : parseMoment(until, nowMs, 1);
  return { ...parsed.output, sinceMs, untilMs };
}

/** The address of a page or route with these parameters; empty ones are left out. */
export function linkTo(
  page: string,
  parameters: Readonly<Record<string, string | number | undefined>>,
): string {
  const used = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)] as [string, string]],
  );
  return used.length === 0 ? page : `${page}?${new URLSearchParams(used)}`;
}

function explain({ path, message, type }: v.BaseIssue<unknown>, shape: v.GenericSchema): string {
  const name = String(path?.[0]?.key ?? "A parameter");
  const known = "entries" in shape ? Object.keys(shape.entries as object) : [];
  return type === "strict_object"
    ? `Unknown parameter ${name}: use ${known.join(", ")}.`
    : `${name} ${message}.`;
}
