/** Records the requests to the simulated service, without secrets, so that tests can check a client. */
import type { IncomingHttpHeaders } from "node:http";
import type { Strike } from "./faults.ts";
import { PARAMETERS } from "./requests.ts";
import { OPERATIONS, type Operation } from "./scenario.ts";

/** A record whose `status` and `bytes` change while its request is answered. */
export type OpenRecord = ReturnType<typeof recordOf>;
export type RequestRecord = Readonly<OpenRecord>;

const RECORDS_KEPT = 10_000;

export class Journal {
  readonly #records: OpenRecord[] = [];
  readonly #totals = new Map<Operation, number>();

  /** Returns the record. */
  add(record: OpenRecord): OpenRecord {
    this.#records.push(record);
    if (this.#records.length > RECORDS_KEPT) this.#records.shift();
    const { operation } = record;
    if (operation !== undefined) this.#totals.set(operation, (this.#totals.get(operation) ?? 0) + 1);
    return record;
  }

  /** Copies of the last ten thousand, oldest first. */
  records(): readonly RequestRecord[] {
    return this.#records.map((record) => ({ ...record }));
  }

  /** The number of requests per operation, since the start. */
  totals(): Readonly<Record<Operation, number>> {
    const totals = OPERATIONS.map((operation) => [operation, this.#totals.get(operation) ?? 0]);
    return Object.fromEntries(totals) as Record<Operation, number>;
  }
}

export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
}

/**
 * The record of an incoming request. `operation`: `undefined` for an unknown endpoint. `transfer`: the tracking-id, if the
 * request belongs to a transfer. `strikes`: the faults that struck it.
 */
export function recordOf(
  request: HttpRequest,
  operation: Operation | undefined,
  transfer: string | undefined,
  strikes: readonly Strike[],
  atMs: number,
) {
  const { method, url, headers } = request;
  const sent = QUERY_SHOWN.filter((name) => url.searchParams.has(name));
  return {
    operation,
    method,
    /** Without the query. */
    path: url.pathname,
    /** Zero before the answer. */
    status: 0,
    /** Bytes of the body sent so far. */
    bytes: 0,
    transfer,
    passwordSent: placeOfPassword(request),
    /** Parameters sent in the query instead of a header: logs and histories would keep them. */
    queryTwins: TWINS.filter((name) => url.searchParams.has(name)),
    /** Parameters and headers that hold no secrets. */
    query: Object.fromEntries(sent.map((name) => [name, url.searchParams.getAll(name)])),
    headers: Object.fromEntries(
      HEADERS_SHOWN.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
    ),
    faults: strikes.map(({ id }) => id),
    atMs,
  };
}

function placeOfPassword({ url, headers }: HttpRequest): "header" | "query" | "none" {
  const { header, twin } = PARAMETERS.password;
  if (headers[header] !== undefined) return "header";
  return url.searchParams.has(twin) ? "query" : "none";
}

const TWINS = Object.values(PARAMETERS).map(({ twin }) => twin);

const QUERY_SHOWN = [
  "page",
  "page-size",
  "active",
  "fields",
  "include-checksum-file",
  "customized-files-ids",
  "is-customized-files-ids-include",
  "threshold",
  "major-version",
];

const HEADERS_SHOWN = [
  "accept",
  "accept-encoding",
  "accept-language",
  "user-agent",
  "content-type",
  "if-range",
  "range",
  "x-cs-majorapiversion",
  "x-cs-minimumminorapiversion",
  "x-cs-productkey",
];
