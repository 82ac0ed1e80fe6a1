/** Reads the journal for the console: one request at a time, and only while its client waits. */
import type { IncomingMessage, ServerResponse } from "node:http";
import * as v from "valibot";
import { Mutex } from "../base/concurrency.ts";
import { parseMoment } from "../base/phrases.ts";
import { STATES } from "../model/record.ts";
import {
  type HistoryQuery,
  JOURNAL_KINDS,
  type JournalKind,
  MAX_PAGE_SIZE,
  type Tally,
} from "../model/views.ts";
import { RANGES, type Range, startOf } from "./chart.ts";
import type { JournalReader } from "./port.ts";
import { MAX_FILTER_LENGTH } from "./query.ts";

const MAX_ENTRIES = 1_000;
const MAX_ACTS = 100;
const MAX_WAITING = 5;
const WAIT_MS = 3_000;
/** A tally of a month takes a while, and changes slowly. */
const TALLY_KEPT_MS = 30_000;

export class JournalAccess {
  readonly #journal: JournalReader;
  readonly #mutex = new Mutex();
  #waiting = 0;
  readonly #tallies = new Map<Range, { readonly atMs: number; readonly slots: readonly Tally[] }>();

  constructor(journal: JournalReader) {
    this.#journal = journal;
  }

  /** The last entries of exactly this mailbox. */
  ofMailbox(request: IncomingMessage, response: ServerResponse, mailbox: string, limit: number) {
    return this.run(request, response, (signal) => this.#journal.search({ mailbox, limit }, signal));
  }

  search(request: IncomingMessage, response: ServerResponse, query: Partial<HistoryQuery>) {
    const patterns = { sender: asPattern(query.sender), mailbox: asPattern(query.mailbox) };
    return this.run(request, response, (signal) => this.#journal.search({ ...query, ...patterns }, signal));
  }

  acts(request: IncomingMessage, response: ServerResponse, sinceMs: number) {
    const query = { sinceMs, limit: MAX_ACTS };
    return this.run(request, response, (signal) => this.#journal.acts(query, signal));
  }

  page(request: IncomingMessage, response: ServerResponse, kind: JournalKind, query: HistoryQuery) {
    return this.run(request, response, (signal) => this.#journal.page(kind, query, signal));
  }

  async tally(
    request: IncomingMessage,
    response: ServerResponse,
    range: Range,
    nowMs: number,
  ): Promise<readonly Tally[] | undefined> {
    const known = this.#tallies.get(range);
    if (known !== undefined && Math.abs(nowMs - known.atMs) < TALLY_KEPT_MS) return known.slots;
    const { slotMs } = RANGES[range];
    const slots = await this.run(request, response, (signal) =>
      this.#journal.tally(startOf(range, nowMs), slotMs, signal),
    );
    if (slots !== undefined) this.#tallies.set(range, { atMs: nowMs, slots });
    return slots;
  }

  /** `undefined` if too many requests wait, this one has waited too long, or its client has left. */
  async run<Answer>(
    { socket }: IncomingMessage,
    response: ServerResponse,
    read: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    if (this.#waiting >= MAX_WAITING) return undefined;
    const clientGone = new AbortController();
    const onClose = () => clientGone.abort();
    // Of several requests on one connection, only the first has a response that emits `close`.
    socket.once("close", onClose);
    response.once("close", onClose);
    this.#waiting++;
    const release = await this.#mutex.lock(
      AbortSignal.any([clientGone.signal, AbortSignal.timeout(WAIT_MS)]),
    );
    this.#waiting--;
    try {
      return release === undefined || socket.destroyed ? undefined : await read(clientGone.signal);
    } finally {
      release?.();
      socket.off("close", onClose);
      response.off("close", onClose);
    }
  }
}

const Digits = v.pipe(v.string(), v.regex(/^-?\d{1,16}$/), v.transform(Number));
const Moment = v.optional(Digits);

/** Returns a sentence if a parameter is invalid. */
export function parseJournalQuery(given: URLSearchParams, nowMs: number): Partial<HistoryQuery> | string {
  const names = ["search", "state", "since", "limit", "sender", "mailbox"];
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) return `Unknown parameter ${unknown}: use ${names.join(", ")}.`;
  const [search, state, since, limit, sender, mailbox] = names.map(
    (name) => given.get(name)?.trim() || undefined,
  );
  const long = [search, sender, mailbox].find((text) => (text ?? "").length > MAX_FILTER_LENGTH);
  if (long !== undefined) return `A parameter must have at most ${MAX_FILTER_LENGTH} characters.`;
  if (state !== undefined && !(STATES as readonly string[]).includes(state)) {
    return `state must be one of ${STATES.join(", ")}.`;
  }
  const sinceMs = since === undefined ? undefined : parseMoment(since, nowMs);
  if (since !== undefined && sinceMs === undefined) {
    return "since must be an age (30m, 12h, 7d, 4w), a date (2026-03-01) or a moment (2026-03-01T14:30Z).";
  }
  const count = limit === undefined ? undefined : Number(limit);
  if (count !== undefined && !(/^\d{1,6}$/.test(limit ?? "") && count >= 1 && count <= MAX_ENTRIES)) {
    return `limit must be a number from 1 to ${MAX_ENTRIES}.`;
  }
  return { search, state, sinceMs, sender, mailbox, ...(count === undefined ? {} : { limit: count }) };
}

const PageShape = v.strictObject({
  kind: v.picklist(JOURNAL_KINDS),
  since: Moment,
  until: Moment,
  sender: v.optional(v.string()),
  mailbox: v.optional(v.string()),
  search: v.optional(v.string()),
  state: v.optional(v.picklist(STATES)),
  limit: v.pipe(Digits, v.minValue(1), v.maxValue(MAX_PAGE_SIZE)),
});

/** Reads the query of a command, with moments in milliseconds. Returns a sentence if a parameter is invalid. */
export function parsePageQuery(
  given: URLSearchParams,
): { readonly kind: JournalKind; readonly query: HistoryQuery } | string {
  const parsed = v.safeParse(PageShape, Object.fromEntries(given));
  if (!parsed.success) return `${parsed.issues[0].path?.[0]?.key ?? "A parameter"} is not valid.`;
  const { kind, since: sinceMs, until: untilMs, ...query } = parsed.output;
  return { kind, query: { ...query, sinceMs, untilMs } };
}

/** A text without wildcards matches anywhere. */
function asPattern(text: string | undefined): string | undefined {
  return text === undefined || /[*?]/.test(text) ? text : `*${text}*`;
}
