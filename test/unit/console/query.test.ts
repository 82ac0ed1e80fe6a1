import { describe, expect, test } from "vitest";
import {
  filterTransfers,
  linkTo,
  parametersOf,
  parseListQuery,
  parseTransferQuery,
  selectTransfers,
} from "../../../src/console/query.ts";
import type { TransferStatus } from "../../../src/model/status.ts";

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

function select(query: string) {
  const parsed = parseTransferQuery(new URLSearchParams(query));
  if (typeof parsed === "string") throw new Error(parsed);
  const { transfers: found, ...page } = selectTransfers(transfers, parsed);
  return { ...page, ids: found.map(({ trackingId }) => trackingId) };
}

describe("a list", () => {
  test.each([
    ["", 120],
    ["state=quarantined", 24],
    ["reason=password&mailbox=lab", 48],
    ["sender=anna@supplier.example", 40],
    ["sender=*@supplier.example", 40],
    ["sender=supplier", 40],
    ["sender=anna*other*", 0],
    ["sender=*@supplier%E3%80%82ex%E2%80%8Bample.", 40],
    ["search=T-11", 11],
    ["search=a%CC%88rzte", 1],
    ["group=queued", 0],
  ])("is filtered by %s", (query, total) => {
    expect(select(query).total).toBe(total);
  });

  test("by the whole name of a mailbox leaves out mailboxes whose name contains it", () => {
    const named = ["sales", "presales"].map((mailbox) => ({ ...transfers[0], mailbox }) as TransferStatus);
    const mailboxesOf = (mailbox: string) => filterTransfers(named, { mailbox }).map((it) => it.mailbox);
    expect(mailboxesOf("sales")).toEqual(["sales"]);
    expect(mailboxesOf("sale")).toEqual(["sales", "presales"]);
  });

  test("has pages; one beyond the end is the last", () => {
    expect(select("size=50")).toMatchObject({ page: 1, pages: 3, size: 50 });
    expect(select("size=50&page=3").ids).toHaveLength(20);
    expect(select("size=50&page=99")).toMatchObject({ page: 3 });
    expect(select("search=nothing")).toMatchObject({ page: 1, pages: 1, ids: [] });
  });

  test.each([
    ["newest", "T-119"],
    ["oldest", "T-0"],
    ["size", "T-119"],
    ["sender", "T-0"],
    ["urgency", "T-0"],
  ])("is sorted by %s", (sort, first) => {
    expect(select(`sort=${sort}`).ids[0]).toBe(first);
  });

  test.each([
    "state=lost",
    "group=x",
    "sort=x",
    "page=0",
    "page=x",
    "size=501",
    "colour=red",
    `search=${"x".repeat(201)}`,
  ])("refuses %s", (query) => {
    expect(parseTransferQuery(new URLSearchParams(query))).toEqual(expect.any(String));
  });

  test("is the same after its address was written and read again", () => {
    const parsed = parseTransferQuery(
      new URLSearchParams("state=waiting&sender=a%26b&sort=newest&page=2&size=10"),
    );
    if (typeof parsed === "string") throw new Error(parsed);
    const address = linkTo("transfers", parametersOf(parsed));
    expect(parseTransferQuery(new URL(address, "http://here/").searchParams)).toEqual(parsed);
  });
});

test.each([
  ["state=lost", false],
  ["sort=urgency", false],
  ["size=5001", false],
  ["colour=red", false],
  ["ids=a,b&state=delivered&size=5000&sort=expires", true],
])("the query %s of all transfers is valid: %s", (query, isValid) => {
  expect(typeof parseListQuery(new URLSearchParams(query)) !== "string").toBe(isValid);
});
