/** Lists of transfers: access, order, pages and fields. */
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../../simulator/simulator.ts";
import { errorOf, jsonOf, plan, poll, simulate } from "./client.ts";

const MAILBOX = "orders@example.com";
const ANNA = "anna@supplier.example";

async function entriesOf(simulator: Simulator, query: Record<string, string> = {}, list?: string) {
  return jsonOf(await poll(simulator, MAILBOX, query, list)).data;
}

async function idsOf(...asked: Parameters<typeof entriesOf>): Promise<string[]> {
  return (await entriesOf(...asked)).map((entry: { trackingId: string }) => entry.trackingId);
}

test.each([
  ["status(state)", { status: { state: "Active" } }],
  [" status( state ) , trackingId ", { trackingId: "t", status: { state: "Active" } }],
  ["status(state),status(sender(email))", { status: { state: "Active", sender: { email: ANNA } } }],
  [
    "status(sender),transfer(sender(name))",
    {
      status: { sender: { email: ANNA, notificationFailed: false } },
      transfer: { sender: { name: "Anna" } },
    },
  ],
  [
    "transfer(securityMode(config(passwordMode)))",
    { transfer: { securityMode: { config: { passwordMode: "MANUAL" } } } },
  ],
  ["transfer(recipients(to,cc))", { transfer: { recipients: { to: [{ mail: MAILBOX }], cc: [] } } }],
  ["status(recipients(mail))", { status: { recipients: [{ mail: MAILBOX }] } }],
])("the received list shows exactly the fields %j", async (fields, expected) => {
  const simulator = await simulate({ transfers: [plan({ trackingId: "t", fromName: "Anna" })] });
  expect(await entriesOf(simulator, { fields })).toEqual([expected]);
});

test.each([
  "",
  "(",
  "status(",
  "status()",
  "status(state",
  "status(state))",
  "trackingId,",
  ",trackingId",
  "trackingId(x)",
  "trackingId status",
  "nothing",
  "status(nothing)",
  "constructor",
])("the received list refuses the fields %j", async (fields) => {
  const simulator = await simulate({ transfers: [plan()] });
  expect(errorOf(await poll(simulator, MAILBOX, { fields }))).toBe("400/1004");
});

test("the received list shows bcc recipients to the sender and to themselves", async () => {
  const bcc = ["c@example.com", "d@example.com"];
  const simulator = await simulate({ transfers: [plan({ from: ANNA, to: [MAILBOX], bcc })] });
  const seenBy = async (address: string, list?: string) => {
    const [entry] = jsonOf(await poll(simulator, address, {}, list)).data;
    const mails = entry.status.recipients.map(({ mail }: { mail: string }) => mail);
    return [mails, entry.transfer.recipients.bcc.map(({ mail }: { mail: string }) => mail)];
  };
  expect(await seenBy(MAILBOX)).toEqual([[MAILBOX], []]);
  expect(await seenBy("c@example.com")).toEqual([[MAILBOX, "c@example.com"], ["c@example.com"]]);
  expect(await seenBy(ANNA, "/sent-transfers")).toEqual([[MAILBOX, ...bcc], bcc]);
});

test("the received list has a link with the password if no other is needed, and a proxy address instead of that of a deleted user", async () => {
  const open = plan({ trackingId: "t", cc: ["b@example.com"], passwordMode: "NONE", password: "a b&c" });
  const simulator = await simulate({ transfers: [open] });
  simulator.replaceAddress("t", "B@example.com", "proxy-1@deleted.invalid");
  const [entry] = await entriesOf(simulator);
  expect(new URL(entry.status.recipients[0].downloadUrl).searchParams.get("password")).toBe("a b&c");
  expect(entry.transfer.recipients.cc).toEqual([{ mail: "proxy-1@deleted.invalid" }]);
  expect(jsonOf(await poll(simulator, "b@example.com")).data).toEqual([]);
});

describe("pages", () => {
  const transfers = Array.from({ length: 12 }, (_, index) => plan({ trackingId: `t${index + 1}` }));

  test("have ten entries by default, and the last one is not full", async () => {
    const simulator = await simulate({ transfers });
    expect(await idsOf(simulator)).toHaveLength(10);
    expect(await idsOf(simulator, { page: "2" })).toEqual(["t2", "t1"]);
    expect(await idsOf(simulator, { page: "3" })).toEqual([]);
    expect(await idsOf(simulator, { page: "3", "page-size": "5" })).toEqual(["t2", "t1"]);
  });

  const WRONG = [
    "page=0",
    "page=-1",
    "page=1.5",
    "page=one",
    "page=",
    "page-size=0",
    "page-size=x",
    "active=yes",
  ];

  test.each(WRONG)("are refused for %s", async (text) => {
    const query = Object.fromEntries(new URLSearchParams(text));
    expect(errorOf(await poll(await simulate(), MAILBOX, query))).toBe("400/1004");
  });
});

test("a refused part of a transfer is refused however it is named", async () => {
  const simulator = await simulate({ transfers: [plan()], refusedFields: ["transfer.recipients"] });
  for (const fields of ["transfer", "transfer(recipients)", "transfer(recipients(to))"])
    expect(errorOf(await poll(simulator, MAILBOX, { fields }))).toBe("400/1004");
  expect(await entriesOf(simulator, { fields: "status(recipients(mail))" })).toHaveLength(1);
});

test("a removed file is listed with the cause of its removal, and not given out", async () => {
  const files = [
    { name: "a.txt", text: "a" },
    { name: "b.txt", text: "b", removed: "It has a virus." },
  ];
  const simulator = await simulate({ transfers: [plan({ files })] });
  const fields = "status(files(removed,removalCause),warnings),transfer(files(state))";
  expect(await entriesOf(simulator, { fields })).toEqual([
    {
      status: {
        files: [
          { removed: false, removalCause: null },
          { removed: true, removalCause: "It has a virus." },
        ],
        warnings: true,
      },
      transfer: { files: [{ state: "ACTIVE" }, { state: "REMOVED" }] },
    },
  ]);
});
