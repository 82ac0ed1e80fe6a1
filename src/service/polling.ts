/** Lists of transfers: one page, and an iterator over all of them that no list can lead astray. */
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import type { ListedTransfer } from "../model/transfer.ts";
import type { AnswerKind } from "./answers.ts";
import { type FieldTree, formatFields } from "./fields.ts";
import { type Http, POLLING_MINOR_VERSION } from "./http.ts";
import type { KnownPages } from "./known-pages.ts";
import { moreOf } from "./more-fields.ts";
import type { LegacyTransfer, Page, PageQuery, PollQuery, Rejected, VerifiedAddress } from "./port.ts";
import { decodeLegacy, decodeListed } from "./wire.ts";

/** The largest page that the interface allows. */
export const MOST_ENTRIES = 100;

/** A list longer than so many pages has no end that is worth waiting for. */
const MOST_PAGES = 1_000;

/** And so does one of so many transfers: pages can be longer than asked for. */
const MOST_LISTED = 100_000;

/** So many smaller pages are read instead of one that is too large. */
const PAGES_FOR_ONE = 10;

/** So many pages in a row without a new entry, and the list is taken to be over. */
const MOST_STALE_PAGES = 3;

/** In the text of every page that is not empty. */
const ENTRY = '"trackingId"';

/** How a service may refuse a page that is not there. Other refusals are about us, or about how often we ask. */
const NO_SUCH_PAGE: ReadonlySet<FaultCode> = new Set([
  "BAD_REQUEST",
  "NOT_FOUND",
  "NO_SUCH_ENDPOINT",
  "RANGE_REFUSED",
  "TRANSFER_DELETED",
]);

/** The service's own refusals that say nothing about a page. */
const ABOUT_US: ReadonlySet<FaultCode> = new Set(["TOKEN_REFUSED", "RATE_LIMITED", "NOT_LICENSED"]);

/** A success without a body, where a page should be. Its status may say so itself. */
class EmptyAnswer extends Fault {
  constructor(what: string, kind: AnswerKind) {
    super("BAD_ANSWER", {
      detail: `${what}: an empty answer`,
      word: kind === "nothing" ? "service" : "intermediary",
    });
  }
}

const NO_ENTRIES = { entries: [], known: [], rejected: [] };

interface PollHints {
  /** Where some are known, and need not be looked at. */
  readonly known?: KnownPages | undefined;
  /** Called as soon as it is clear that the page is not empty. */
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
  const parameters = [
    ...pageParameters(query),
    ...(query.active === undefined ? [] : [["active", String(query.active)] as const]),
    ...(query.fields === undefined ? [] : [["fields", formatFields(query.fields)] as const]),
  ];
  const minorVersion = POLLING_MINOR_VERSION;
  const call = { what, path, query: parameters, minorVersion, token: address.token, size: "page" } as const;
  const answer = await http.jsonText(call, signal);
  if (answer.text.trim() === "") throw new EmptyAnswer(what, answer.kind);
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
  if (fields === undefined) return page;
  const { data } = answer as { readonly data: readonly ({ readonly trackingId?: unknown } | null)[] };
  const raw = new Map(data.map((entry) => [entry?.trackingId, entry]));
  const entries = page.entries.map((entry) => {
    const more = moreOf(raw.get(entry.trackingId), fields as FieldTree);
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
  const call = { what, path, query: pageParameters(query), token: address.token, size: "page" } as const;
  const answer = await http.jsonText(call, signal);
  if (answer.text.trim() === "") throw new EmptyAnswer(what, answer.kind);
  return decodeLegacy(answer.parse(), what);
}

/**
 * Every entry of a list once, but for those that are known: in the service's order, page by page as they arrive. None of
 * these is empty.
 *
 * A page shorter than asked for says nothing, since a service may cap its pages: an empty page ends the list, or several
 * in a row without a new entry, or a refusal of a page that is not there. Entries that shift between pages while we read
 * may come twice (and are given once) or be missed until the next poll. Throws `LIST_ENDLESS` where there is no end.
 */
export async function* allPages<Entry extends { readonly trackingId: string }>(
  fetchPage: (page: number, onEntries: () => void) => Promise<Page<Entry>>,
  onRejected: (entry: Rejected) => void,
  pageSize: number = MOST_ENTRIES,
  mostPages: number = MOST_PAGES * Math.ceil(MOST_ENTRIES / pageSize),
): AsyncGenerator<readonly Entry[], void, undefined> {
  const seen = new Set<string>();
  let stalePages = 0;
  let number = 1;
  let longest = pageSize;
  let isShort = false;
  /** On its way while the one before is looked at. Where nobody wants it in the end, its failure is nobody's. */
  let ahead: Promise<Page<Entry>> | undefined;
  const ask = (wanted: number) =>
    fetchPage(wanted, () => {
      if (wanted === number) askAhead();
    });
  const askAhead = () => {
    if (ahead !== undefined || number >= mostPages) return;
    ahead = ask(number + 1);
    ahead.catch(() => {});
  };
  for (let next: Promise<Page<Entry>> | undefined = ask(1); next !== undefined; number++) {
    const page: Page<Entry> = await next.catch((error: unknown) => {
      if (number > 1 && error instanceof Fault && isBehindTheLast(error, isShort)) return NO_ENTRIES;
      throw error;
    });
    const length = page.entries.length + page.known.length + page.rejected.length;
    if (length === 0) return;
    // A service that caps its pages gives pages of one length, and the last one is shorter.
    isShort = length < longest;
    longest = number === 1 ? length : Math.max(longest, length);
    for (const entry of page.rejected) onRejected(entry);
    const seenBefore = seen.size;
    for (const trackingId of page.known) seen.add(trackingId);
    const fresh = page.entries.filter(({ trackingId }) => !seen.has(trackingId) && seen.add(trackingId));
    if (seen.size > MOST_LISTED) {
      throw new Fault("LIST_ENDLESS", { detail: `more than ${MOST_LISTED} transfers` });
    }
    stalePages = seen.size === seenBefore ? stalePages + 1 : 0;
    if (stalePages >= MOST_STALE_PAGES) return;
    askAhead();
    if (fresh.length > 0) yield fresh;
    next = ahead;
    ahead = undefined;
  }
  throw new Fault("LIST_ENDLESS", { detail: `${mostPages} pages and no end` });
}

/**
 * Reads a list again by smaller pages where one is too large, which a hundred transfers to many recipients each can be. No
 * entry is given twice.
 */
export async function* pagesThatFit<Entry extends { readonly trackingId: string }>(
  largest: number,
  list: (pageSize: number) => AsyncIterable<readonly Entry[]>,
): AsyncGenerator<readonly Entry[], void, undefined> {
  const given = new Set<string>();
  for (let pageSize = largest; ; pageSize = Math.ceil(pageSize / PAGES_FOR_ONE)) {
    try {
      for await (const page of list(pageSize)) {
        const fresh = page.filter(({ trackingId }) => !given.has(trackingId));
        for (const { trackingId } of fresh) given.add(trackingId);
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
 * Whether a page that failed is behind the last one. The service says so itself, or the page before was short; otherwise
 * a proxy that fails in the middle would make us believe that transfers have vanished.
 */
function isBehindTheLast(fault: Fault, isAfterShort: boolean): boolean {
  if (isAfterShort && fault.word === "service" && !ABOUT_US.has(fault.code)) return true;
  if (!NO_SUCH_PAGE.has(fault.code) && !(fault instanceof EmptyAnswer)) return false;
  return fault.word === "service" || isAfterShort;
}

function pageParameters(query: PageQuery): (readonly [string, string])[] {
  return [
    ...(query.page === undefined ? [] : [["page", String(query.page)] as const]),
    ...(query.pageSize === undefined ? [] : [["page-size", String(query.pageSize)] as const]),
  ];
}
