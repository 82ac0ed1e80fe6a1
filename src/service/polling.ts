/** Lists of transfers: single pages, and an iterator over all pages that ends whatever the service answers. */
import { hash } from "node:crypto";
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import type { ListedTransfer } from "../model/transfer.ts";
import type { AnswerKind } from "./answers.ts";
import type { JsonText } from "./bodies.ts";
import { formatFields, moreOf } from "./fields.ts";
import { type Call, type Http, POLLING_MINOR_VERSION, type Query } from "./http.ts";
import type { Page, PageQuery, PollQuery, Rejected, VerifiedAddress } from "./port.ts";
import { decodeLegacy, decodeListed, type LegacyTransfer } from "./wire.ts";

/** Allowed by the specification. */
export const LARGEST_PAGE_SIZE = 100;

/** A list with more pages counts as endless. */
const MAX_PAGES = 1_000;

/** A list with more transfers counts as endless, too: pages can be longer than requested. */
const MAX_LISTED = 100_000;

/** The ids of a list are kept in memory between polls. Real ones have 24 characters. */
const MAX_LISTED_CHARACTERS = 4 * 1024 * 1024;

/** A page that is too large is replaced by this many smaller ones. */
const PAGES_FOR_ONE = 10;

/** The list is over after this many pages in a row without a new entry. */
const MAX_STALE_PAGES = 3;

/** Part of the text of every page with entries. */
const ENTRY = '"trackingId"';

/** Refusals of a page that does not exist. Other refusals concern the client or the rate of requests. */
const NO_SUCH_PAGE: ReadonlySet<FaultCode> = new Set([
  "BAD_REQUEST",
  "NOT_FOUND",
  "NO_SUCH_ENDPOINT",
  "RANGE_REFUSED",
  "TRANSFER_DELETED",
]);

/** Refusals by the service that do not concern the page. */
const ABOUT_CLIENT: ReadonlySet<FaultCode> = new Set(["TOKEN_REFUSED", "RATE_LIMITED", "NOT_LICENSED"]);

/** A success without a body instead of a page. With status 204 the service itself says so. */
class EmptyAnswer extends Fault {
  constructor(what: string, kind: AnswerKind) {
    super("BAD_ANSWER", {
      detail: `${what}: an empty answer`,
      answeredBy: kind === "nothing" ? "service" : "intermediary",
    });
  }
}

const NO_ENTRIES = { entries: [], known: [], rejected: [] };

interface PollHints {
  /** Skips entries that are known. */
  readonly known?: KnownPages | undefined;
  /** Called as soon as the page is known to have entries. */
  onEntries?(): void;
}

export async function pollTransfers(
  http: Http,
  direction: "sent" | "received",
  address: VerifiedAddress,
  query: PollQuery,
  signal: AbortSignal,
  { known, onEntries }: PollHints = {},
): Promise<Page<ListedTransfer>> {
  const what = `the ${direction} transfers of ${address.email}`;
  const path = ["users", address.email, "transfers", `${direction}-transfers`];
  const minorVersion = POLLING_MINOR_VERSION;
  const answer = await fetchText(http, { what, path, minorVersion, ...pageCall(address, query) }, signal);
  if (answer.text.includes(ENTRY)) onEntries?.();
  if (known !== undefined) return known.read(answer, what);
  const parsed = answer.parse();
  const page = decodeListed(parsed, what);
  return query.keepMore ? keepMore(page, parsed, query.fields) : page;
}

function keepMore(
  page: Page<ListedTransfer>,
  answer: unknown,
  fields: PollQuery["fields"],
): Page<ListedTransfer> {
  const { data } = answer as { readonly data: readonly ({ readonly trackingId?: unknown } | null)[] };
  const raw = new Map(data.map((entry) => [entry?.trackingId, entry]));
  const entries = page.entries.map((entry) => {
    const more = moreOf(raw.get(entry.trackingId), fields);
    return more === undefined ? entry : { ...entry, more };
  });
  return { ...page, entries };
}

export async function pollLegacy(
  http: Http,
  address: VerifiedAddress,
  query: PageQuery,
  signal: AbortSignal,
): Promise<Page<LegacyTransfer>> {
  const what = `the sent transfers of ${address.email} (deprecated list)`;
  const path = ["users", address.email, "transfers"];
  const answer = await fetchText(http, { what, path, ...pageCall(address, query) }, signal);
  return decodeLegacy(answer.parse(), what);
}

function pageCall({ token }: VerifiedAddress, { page, pageSize, active, fields }: PollQuery) {
  const query: Query = [
    ["page", page],
    ["page-size", pageSize],
    ["active", active],
    ["fields", fields && formatFields(fields)],
  ];
  return { query, token, size: "page" } as const;
}

async function fetchText(http: Http, call: Call, signal: AbortSignal): Promise<JsonText> {
  const answer = await http.jsonText(call, signal);
  if (answer.text.trim() === "") throw new EmptyAnswer(call.what, answer.kind);
  return answer;
}

/**
 * Yields each unknown entry of a list once, page by page in the service's order. No yielded page is empty.
 *
 * A short page does not end the list, because a service may cap its pages. The end is an empty page, several pages in a row
 * without a new entry, or the refusal of a page that does not exist. Entries that move between pages meanwhile may be
 * missed until the next poll. Throws `LIST_ENDLESS` if there is no end.
 */
export async function* allPages<Entry extends { readonly trackingId: string }>(
  fetchPage: (page: number, onEntries: () => void) => Promise<Page<Entry>>,
  onRejected: (entry: Rejected) => void,
  pageSize: number = LARGEST_PAGE_SIZE,
  mostPages: number = MAX_PAGES * Math.ceil(LARGEST_PAGE_SIZE / pageSize),
): AsyncGenerator<readonly Entry[], void, undefined> {
  const seen = new SeenIds();
  let stalePages = 0;
  let number = 1;
  let longest = pageSize;
  let isShort = false;
  /** The next page, requested while the current one is processed. If it is not needed, its failure is ignored. */
  let ahead: Promise<Page<Entry>> | undefined;
  const request = (wanted: number) =>
    fetchPage(wanted, () => {
      if (wanted === number) requestNext();
    });
  const requestNext = () => {
    if (ahead !== undefined || number >= mostPages) return;
    ahead = request(number + 1);
    // Thrown where it is awaited.
    ahead.catch(() => {});
  };
  for (let next: Promise<Page<Entry>> | undefined = request(1); next !== undefined; number++) {
    const page: Page<Entry> = await next.catch((error: unknown) => {
      if (number > 1 && error instanceof Fault && isAfterLastPage(error, isShort)) return NO_ENTRIES;
      throw error;
    });
    const length = page.entries.length + page.known.length + page.rejected.length;
    if (length === 0) return;
    // If a service caps its pages, all have the same length except the last.
    isShort = length < longest;
    longest = number === 1 ? length : Math.max(longest, length);
    for (const entry of page.rejected) onRejected(entry);
    const seenBefore = seen.size;
    for (const trackingId of page.known) seen.add(trackingId);
    const fresh = page.entries.filter(({ trackingId }) => seen.add(trackingId));
    stalePages = seen.size === seenBefore ? stalePages + 1 : 0;
    if (stalePages >= MAX_STALE_PAGES) return;
    requestNext();
    if (fresh.length > 0) yield fresh;
    next = ahead;
    ahead = undefined;
  }
  throw new Fault("LIST_ENDLESS", { detail: `no end after ${mostPages} pages` });
}

/** The tracking-ids of one list. */
class SeenIds {
  readonly #ids = new Set<string>();
  #characters = 0;

  get size(): number {
    return this.#ids.size;
  }

  /** Whether it is new. Throws `LIST_ENDLESS` if there are too many. */
  add(trackingId: string): boolean {
    if (this.#ids.has(trackingId)) return false;
    this.#ids.add(trackingId);
    this.#characters += trackingId.length;
    if (this.size > MAX_LISTED) {
      throw new Fault("LIST_ENDLESS", { detail: `more than ${MAX_LISTED} transfers` });
    }
    if (this.#characters > MAX_LISTED_CHARACTERS) {
      const detail = `tracking-ids of more than ${MAX_LISTED_CHARACTERS} characters`;
      throw new Fault("LIST_ENDLESS", { detail });
    }
    return true;
  }
}

/**
 * Reads a list again with smaller pages if one is too large, for example because of many recipients. Yields no entry twice.
 */
export async function* pagesThatFit<Entry extends { readonly trackingId: string }>(
  largest: number,
  list: (pageSize: number) => AsyncIterable<readonly Entry[]>,
): AsyncGenerator<readonly Entry[], void, undefined> {
  const yielded = new Set<string>();
  for (let pageSize = largest; ; pageSize = Math.ceil(pageSize / PAGES_FOR_ONE)) {
    try {
      for await (const page of list(pageSize)) {
        const fresh = page.filter(({ trackingId }) => !yielded.has(trackingId));
        for (const { trackingId } of fresh) yielded.add(trackingId);
        if (fresh.length > 0) yield fresh;
      }
      return;
    } catch (error) {
      const isTooLarge = error instanceof Fault && error.code === "ANSWER_TOO_LARGE";
      if (!isTooLarge || pageSize === 1) throw error;
    }
  }
}

/**
 * The pages of one poll on which every entry was known. Most pages are unchanged since the last poll: a page with the same
 * text need not be decoded again.
 */
export class KnownPages {
  readonly #isKnown: (trackingId: string) => boolean;
  readonly #before: ReadonlyMap<string, readonly string[]>;
  readonly #now = new Map<string, readonly string[]>();

  constructor(isKnown: (trackingId: string) => boolean, before: KnownPages | undefined) {
    this.#isKnown = isKnown;
    this.#before = before === undefined ? new Map() : before.#now;
  }

  /** Checks `isKnown` for each entry, also on an unchanged page: the answer may have changed. */
  read(answer: JsonText, what: string): Page<ListedTransfer> {
    const digest = hash("sha256", answer.text, "base64");
    const known = this.#before.get(digest);
    const page = known?.every((trackingId) => this.#isKnown(trackingId))
      ? { entries: [], known, rejected: [] }
      : decodeListed(answer.parse(), what, this.#isKnown);
    if (page.entries.length + page.rejected.length === 0) this.#now.set(digest, page.known);
    return page;
  }
}

/**
 * The refused page is after the last one: the service says so, or the page before was short. Otherwise a proxy that fails
 * in the middle of a list would make transfers seem to vanish.
 */
function isAfterLastPage(fault: Fault, isAfterShort: boolean): boolean {
  if (isAfterShort && fault.answeredBy === "service" && !ABOUT_CLIENT.has(fault.code)) return true;
  if (!NO_SUCH_PAGE.has(fault.code) && !(fault instanceof EmptyAnswer)) return false;
  return fault.answeredBy === "service" || isAfterShort;
}
