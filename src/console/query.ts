/** Filters of lists: read from an address, applied to transfers, and written into links. */
import { addressForm, makeMatcher, type NormalForm, textForm } from "../base/normal-form.ts";
import { TRANSFER_ACTS } from "../model/order.ts";
import { STATES } from "../model/record.ts";
import { TRANSFER_GROUPS, type TransferStatus } from "../model/status.ts";
import { type ListQuery, MAX_PAGE_SIZE } from "../model/views.ts";

const SORTS = ["urgency", "newest", "oldest", "sender", "size"] as const;

/** The parameters that choose transfers. Missing ones choose all. */
export const FILTERS = ["group", "state", "reason", "mailbox", "sender", "search"] as const;

type Filter = Partial<Readonly<Record<(typeof FILTERS)[number], string>>>;

export interface TransferQuery {
  readonly filter: Filter;
  readonly sort: (typeof SORTS)[number];
  /** Counted from 1. */
  readonly page: number;
  readonly size: number;
}

export interface TransferPage {
  readonly total: number;
  readonly page: number;
  readonly pages: number;
  readonly size: number;
  readonly transfers: readonly TransferStatus[];
}

export const MAX_FILTER_LENGTH = 200;
const DEFAULT_SIZE = 50;
const MAX_SIZE = 500;

/** Returns a sentence if a parameter is invalid. */
export function parseTransferQuery(given: URLSearchParams): TransferQuery | string {
  const names = [...FILTERS, "sort", "page", "size"];
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) return `Unknown parameter ${unknown}: use ${names.join(", ")}.`;
  const filter: Record<string, string> = {};
  for (const name of FILTERS) {
    const value = (given.get(name) ?? "").trim();
    if (value.length > MAX_FILTER_LENGTH) return `${name} must have at most ${MAX_FILTER_LENGTH} characters.`;
    if (value !== "") filter[name] = value;
  }
  const { group, state } = filter;
  if (group !== undefined && !isOneOf(TRANSFER_GROUPS, group)) {
    return `group must be one of ${TRANSFER_GROUPS.join(", ")}.`;
  }
  if (state !== undefined && !isOneOf(STATES, state)) return `state must be one of ${STATES.join(", ")}.`;
  const sort = given.get("sort") || "urgency";
  if (!isOneOf(SORTS, sort)) return `sort must be one of ${SORTS.join(", ")}.`;
  const [page, size] = [readNumber(given.get("page"), 1), readNumber(given.get("size"), DEFAULT_SIZE)];
  if (page === undefined) return "page must be a number from 1.";
  if (size === undefined || size > MAX_SIZE) return `size must be a number from 1 to ${MAX_SIZE}.`;
  return { filter, sort, page, size };
}

/** Returns a sentence if a parameter is invalid. */
export function parseListQuery(given: URLSearchParams): ListQuery | string {
  const {
    mailbox,
    sender,
    state,
    reason,
    search,
    ids,
    act,
    page,
    size,
    sort = "newest",
    ...unknown
  } = Object.fromEntries([...given].filter(([, value]) => value !== ""));
  const [name] = Object.keys(unknown);
  if (name !== undefined) return `Unknown parameter ${name}.`;
  if (state !== undefined && !isOneOf(STATES, state)) return `state must be one of ${STATES.join(", ")}.`;
  if (sort !== "newest" && sort !== "expires") return "sort must be newest or expires.";
  const [number, count] = [readNumber(page ?? null, 1), readNumber(size ?? null, DEFAULT_SIZE)];
  if (number === undefined) return "page must be a number from 1.";
  if (count === undefined || count > MAX_PAGE_SIZE)
    return `size must be a number from 1 to ${MAX_PAGE_SIZE}.`;
  if (act !== undefined && !isOneOf(TRANSFER_ACTS, act))
    return `act must be one of ${TRANSFER_ACTS.join(", ")}.`;
  const filter = { mailbox, sender, state, reason, search, ids: ids?.split(","), act };
  return { ...filter, page: number, size: count, sort };
}

/** A page beyond the end is the last one. */
export function selectTransfers(
  all: readonly TransferStatus[],
  { filter, sort, page: wanted, size }: TransferQuery,
): TransferPage {
  const found = filterTransfers(all, filter);
  const pages = Math.max(1, Math.ceil(found.length / size));
  const page = Math.min(wanted, pages);
  const transfers = sortBy(found, sort).slice((page - 1) * size, page * size);
  return { total: found.length, page, pages, size, transfers };
}

/** Keeps the order. */
export function filterTransfers(all: readonly TransferStatus[], filter: Filter): TransferStatus[] {
  const { group, state, reason, search } = filter;
  const isSender = makeFieldMatcher(filter.sender, addressForm);
  const { mailbox } = filter;
  // The name of a mailbox may be a part of another one's.
  const isWhole = all.some((transfer) => transfer.mailbox === mailbox);
  const isMailbox = isWhole ? (name: string) => name === mailbox : makeFieldMatcher(mailbox, textForm);
  const wanted = fold(search ?? "");
  return all.filter(
    (transfer) =>
      (group === undefined || group === transfer.group) &&
      (state === undefined || state === transfer.state) &&
      (reason === undefined || reason === transfer.reason) &&
      isMailbox(transfer.mailbox) &&
      isSender(transfer.sender) &&
      (wanted === "" || textsOf(transfer).some((text) => fold(text).includes(wanted))),
  );
}

/** The address of a list with these parameters; empty ones are left out. */
export function linkTo(
  page: string,
  parameters: Readonly<Record<string, string | number | undefined>>,
): string {
  const used = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)] as [string, string]],
  );
  return used.length === 0 ? page : `${page}?${new URLSearchParams(used)}`;
}

/** The parameters of a query that differ from their defaults. */
export function parametersOf({ filter, sort, page, size }: TransferQuery) {
  return {
    ...filter,
    sort: sort === "urgency" ? undefined : sort,
    size: size === DEFAULT_SIZE ? undefined : size,
    page: page === 1 ? undefined : page,
  };
}

/** A pattern with `*` or `?` matches the whole text, another one a part of it. Case is ignored. */
function makeFieldMatcher(pattern: string | undefined, form: NormalForm): (text: string) => boolean {
  if (pattern === undefined || /[*?]/.test(pattern)) return makeMatcher(pattern, form);
  const folded = fold(pattern);
  return (text) => fold(text).includes(folded);
}

function textsOf({ trackingId, sender, subject = "", message = "" }: TransferStatus): string[] {
  return [trackingId, sender, subject, message];
}

function sortBy(transfers: TransferStatus[], sort: TransferQuery["sort"]): TransferStatus[] {
  const bySince = (a: TransferStatus, b: TransferStatus) => compare(a.since ?? "", b.since ?? "");
  if (sort === "oldest") return transfers.toSorted(bySince);
  if (sort === "newest") return transfers.toSorted((a, b) => bySince(b, a));
  if (sort === "sender") return transfers.toSorted((a, b) => compare(a.sender, b.sender));
  if (sort === "size") return transfers.toSorted((a, b) => (b.bytes ?? -1) - (a.bytes ?? -1));
  return transfers;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function fold(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/** `fallback` without a text; `undefined` for a text that is not a whole number from 1. */
function readNumber(text: string | null, fallback: number): number | undefined {
  if (text === null || text === "") return fallback;
  return /^[1-9]\d{0,5}$/.test(text) ? Number(text) : undefined;
}

function isOneOf<Name extends string>(names: readonly Name[], text: string): text is Name {
  return (names as readonly string[]).includes(text);
}
