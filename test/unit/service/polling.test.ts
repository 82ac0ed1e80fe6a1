import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { allPages, withTrackingId } from "../../../src/service/polling.ts";
import type { Page, Rejected } from "../../../src/service/port.ts";
import { decodeListed } from "../../../src/service/wire.ts";

interface Entry {
  readonly trackingId: string;
}

const BY_SERVICE = [
  ["404, error 2003", new Fault("NOT_FOUND", { answeredBy: "service" })],
  ["400, error 1004", new Fault("BAD_REQUEST", { answeredBy: "service" })],
] as const;

const BY_INTERMEDIARY = [
  ["404 of a proxy", new Fault("NO_SUCH_ENDPOINT", { answeredBy: "intermediary" })],
  ["400 of a proxy", new Fault("BAD_REQUEST", { answeredBy: "intermediary" })],
] as const;

const REFUSALS = [...BY_SERVICE, ...BY_INTERMEDIARY];

const NO_ENDS = [
  ["401", new Fault("TOKEN_REFUSED", { answeredBy: "service" })],
  ["403", new Fault("ACCESS_REFUSED", { answeredBy: "intermediary" })],
  ["429", new Fault("RATE_LIMITED", { answeredBy: "intermediary" })],
  ["503", new Fault("SERVER_FAULT", { answeredBy: "intermediary" })],
  ["silence", new Fault("SERVICE_TIMEOUT")],
  ["an HTML page", new Fault("BAD_ANSWER", { answeredBy: "intermediary" })],
] as const;

describe("all pages of a list", () => {
  test.each(REFUSALS)("end if the page after a short one is answered with %s", async (_name, refusal) => {
    expect(await readUntil([["a", "b"], ["c"]], refusal, 2)).toEqual(["a", "b", "c"]);
    // The service caps its pages, and the last one is shorter.
    expect(await readUntil([["a", "b"], ["c"]], refusal, 100)).toEqual(["a", "b", "c"]);
    expect(await readUntil([["a"]], refusal, 100)).toEqual(["a"]);
  });

  test.each(BY_SERVICE)("end if the page after a full one is answered with %s", async (_name, refusal) => {
    expect(await readUntil([["a", "b"]], refusal, 2)).toEqual(["a", "b"]);
    expect(await readUntil([["a"], ["b"], ["c"]], refusal, 100)).toEqual(["a", "b", "c"]);
  });

  test.each(BY_INTERMEDIARY)("fail if a page after full ones is answered with %s", async (_name, refusal) => {
    await expect(readUntil([["a", "b"]], refusal, 2)).rejects.toBe(refusal);
    // Capped pages of one length: there may be more.
    await expect(readUntil([["a"], ["b"]], refusal, 100)).rejects.toBe(refusal);
  });

  test.each([
    ...REFUSALS.map(([name, refusal]) => [`${name} as the first page`, refusal, []] as const),
    ...NO_ENDS.map(([name, refusal]) => [`${name} behind a short page`, refusal, [["a"]]] as const),
  ])("are a fault with %s", async (_name, refusal, pages) => {
    await expect(readUntil(pages, refusal, 100)).rejects.toBe(refusal);
  });

  test.each([
    ["end at the empty page, whatever the size of earlier pages", "ab c de", "abcde"],
    ["yield each entry once", "aab bc cd", "abcd"],
    ["continue after a page without new entries, which may have moved", "ab ba c", "abc"],
  ])("%s", async (_name, pages, ids) => {
    const asked: number[] = [];
    const found = await readAll((page) => {
      asked.push(page);
      return pageOf([...(pages.split(" ")[page - 1] ?? "")]);
    });
    expect(found.join("")).toBe(ids);
    expect(asked).toEqual([1, 2, 3, 4]);
  });

  test.each([
    ["the service ignores the page number", () => pageOf(["a", "b"])],
    ["pages repeat old entries", (page: number) => pageOf(page % 2 === 0 ? ["b", "a"] : ["a", "b"])],
    ["known entries repeat", () => knownPage(["a", "b"])],
  ])("end if %s for ever", async (_name, at) => {
    const asked: number[] = [];
    await readAll((page) => {
      asked.push(page);
      return at(page);
    });
    expect(asked).toEqual([1, 2, 3, 4]);
  });

  test("yield the listed entries, and fail if there is no end", async () => {
    const seen: string[] = [];
    const endless = async () => {
      for await (const page of allPages(async (number) => pageOf([`t${number}`]), ignore, 100, 20))
        seen.push(...page.map(({ trackingId }) => trackingId));
    };
    await expect(endless()).rejects.toMatchObject({ code: "LIST_ENDLESS" });
    expect(seen).toHaveLength(20);
  });

  test("I8 bounded: fail if there are more transfers than any mailbox has", async () => {
    const pages = allPages(async (page) => {
      return pageOf(Array.from({ length: 1_000 }, (_, at) => `${page} ${at}`));
    }, ignore);
    let listed = 0;
    const read = async () => {
      for await (const page of pages) listed += page.length;
    };
    await expect(read()).rejects.toMatchObject({ code: "LIST_ENDLESS" });
    expect(listed).toBe(100_000);
  });

  test("continue after a page on which no entry can be decoded", async () => {
    const rejected: Rejected[] = [];
    const broken: Page<Entry> = {
      entries: [],
      known: [],
      rejected: [{ fault: new Fault("BAD_ANSWER"), trackingId: undefined }],
    };
    const pages = [pageOf(["a"]), broken, pageOf(["b"]), pageOf([])];
    expect(
      await readAll(
        (page) => pages[page - 1] ?? pageOf([]),
        (entry) => rejected.push(entry),
      ),
    ).toEqual(["a", "b"]);
    expect(rejected).toHaveLength(1);
  });

  test("continue after pages with known entries only, and yield only unknown ones", async () => {
    const pages = [knownPage(["a"]), knownPage(["b"]), knownPage(["c"]), knownPage(["d"]), pageOf(["e"])];
    expect(await readAll((page) => pages[page - 1] ?? pageOf([]))).toEqual(["e"]);
  });

  test("are requested one page ahead, and no further", async () => {
    const asked: number[] = [];
    const pages = allPages(async (page) => {
      asked.push(page);
      return pageOf(page < 4 ? [`t${page}`] : []);
    }, ignore);
    for (const ahead of [2, 3, 4]) {
      await pages.next();
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(asked).toEqual(Array.from({ length: ahead }, (_, at) => at + 1));
    }
    expect((await pages.next()).done).toBe(true);
  });

  test("that fail ahead are ignored if the iteration has ended", async () => {
    const pages = allPages(async (page) => {
      if (page > 1) throw new Fault("SERVER_FAULT");
      return pageOf(["a"]);
    }, ignore);
    for await (const page of pages) {
      expect(page).toHaveLength(1);
      break;
    }
  });
});

test("entries that are known are not decoded; others are decoded as usual", () => {
  const data = [{ trackingId: "known", status: 7 }, { trackingId: "other", status: 7 }, null];
  const page = decodeListed({ data }, "the list", (trackingId) => trackingId === "known");
  expect(page).toMatchObject({ entries: [], known: ["known"] });
  expect(page.rejected).toHaveLength(2);
});

function ignore(): void {}

function pageOf(ids: readonly string[]): Page<Entry> {
  return { entries: ids.map((trackingId) => ({ trackingId })), known: [], rejected: [] };
}

function knownPage(known: readonly string[]): Page<Entry> {
  return { entries: [], known, rejected: [] };
}

/** Reads these pages, then the refusal. */
async function readUntil(
  pages: readonly (readonly string[])[],
  refusal: Fault,
  pageSize: number,
): Promise<string[]> {
  const fetchPage = async (page: number) => {
    const ids = pages[page - 1];
    if (ids === undefined) throw refusal;
    return pageOf(ids);
  };
  const given = await Array.fromAsync(allPages(fetchPage, ignore, pageSize, 20));
  return given.flat().map((entry) => entry.trackingId);
}

async function readAll(
  fetchPage: (page: number) => Page<Entry>,
  onRejected: (entry: Rejected) => void = ignore,
): Promise<string[]> {
  const entries = await Array.fromAsync(allPages(async (page) => fetchPage(page), onRejected));
  return entries.flat().map((entry) => entry.trackingId);
}

test.each([
  ["status(state), transfer(files)", "trackingId,status(state), transfer(files)"],
  ["trackingId,status", "trackingId,status"],
])("the selection of fields %j is sent with the tracking-id", (text, sent) => {
  expect(withTrackingId(text)).toBe(sent);
});
