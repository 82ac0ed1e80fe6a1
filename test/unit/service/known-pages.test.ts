import { describe, expect, test } from "vitest";
import type { JsonText } from "../../../src/service/bodies.ts";
import { KnownPages } from "../../../src/service/polling.ts";

describe("a page with known entries only", () => {
  test("is not decoded again while unchanged, but each entry is checked", () => {
    const asked: string[] = [];
    const isKnown = (trackingId: string) => asked.push(trackingId) > 0;
    const page = pageOf("a", "b");
    const first = new KnownPages(isKnown, undefined);
    expect(first.read(page, "the list")).toEqual({ entries: [], known: ["a", "b"], rejected: [] });
    const second = new KnownPages(isKnown, first);
    expect(second.read(page, "the list")).toEqual({ entries: [], known: ["a", "b"], rejected: [] });
    expect(page.parsed).toBe(1);
    expect(asked).toEqual(["a", "b", "a", "b"]);
  });

  test("is decoded if its text has changed", () => {
    const first = new KnownPages(() => true, undefined);
    first.read(pageOf("a", "b"), "the list");
    const changed = pageOf("b", "a");
    const second = new KnownPages(() => true, first);
    expect(second.read(changed, "the list").known).toEqual(["b", "a"]);
    expect(changed.parsed).toBe(1);
  });

  test("is decoded if one of its entries is no longer known", () => {
    const page = pageOf("a", "b");
    const first = new KnownPages(() => true, undefined);
    first.read(page, "the list");
    const second = new KnownPages((trackingId) => trackingId !== "b", first);
    const read = second.read(page, "the list");
    expect(read.known).toEqual(["a"]);
    expect(read.entries).toMatchObject([{ trackingId: "b" }]);
    expect(page.parsed).toBe(2);
  });

  test("is forgotten after a poll without it", () => {
    const page = pageOf("a");
    const first = new KnownPages(() => true, undefined);
    first.read(page, "the list");
    const second = new KnownPages(() => true, first);
    const third = new KnownPages(() => true, second);
    third.read(page, "the list");
    expect(page.parsed).toBe(2);
  });
});

test.each([
  ["an entry that is not known", [{ trackingId: "a" }, { trackingId: "new" }]],
  ["one that cannot be understood", [{ trackingId: "a" }, { trackingId: 7 }]],
])("a page with %s is taken apart each time", (_, data) => {
  const page = textOf({ data });
  const isKnown = (trackingId: string) => trackingId === "a";
  const first = new KnownPages(isKnown, undefined);
  const read = first.read(page, "the list");
  const again = new KnownPages(isKnown, first).read(page, "the list");
  expect(page.parsed).toBe(2);
  expect(again).toEqual(read);
  expect(read.entries.length + read.rejected.length).toBe(1);
});

interface CountedText extends JsonText {
  parsed: number;
}

function pageOf(...ids: string[]): CountedText {
  return textOf({ data: ids.map((trackingId) => ({ trackingId })) });
}

function textOf(document: unknown): CountedText {
  const text = JSON.stringify(document);
  return {
    text,
    kind: "whole",
    parsed: 0,
    parse() {
      this.parsed += 1;
      return JSON.parse(text);
    },
  };
}
