import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import * as wire from "../../../src/service/wire.ts";

const ENTRY = {
  trackingId: "20240524-192513-3n2yqVIW",
  status: {
    sender: { email: "a@b.example" },
    recipients: [
      { mail: "me@here.example", id: "abc", downloadUrl: "https://x/download?id=1&password=secret" },
    ],
    state: "ACTIVE",
  },
  transfer: {
    recipients: { to: [{ mail: "me@here.example" }], cc: [], bcc: [] },
    expirationDate: "2026-10-09T11:51:46+02:00",
    securityMode: { name: "ONE_TIME_PASSWORD", config: { passwordMode: "NONE" } },
  },
};

describe("what the service sends becomes the model", () => {
  test("a listed transfer, whole", () => {
    const { entries, rejected } = wire.decodeListed({ data: [ENTRY], meta: { anything: 1 } }, "the list");
    expect(rejected).toEqual([]);
    expect(entries[0]).toMatchObject({
      trackingId: "20240524-192513-3n2yqVIW",
      state: "active",
      sender: "a@b.example",
      to: ["me@here.example"],
      expires: new Date("2026-10-09T09:51:46Z"),
      passwordMode: "NONE",
    });
    expect(entries[0]?.recipients[0]?.downloadUrl?.reveal()).toContain("password=secret");
    expect(JSON.stringify(entries)).not.toContain("password=secret");
  });

  test("a listed transfer of which only the id was sent", () => {
    const { entries } = wire.decodeListed({ data: [{ trackingId: "t", status: null }] }, "the list");
    expect(entries[0]).toMatchObject({
      trackingId: "t",
      state: "unknown",
      recipients: [],
      expires: undefined,
    });
  });

  test.each([
    ["Active", "active"],
    ["DELETED_BY_SECURITY", "deleted_by_security"],
    ["Deleted_by_expiration", "deleted_by_expiration"],
    ["Pending", "unknown"],
    ["a word of tomorrow", "unknown"],
    [null, "unknown"],
  ])("the state %j as %s", (word, state) => {
    const { entries } = wire.decodeLegacy(
      { data: [{ trackingId: "t", state: word, href: "/x" }] },
      "the list",
    );
    expect(entries[0]?.state).toBe(state);
  });

  test.each([
    ["/api/users/a%40b/transfers/t?page=2", "/api/users/a%40b/transfers/t?page=2"],
    ["/api/t?client-id=x&password=hunter2", "/api/t"],
    ["/api/t?page=1&verification%2dtoken=hunter2", "/api/t"],
    ["/api/t#PASSWORD=hunter2", "/api/t"],
    ["/api/t?%zz=hunter2", "/api/t"],
    ["https://me:hunter2@host.example/api/t", "https://host.example/api/t"],
    ["//me:hunter2@host.example/t", "//host.example/t"],
    ["", undefined],
    [7, undefined],
    [undefined, undefined],
  ])("the href %j of a language pack and of the deprecated list as %j", (href, shown) => {
    const [entry] = wire.decodeLegacy({ data: [{ trackingId: "t", href }] }, "the list").entries;
    expect(entry?.href).toBe(shown);
    expect(wire.decodeLanguagePack({ data: { id: "en-US_2", href } }, "the pack").href).toBe(shown);
  });

  test("a date that is none is left out, not a failure", () => {
    const transfer = { ...ENTRY.transfer, expirationDate: "soon" };
    expect(
      wire.decodeListed({ data: [{ ...ENTRY, transfer }] }, "the list").entries[0]?.expires,
    ).toBeUndefined();
  });

  test("a broken entry is rejected alone", () => {
    const data = [ENTRY, { trackingId: 7 }, null, { ...ENTRY, trackingId: "other" }];
    const { entries, rejected } = wire.decodeListed({ data }, "the list");
    expect(entries.map((entry) => entry.trackingId)).toEqual([ENTRY.trackingId, "other"]);
    expect(rejected.map((fault) => fault.message)).toEqual([
      "The answer is not what the interface promises: the list, entry 2: trackingId should be string",
      "The answer is not what the interface promises: the list, entry 3: the answer should be Object",
    ]);
  });

  test("an entry whose sender or ids are longer than any address is rejected, and says what is too long", () => {
    const long = "x".repeat(1_001);
    const data = [
      { ...ENTRY, status: { ...ENTRY.status, sender: { email: long } } },
      { ...ENTRY, trackingId: long },
      { ...ENTRY, status: { ...ENTRY.status, recipients: [{ mail: "me@here.example", id: long }] } },
      { ...ENTRY, status: { ...ENTRY.status, sender: { email: long.slice(1) } } },
    ];
    const { entries, rejected } = wire.decodeListed({ data }, "the list");
    expect(entries).toHaveLength(1);
    expect(rejected.map(({ message }) => message.split(": ").slice(1).join(": "))).toEqual([
      "the list, entry 1: status.sender.email should be at most 1000 characters long",
      "the list, entry 2: trackingId should be at most 1000 characters long",
      "the list, entry 3: status.recipients.0.id should be at most 1000 characters long",
    ]);
  });

  test("files without a checksum, and never their href", () => {
    const file = { id: "f", fileName: "a.txt", size: 3, checksum: "", href: "/api/x?password=secret" };
    const [decoded] = wire.decodeFiles({ data: [file] }, "the files");
    expect(decoded).toEqual({ id: "f", name: "a.txt", bytes: 3, checksum: undefined });
  });

  test.each([
    ["no envelope", [], "data"],
    ["data of another kind", { data: {} }, "data"],
    ["a negative size", { data: [{ id: "f", fileName: "a", size: -1 }] }, "data.0.size"],
    ["a fraction of a byte", { data: [{ id: "f", fileName: "a", size: 1.5 }] }, "data.0.size"],
    ["a size as text", { data: [{ id: "f", fileName: "a", size: "1" }] }, "data.0.size"],
    ["an empty id", { data: [{ id: "", fileName: "a", size: 1 }] }, "data.0.id"],
    ["no name", { data: [{ id: "f", size: 1 }] }, "data.0.fileName"],
  ])("a file list with %s is a fault that names the place", (_case, answer, place) => {
    expect(() => wire.decodeFiles(answer, "the files")).toThrow(`the files: ${place}`);
  });

  test("a password that passes although the service does not say so", () => {
    expect(wire.decodeCheck({ data: {} }, "x")).toEqual({ valid: true, broken: [] });
    expect(wire.decodeCheck({ data: { rulesNotFulfilled: [{ name: "r" }] } }, "x")).toEqual({
      valid: false,
      broken: [{ name: "r", details: {} }],
    });
  });

  test("verification methods in either spelling", () => {
    const decode = (word: string) =>
      wire.decodeVerification({ data: { verified: true, verificationMethods: [word] } }, "x").methods;
    expect([decode("CLIENT_ID"), decode("clientId")]).toEqual([["clientid"], ["clientid"]]);
  });

  test("whatever JSON comes is decoded or a fault, and no text of it is repeated in the fault", () => {
    const decoders = Object.values(wire);
    fc.assert(
      fc.property(arbitraryAnswer, (answer) => {
        for (const decode of decoders) {
          try {
            decode(answer, "it");
          } catch (error) {
            expect(error).toBeInstanceOf(Fault);
            expect(String(error)).not.toContain("s3cret");
          }
        }
      }),
      { numRuns: 2000 },
    );
  });
});

const names = fc.constantFrom(
  ...[
    "data",
    "meta",
    "trackingId",
    "status",
    "state",
    "recipients",
    "mail",
    "id",
    "sender",
    "email",
    "transfer",
  ],
  ...[
    "to",
    "cc",
    "expirationDate",
    "securityMode",
    "config",
    "fileName",
    "size",
    "checksum",
    "totalSize",
    "token",
  ],
  ...[
    "apiVersions",
    "uiApiVersions",
    "major",
    "minor",
    "name",
    "details",
    "verified",
    "password",
    "clientId",
  ],
);

const { answer: arbitraryAnswer } = fc.letrec((tie) => ({
  answer: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, 0, -1, 1.5, Number.MAX_VALUE, "", "s3cret", "Active"),
    fc.array(tie("answer"), { maxLength: 3 }),
    fc.dictionary(names, tie("answer"), { maxKeys: 5 }),
  ),
}));
