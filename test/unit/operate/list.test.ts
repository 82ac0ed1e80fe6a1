import { expect, test } from "vitest";
import { ListQueryShape, parseQuery } from "../../../src/model/queries.ts";
import type { TransferStatus } from "../../../src/model/status.ts";
import { listOpen } from "../../../src/operate/list.ts";

const transfers = Array.from({ length: 120 }, (_, at) => ({
  mailbox: at % 2 === 0 ? "orders@example.com" : "lab@example.com",
  trackingId: `T-${at}`,
  sender: at % 3 === 0 ? "Anna@Supplier.example" : "bo@other.example",
  state: at % 5 === 0 ? "quarantined" : "waiting",
  group: "attention",
  reason: at % 5 === 0 ? "CHECKSUM_MISMATCH" : "password",
  subject: at === 7 ? "Ärzte" : undefined,
  since: new Date(at * 1000).toISOString(),
  bytes: at,
})) as unknown as TransferStatus[];

const NOW_MS = 3_600_000;

function parse(query: string) {
  return parseQuery(ListQueryShape, new URLSearchParams(query), NOW_MS);
}

function select(query: string) {
  const parsed = parse(query);
  if (typeof parsed === "string") throw new Error(parsed);
  const { transfers: found, ...page } = listOpen(transfers, parsed);
  return { ...page, ids: found.map(({ trackingId }) => trackingId) };
}

test.each([
  ["", 120],
  ["state=quarantined", 24],
  ["reason=PASSWORD&mailbox=lab*", 48],
  ["sender=anna@supplier.example", 40],
  ["sender=*@supplier.example", 40],
  ["sender=supplier", 0],
  ["mailbox=lab", 0],
  ["text=supplier", 40],
  ["text=lab@", 60],
  ["since=1970-01-01T00:01:00Z", 60],
  ["until=1970-01-01T00:01:00Z", 60],
  ["since=3500s", 20],
  ["sender=anna*other*", 0],
  ["sender=*@supplier%E3%80%82ex%E2%80%8Bample.", 40],
  ["text=T-11", 11],
  ["text=a%CC%88rzte", 1],
  ["group=queued", 0],
])("a list of open transfers is filtered by %s", (query, total) => {
  expect(select(query).total).toBe(total);
});

test("a list of open transfers has pages; one beyond the end is the last", () => {
  expect(select("size=50")).toMatchObject({ page: 1, pages: 3, size: 50 });
  expect(select("size=50&page=3").ids).toHaveLength(20);
  expect(select("size=50&page=99")).toMatchObject({ page: 3 });
  expect(select("text=nothing")).toMatchObject({ page: 1, pages: 1, ids: [] });
});

test.each([
  ["newest", "T-119"],
  ["oldest", "T-0"],
  ["size", "T-119"],
  ["sender", "T-0"],
  ["urgency", "T-0"],
])("a list of open transfers is sorted by %s", (sort, first) => {
  expect(select(`sort=${sort}`).ids[0]).toBe(first);
});

test.each([
  "state=lost",
  "group=x",
  "sort=x",
  "page=0",
  "page=x",
  "size=5001",
  "since=soon",
  "act=x",
  "colour=red",
  `text=${"x".repeat(201)}`,
])("a list of open transfers refuses %s", (query) => {
  expect(parse(query)).toEqual(expect.any(String));
});
