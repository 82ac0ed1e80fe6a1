/** Records the requests to the simulated service, without secrets, so that tests can check a client. */
import type { IncomingHttpHeaders } from "node:http";
import type { Strike } from "./faults.ts";
import { PARAMETERS } from "./requests.ts";
import { OPERATIONS, type Operation } from "./scenario.ts";

export interface RequestRecord {
  /** `undefined` for an unknown endpoint. */
  readonly operation: Operation | undefined;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Zero before the answer. */
  readonly status: number;
  /** Bytes of the body sent so far. */
  readonly bytes: number;
  /** The tracking-id, if the request belongs to a transfer. */
  readonly transfer: string | undefined;
  readonly passwordSent: "header" | "query" | "none";
  /** Parameters sent in the query instead of a header: logs and histories would keep them. */
  readonly queryTwins: readonly string[];
  /** Parameters and headers that hold no secrets. */
  readonly query: Readonly<Record<string, readonly string[]>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The faults that struck it. */
  readonly faults: readonly string[];
  readonly atMs: number;
}

/** A record while its request is being answered. */
export interface OpenRecord {
  status(status: number): void;
  bytes(bytes: number): void;
  read(): RequestRecord;
}

const RECORDS_KEPT = 10_000;

export class Journal {
  readonly #records: { current: RequestRecord }[] = [];
  readonly #totals = new Map<Operation, number>();

  begin(record: RequestRecord): OpenRecord {
    const entry = { current: record };
    this.#records.push(entry);
    if (this.#records.length > RECORDS_KEPT) this.#records.shift();
    const { operation } = record;
    if (operation !== undefined) this.#totals.set(operation, (this.#totals.get(operation) ?? 0) + 1);
    return {
      status: (status) => {
        entry.current = { ...entry.current, status };
      },
      bytes: (bytes) => {
        entry.current = { ...entry.current, bytes: entry.current.bytes + bytes };
      },
      read: () => entry.current,
    };
  }

  /** The last ten thousand, oldest first. */
  records(): readonly RequestRecord[] {
    return this.#records.map(({ current }) => current);
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

/** The record of an incoming request. */
export function recordOf(
  { method, url, headers }: HttpRequest,
  operation: Operation | undefined,
  transfer: string | undefined,
  strikes: readonly Strike[],
  atMs: number,
): RequestRecord {
  const { header, twin } = PARAMETERS.password;
  const isInQuery = url.searchParams.has(twin);
  return {
    operation,
    method,
    path: url.pathname,
    status: 0,
    bytes: 0,
    transfer,
    passwordSent: headers[header] !== undefined ? "header" : isInQuery ? "query" : "none",
    queryTwins: TWINS.filter((name) => url.searchParams.has(name)),
    query: Object.fromEntries(
      QUERY_SHOWN.filter((name) => url.searchParams.has(name)).map((name) => [
        name,
        url.searchParams.getAll(name),
      ]),
    ),
    headers: Object.fromEntries(
      HEADERS_SHOWN.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
    ),
    faults: strikes.map(({ id }) => id),
    atMs,
  };
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
  "user-agent",
  "x-cs-majorapiversion",
  "x-cs-minimumminorapiversion",
  "x-cs-productkey",
];
