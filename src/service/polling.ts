/** Lists of transfers: single pages, and an iterator over all pages that ends whatever the service answers. */
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { ListedTransfer } from "../model/transfer.ts";
import { EmptyAnswer } from "./bodies.ts";
import { type Http, POLLING_MINOR_VERSION, type Query } from "./http.ts";
import { decodeLegacy, decodeListed, type LegacyTransfer, type Page, type Rejected } from "./wire.ts";

/** An address with the token that proves its ownership. */
export interface VerifiedAddress {
  readonly email: string;
  readonly token: Secret;
}

export interface PageQuery {
  /** Counted from 1. */
  readonly page?: number;
  /** At most 100; the service may send less. */
  readonly pageSize?: number;
}

export interface PollQuery extends PageQuery {
  /** `true`: only active transfers; `false`: only inactive ones; missing: both. */
  readonly active?: boolean;
  /** An expression such as `trackingId,status(state)`. Missing: the service's default. */
  readonly fields?: string | undefined;
  /** Adds to each entry, as `raw`, what the service sent, without links and secrets. */
  readonly keepRaw?: boolean;
}

/** Allowed by the specification. */
export const LARGEST_PAGE_SIZE = 100;

/** A list with more pages counts as endless. */
const MAX_PAGES = 1_000;

/** A list with more transfers counts as endless, too: pages can be longer than requested. */
const MAX_LISTED = 100_000;

/** A page that is too large is replaced by this many smaller ones. */
const PAGES_FOR_ONE = 10;

/** The list is over after this many pages in a row without a new entry. */
const MAX_STALE_PAGES = 3;

/** Refusals that a page which does not exist may get. */
const NO_SUCH_PAGE: ReadonlySet<FaultCode> = new Set([
  "BAD_REQUEST",
  "NOT_FOUND",
  "NO_SUCH_ENDPOINT",
  "RANGE_REFUSED",
  "TRANSFER_DELETED",
]);

/** Refusals that do not concern the page, but the client or the rate of its requests. */
const ABOUT_CLIENT: ReadonlySet<FaultCode> = new Set(["TOKEN_REFUSED", "RATE_LIMITED", "NOT_LICENSED"]);

/** Names of values that may hold a password, or give access to the transfer. */
const SECRET = /(?:url|uri|href|link|password|token|secret)s?$/i;

const NO_ENTRIES = { entries: [], known: [], rejected: [] };

export async function pollTransfers(
  http: Http,
  direction: "sent" | "received",
  address: VerifiedAddress,
  query: PollQuery,
  signal: AbortSignal,
  isKnown?: (trackingId: string) => boolean,
): Promise<Page<ListedTransfer>> {
  const what = `the ${direction} transfers of ${address.email}`;
  const path = ["users", address.email, "transfers", `${direction}-transfers`];
  const minorVersion = POLLING_MINOR_VERSION;
  const answer = await http.json({ what, path, minorVersion, ...pageCall(address, query) }, signal);
  const page = decodeListed(answer, what, isKnown);
  if (!query.keepRaw) return page;
  const { data } = answer as { readonly data: readonly ({ readonly trackingId?: unknown } | null)[] };
  const raw = new Map(data.map((entry) => [entry?.trackingId, withoutSecrets(entry)]));
  return { ...page, entries: page.entries.map((entry) => ({ ...entry, raw: raw.get(entry.trackingId) })) };
}

export async function pollLegacy(
  http: Http,
  address: VerifiedAddress,
  query: PageQuery,
  signal: AbortSignal,
): Promise<Page<LegacyTransfer>> {
  const what = `the sent transfers of ${address.email} (deprecated list)`;
  const path = ["users", address.email, "transfers"];
  return decodeLegacy(await http.json({ what, path, ...pageCall(address, query) }, signal), what);
}

function pageCall({ token }: VerifiedAddress, { page, pageSize, active, fields }: PollQuery) {
  const query: Query = [
    ["page", page],
    ["page-size", pageSize],
    ["active", active],
    ["fields", fields],
  ];
  return { query, token, size: "page" } as const;
}

/** A selection that a person wrote, with the tracking-id, without which an entry is useless. The service judges the rest. */
export function withTrackingId(fields: string): string {
  return /^\s*trackingId\b/.test(fields) ? fields : `trackingId,${fields}`;
}

/** An entry as the service sent it, without links and secrets. */
function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== "object" || value === null) return value;
  const parts = Object.entries(value).filter(([name]) => !SECRET.test(name));
  return Object.fromEntries(parts.map(([name, part]) => [name, withoutSecrets(part)]));
}

/**
 * Yields each unknown entry of a list once, page by page in the service's order. No yielded page is empty.
 *
 * A short page does not end the list, because a service may cap its pages. The end is an empty page, several pages in a row
 * without a new entry, or the refusal of a page that does not exist. Entries that move between pages meanwhile may be
 * missed until the next poll. Throws `LIST_ENDLESS` if there is no end.
 */
export async function* allPages<Entry extends { readonly trackingId: string }>(
  fetchPage: (page: number) => Promise<Page<Entry>>,
  onRejected: (entry: Rejected) => void,
  pageSize: number = LARGEST_PAGE_SIZE,
  maxPages: number = MAX_PAGES * Math.ceil(LARGEST_PAGE_SIZE / pageSize),
): AsyncGenerator<readonly Entry[], void, undefined> {
  const seen = new Set<string>();
  let stalePages = 0;
  let longest = pageSize;
  /** Whether the last page was shorter than others. */
  let isShort = false;
  let next: Promise<Page<Entry>> | undefined = fetchPage(1);
  for (let number = 1; next !== undefined && seen.size < MAX_LISTED; number++) {
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
    const fresh = page.entries.filter(({ trackingId }) => seen.size < seen.add(trackingId).size);
    stalePages = seen.size === seenBefore ? stalePages + 1 : 0;
    if (stalePages >= MAX_STALE_PAGES) return;
    // Requested while the caller processes this page.
    next = number < maxPages ? fetchPage(number + 1) : undefined;
    // Thrown where it is awaited. If it is not needed, its failure does not matter.
    next?.catch(() => {});
    if (fresh.length > 0) yield fresh;
  }
  throw new Fault("LIST_ENDLESS", { detail: `no end after ${maxPages} pages or ${MAX_LISTED} transfers` });
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
 * The refused page is after the last one: the service says so, or the page before was short. Otherwise a proxy that fails
 * in the middle of a list would make transfers seem to vanish.
 */
function isAfterLastPage(fault: Fault, isAfterShort: boolean): boolean {
  if (fault instanceof EmptyAnswer) return fault.isNoContent || isAfterShort;
  const isOfService = fault.answeredBy === "service";
  if (isOfService && isAfterShort) return !ABOUT_CLIENT.has(fault.code);
  return NO_SUCH_PAGE.has(fault.code) && (isOfService || isAfterShort);
}
