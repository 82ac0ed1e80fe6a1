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

describe("the service's JSON becomes the model", () => {
  test("a listed transfer with its id only", () => {
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
    ["Pending", "pending"],
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
    ["/api/users/a%40b/transfers/t", "/api/users/a%40b/transfers/t"],
    ["/api/t?client-id=x&password=hunter2", "/api/t"],
    ["/api/t#PASSWORD=hunter2", "/api/t"],
    ["/api/t;jsessionid=hunter2/x;jsessionid=hunter2?page=1", "/api/t/x"],
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

  test("an invalid date is left out, not a failure", () => {
    const transfer = { ...ENTRY.transfer, expirationDate: "soon" };
    expect(
      wire.decodeListed({ data: [{ ...ENTRY, transfer }] }, "the list").entries[0]?.expires,
    ).toBeUndefined();
  });

  test("I8 bounded: an entry with an id that is too long is rejected, and the fault names the field", () => {
    const long = "x".repeat(1_001);
    const data = [
      { ...ENTRY, trackingId: long },
      { ...ENTRY, status: { ...ENTRY.status, recipients: [{ mail: "me@here.example", id: long }] } },
      { ...ENTRY, status: { ...ENTRY.status, recipients: Array.from({ length: 10_001 }, () => ({})) } },
      { ...ENTRY, status: { ...ENTRY.status, sender: { email: long.slice(1) } } },
    ];
    const { entries, rejected } = wire.decodeListed({ data }, "the list");
    expect(entries).toHaveLength(1);
    expect(rejected.map(({ fault }) => fault.message.split(": ").slice(1).join(": "))).toEqual([
      "the list, entry 1: trackingId should be at most 255 characters long",
      "the list, entry 2: status.recipients.0.id should be at most 1000 characters long",
      "the list, entry 3: status.recipients should be at most 10000 entries",
    ]);
  });

  test("I8 bounded: addresses, links and words that are too long are left out, and the entry is kept", () => {
    const long = "x".repeat(10_000);
    const own = { mail: "me@here.example", id: "abc", downloadUrl: `https://x/?password=${long}` };
    const status = { sender: { email: long }, recipients: [{ mail: long, id: "other" }, own], state: long };
    const securityMode = { config: { passwordMode: long } };
    const { entries } = wire.decodeListed({ data: [{ ...ENTRY, status, transfer: { securityMode } }] }, "x");
    expect(entries[0]).toMatchObject({
      state: "unknown",
      sender: undefined,
      passwordMode: undefined,
      recipients: [
        { mail: "", transferId: "other" },
        { mail: "me@here.example", transferId: "abc", downloadUrl: undefined },
      ],
    });
  });

  test("invalid recipients are skipped", () => {
    const own = { mail: "me@here.example", id: "abc" };
    const recipients = [null, 1, "me", own, { mail: 7, id: 7, downloadUrl: 7 }, {}];
    const transfer = { recipients: { to: [null, { mail: "me@here.example" }], cc: ["me"] } };
    const { entries } = wire.decodeListed(
      { data: [{ ...ENTRY, status: { recipients }, transfer }] },
      "the list",
    );
    expect(entries[0]?.recipients).toEqual([
      { mail: "me@here.example", transferId: "abc", downloadUrl: undefined },
      { mail: "", transferId: undefined, downloadUrl: undefined },
      { mail: "", transferId: undefined, downloadUrl: undefined },
    ]);
    expect(entries[0]?.addressees).toEqual({ to: ["me@here.example"], cc: [], more: 2 });
    expect(wire.decodeLegacy({ data: [{ trackingId: "t", recipients }] }, "x").entries).toHaveLength(1);
  });

  test("I8 bounded: an answer is not checked beyond its first problem", () => {
    let looked = 0;
    const next = {
      get name() {
        looked++;
        return "r";
      },
    };
    expect(() => wire.decodeRules({ data: [{}, next] }, "the rules")).toThrow("data.0");
    expect(looked).toBe(0);
  });

  test("files without a checksum, and never their href", () => {
    const file = { id: "f", fileName: "a.txt", size: 3, checksum: "", href: "/api/x?password=secret" };
    expect(wire.decodeFile(file, "the file")).toEqual({
      id: "f",
      name: "a.txt",
      bytes: 3,
      checksum: undefined,
    });
  });

  test.each([
    ["nothing", null, "the answer"],
    ["a negative size", { id: "f", fileName: "a", size: -1 }, "size"],
    ["a fraction of a byte", { id: "f", fileName: "a", size: 1.5 }, "size"],
    ["a size as text", { id: "f", fileName: "a", size: "1" }, "size"],
    ["an empty id", { id: "", fileName: "a", size: 1 }, "id"],
    ["no name", { id: "f", size: 1 }, "fileName"],
    ["a name that is too long", { id: "f", fileName: "a".repeat(4_001), size: 1 }, "fileName"],
    ["a long checksum", { id: "f", fileName: "a", size: 1, checksum: "0".repeat(1_001) }, "checksum"],
  ])("a file with %s is a fault that names the place", (_case, entry, place) => {
    expect(() => wire.decodeFile(entry, "the file")).toThrow(`the file: ${place} should be`);
  });

  test("a valid password, although the service does not say so", () => {
    expect(wire.decodeCheck({ data: {} }, "x")).toEqual({ valid: true, broken: [] });
    expect(wire.decodeCheck({ data: { rulesNotFulfilled: [{ name: "r" }] } }, "x")).toEqual({
      valid: false,
      broken: [{ name: "r", details: {} }],
    });
  });

  test("password rules with a name only", () => {
    const rules = [
      { name: "minimumLengthRequired", details: {} },
      { name: "r", details: { length: 8 } },
    ];
    const sent = ["minimumLengthRequired", { name: "r", details: { length: 8 } }];
    expect(wire.decodeRules({ data: sent }, "x")).toEqual(rules);
    expect(wire.decodeCheck({ data: { rulesNotFulfilled: sent } }, "x")).toEqual({
      valid: false,
      broken: rules,
    });
  });

  test.each([
    ["2.1", "2.1"],
    [2, "2"],
    [{ major: 2, minor: 1 }, "2.1"],
    [{ major: "2" }, "2.0"],
    [null, ""],
  ])("the version %j of a language pack as %j", (version, text) => {
    expect(wire.decodeLanguagePack({ data: { id: "en-US_2", version } }, "x").version).toBe(text);
  });

  test("verification methods in either spelling", () => {
    const decode = (word: string) =>
      wire.decodeVerification({ data: { verified: true, verificationMethods: [word] } }, "x").methods;
    expect([decode("CLIENT_ID"), decode("clientId")]).toEqual([["clientid"], ["clientid"]]);
  });

  test("any JSON is decoded or a fault, and the fault repeats none of its text", () => {
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
  ..."data meta trackingId status state recipients mail id sender email transfer to cc expirationDate".split(
    " ",
  ),
  ..."securityMode config fileName size checksum totalSize token apiVersions uiApiVersions".split(" "),
  ..."major minor name details verified password clientId".split(" "),
);

const { answer: arbitraryAnswer } = fc.letrec((tie) => ({
  answer: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, 0, -1, 1.5, Number.MAX_VALUE, "", "s3cret", "Active"),
    fc.array(tie("answer"), { maxLength: 3 }),
    fc.dictionary(names, tie("answer"), { maxKeys: 5 }),
  ),
}));
