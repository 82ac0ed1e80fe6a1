/** Lists of transfers: access, order, pages and fields. */
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../../simulator/simulator.ts";
import { errorOf, jsonOf, plan, poll, simulate } from "./client.ts";

const MAILBOX = "orders@example.com";

async function entriesOf(simulator: Simulator, query: Record<string, string> = {}, list?: string) {
  return jsonOf(await poll(simulator, MAILBOX, query, list)).data;
}

async function idsOf(...asked: Parameters<typeof entriesOf>): Promise<string[]> {
  return (await entriesOf(...asked)).map((entry: { trackingId: string }) => entry.trackingId);
}

describe("the received list", () => {
  test("has exactly the transfers to the address, in any role, newest first", async () => {
    const simulator = await simulate({
      transfers: [
        plan({ trackingId: "to" }),
        plan({ trackingId: "cc", to: ["x@example.com"], cc: ["ORDERS@example.com"] }),
        plan({ trackingId: "sent", from: MAILBOX, to: ["x@example.com"] }),
        plan({ trackingId: "bcc", to: ["x@example.com"], bcc: [MAILBOX] }),
      ],
    });
    expect(await idsOf(simulator)).toEqual(["bcc", "cc", "to"]);
  });

  test("shows the default fields without a selection", async () => {
    const simulator = await simulate({ transfers: [plan({ trackingId: "t", cc: ["b@example.com"] })] });
    const [transfer] = simulator.transfers();
    const [own, other] = transfer?.recipients ?? [];
    expect(jsonOf(await poll(simulator, MAILBOX))).toEqual({
      data: [
        {
          trackingId: "t",
          status: {
            sender: { email: "anna@supplier.example" },
            recipients: [
              {
                mail: MAILBOX,
                id: own?.transferId,
                downloadUrl: `${simulator.url}/download?id=${own?.transferId}`,
                fileDownloads: [],
                notificationFailed: false,
              },
              { mail: "b@example.com", id: other?.transferId, fileDownloads: [], notificationFailed: false },
            ],
            state: "Active",
          },
          transfer: { recipients: { to: [{ mail: MAILBOX }], cc: [{ mail: "b@example.com" }], bcc: [] } },
        },
      ],
      meta: {},
    });
  });

  test("shows the whole transfer except its mail link on request", async () => {
    const simulator = await simulate(
      { transfers: [plan({ message: "Hi", subject: "Papers", algorithm: "MD5" })] },
      { clock: { now: () => Date.parse("2026-01-02T03:04:05Z") } },
    );
    expect(await entriesOf(simulator, { fields: "transfer" })).toEqual([
      {
        transfer: {
          recipients: { to: [{ mail: MAILBOX }], cc: [], bcc: [] },
          expirationDate: "2026-01-16T03:04:05+00:00",
          fileChecksumAlgorithm: "MD5",
          files: [
            {
              id: simulator.transfers()[0]?.files[0]?.id,
              fileName: "hello.txt",
              size: 12,
              checksum: "bc6e6f16b8a077ef5fbc8d59d0b931b9",
              state: "OK",
            },
          ],
          confidentialMessageFileId: expect.stringMatching(/^\w{10}$/),
          notificationMessage: { subject: "Papers", body: "" },
          securityMode: { name: "ONE_TIME_PASSWORD", config: { passwordMode: "MANUAL" } },
          senderLanguage: "en",
          recipientLanguage: "en",
        },
      },
    ]);
    const link = await entriesOf(simulator, { fields: "transfer(notificationMailLink)" });
    expect(link).toEqual([{ transfer: {} }]);
  });

  test.each([
    ["status(state)", { status: { state: "Active" } }],
    [" status( state ) , trackingId ", { trackingId: "t", status: { state: "Active" } }],
    [
      "status(state),status(sender(email))",
      { status: { state: "Active", sender: { email: "anna@supplier.example" } } },
    ],
    [
      "status(sender),status(sender(name))",
      { status: { sender: { email: "anna@supplier.example", name: "Anna" } } },
    ],
    [
      "transfer(securityMode(config(passwordMode)))",
      { transfer: { securityMode: { config: { passwordMode: "MANUAL" } } } },
    ],
    ["transfer(recipients(to,cc))", { transfer: { recipients: { to: [{ mail: MAILBOX }], cc: [] } } }],
    ["status(recipients(mail))", { status: { recipients: [{ mail: MAILBOX }] } }],
  ])("shows exactly the fields %j", async (fields, expected) => {
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
  ])("refuses the fields %j", async (fields) => {
    const simulator = await simulate({ transfers: [plan()] });
    expect(errorOf(await poll(simulator, MAILBOX, { fields }))).toBe("400/1004");
  });

  test("shows bcc recipients to the sender and to themselves", async () => {
    const hidden = plan({
      from: "anna@supplier.example",
      to: [MAILBOX],
      bcc: ["c@example.com", "d@example.com"],
    });
    const simulator = await simulate({ transfers: [hidden] });
    const seenBy = async (address: string, list?: string) => {
      const [entry] = jsonOf(await poll(simulator, address, {}, list)).data;
      const mails = entry.status.recipients.map(({ mail }: { mail: string }) => mail);
      return { mails, bcc: entry.transfer.recipients.bcc.map(({ mail }: { mail: string }) => mail) };
    };
    expect(await seenBy(MAILBOX)).toEqual({ mails: [MAILBOX], bcc: [] });
    expect(await seenBy("c@example.com")).toEqual({
      mails: [MAILBOX, "c@example.com"],
      bcc: ["c@example.com"],
    });
    expect(await seenBy("anna@supplier.example", "/sent-transfers")).toEqual({
      mails: [MAILBOX, "c@example.com", "d@example.com"],
      bcc: ["c@example.com", "d@example.com"],
    });
  });

  test("has a link with the password if no other is needed", async () => {
    const simulator = await simulate({ transfers: [plan({ passwordMode: "NONE", password: "a b&c" })] });
    const [entry] = await entriesOf(simulator);
    expect(new URL(entry.status.recipients[0].downloadUrl).searchParams.get("password")).toBe("a b&c");
  });

  test("has a proxy address instead of that of a deleted user", async () => {
    const simulator = await simulate({ transfers: [plan({ trackingId: "t", cc: ["b@example.com"] })] });
    simulator.replaceAddress("t", "B@example.com", "proxy-1@deleted.invalid");
    const [entry] = await entriesOf(simulator);
    expect(entry.transfer.recipients.cc).toEqual([{ mail: "proxy-1@deleted.invalid" }]);
    expect(jsonOf(await poll(simulator, "b@example.com")).data).toEqual([]);
  });
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

  test("are never larger than the limit", async () => {
    const simulator = await simulate({ transfers, maxPageSize: 4 });
    expect(await idsOf(simulator, { "page-size": "1000" })).toHaveLength(4);
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

describe("states", () => {
  test("change with the clock, and only active transfers count as active", async () => {
    const simulator = await simulate({
      transfers: [
        plan({ trackingId: "active" }),
        plan({ trackingId: "processing", processingSeconds: 60 }),
        plan({ trackingId: "failing", processingSeconds: 60, failed: true }),
        plan({ trackingId: "expiring", expiresInSeconds: 30 }),
        plan({ trackingId: "revoked later", revokedAfterSeconds: 40 }),
        plan({ trackingId: "expired", expiresInSeconds: -1 }),
      ],
    });
    const states = async () => {
      const query = { "page-size": "100", fields: "trackingId,status(state)" };
      const entries: { trackingId: string; status: { state: string } }[] = await entriesOf(simulator, query);
      return Object.fromEntries(entries.map(({ trackingId, status }) => [trackingId, status.state]));
    };
    expect(await states()).toEqual({
      active: "Active",
      processing: "Processing",
      failing: "Processing",
      expiring: "Active",
      "revoked later": "Active",
      expired: "Deleted_by_expiration",
    });
    expect(await idsOf(simulator, { active: "true" })).toEqual(["revoked later", "expiring", "active"]);
    expect(await idsOf(simulator, { active: "false" })).toEqual(["expired", "failing", "processing"]);
    simulator.advance(60);
    simulator.remove("active");
    simulator.revoke("expiring");
    expect(await states()).toEqual({
      active: "Deleted_by_admin",
      processing: "Active",
      failing: "Failed",
      expiring: "Deleted_by_expiration",
      "revoked later": "Deleted_by_revocation",
      expired: "Deleted_by_expiration",
    });
  });

  test("disappear when a transfer expired too long ago", async () => {
    const transfers = [plan({ trackingId: "t", expiresInSeconds: 10 })];
    const simulator = await simulate({ retentionDays: 2, transfers }, { clock: { now: () => 0 } });
    simulator.advance(10 + 2 * 86_400);
    expect(await idsOf(simulator)).toEqual(["t"]);
    simulator.advance(1);
    expect(await idsOf(simulator)).toEqual([]);
  });
});

describe("the sent lists", () => {
  test("have the transfers from the address, in full and in the deprecated form", async () => {
    const simulator = await simulate({
      transfers: [
        plan({ trackingId: "received" }),
        plan({ trackingId: "t 1", from: MAILBOX, to: ["b@example.com"] }),
      ],
    });
    const [, sent] = simulator.transfers();
    const transferId = sent?.recipients[0]?.transferId;
    expect(await idsOf(simulator, {}, "/sent-transfers")).toEqual(["t 1"]);
    const [entry] = await entriesOf(simulator, {}, "/sent-transfers");
    expect(entry.status.recipients[0].downloadUrl).toContain(transferId);
    expect(await entriesOf(simulator, {}, "")).toEqual([
      {
        trackingId: "t 1",
        state: "Active",
        recipients: [{ mail: "b@example.com", id: transferId }],
        href: "/api/users/orders%40example.com/transfers/t%201",
      },
    ]);
  });
});
