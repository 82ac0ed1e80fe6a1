/** What was asked of the simulated service, so that tests can see how a client behaves; it holds no secrets. */
import type { IncomingHttpHeaders } from "node:http";
import type { Strike } from "./faults.ts";
import { PARAMETERS } from "./requests.ts";
import { OPERATIONS, type Operation } from "./scenario.ts";

export interface RequestRecord {
  /** Missing where there is no such endpoint. */
  readonly operation: Operation | undefined;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Zero as long as nothing was answered. */
  readonly status: number;
  /** Bytes of the body that were sent so far. */
  readonly bytes: number;
  /** The tracking-id, where the request belongs to a transfer. */
  readonly transfer: string | undefined;
  readonly passwordSent: "header" | "query" | "none";
  /** Names of header parameters that came in the query instead, where logs and histories keep them. */
  readonly queryTwins: readonly string[];
  /** Parameters and headers that are no secrets. */
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

  /** How many there were of each operation, from the beginning. */
  totals(): Readonly<Record<Operation, number>> {
    const totals = OPERATIONS.map((operation) => [operation, this.#totals.get(operation) ?? 0]);
    return Object.fromEntries(totals) as Record<Operation, number>;
  }
}

export interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
}

/** The record of a request as it comes in. */
export function recordOf(
  { method, url, headers }: Asked,
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
  "content-type",
  "if-range",
  "range",
  "user-agent",
  "x-cs-majorapiversion",
  "x-cs-minimumminorapiversion",
  "x-cs-productkey",
];
