import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { allPages } from "../../../src/service/polling.ts";
import type { Page } from "../../../src/service/port.ts";

interface Entry {
  readonly trackingId: string;
}

describe("all pages of a list", () => {
  test("end at the empty page, whatever the size of the pages before", async () => {
    const asked: number[] = [];
    const ids = await collect((page) => {
      asked.push(page);
      return [["a", "b"], ["c"], ["d", "e"], []][page - 1] ?? [];
    });
    expect(ids).toEqual(["a", "b", "c", "d", "e"]);
    expect(asked).toEqual([1, 2, 3, 4]);
  });

  test("give each entry once, although pages repeat some", async () => {
    expect(
      await collect(
        (page) =>
          [
            ["a", "a", "b"],
            ["b", "c"],
            ["c", "d"],
          ][page - 1] ?? [],
      ),
    ).toEqual(["a", "b", "c", "d"]);
  });

  test("go on behind a page that brought nothing new, since others may have been pushed there", async () => {
    expect(await collect((page) => [["a", "b"], ["b", "a"], ["c"]][page - 1] ?? [])).toEqual(["a", "b", "c"]);
  });

  test("end where the service ignores the page number", async () => {
    const asked: number[] = [];
    const ids = await collect((page) => {
      asked.push(page);
      return ["a", "b"];
    });
    expect(ids).toEqual(["a", "b"]);
    expect(asked).toEqual([1, 2, 3, 4]);
  });

  test("end where pages bring old entries for ever", async () => {
    const asked: number[] = [];
    const ids = await collect((page) => {
      asked.push(page);
      return page % 2 === 0 ? ["b", "a"] : ["a", "b"];
    });
    expect(ids).toEqual(["a", "b"]);
    expect(asked).toEqual([1, 2, 3, 4]);
  });

  test("are a fault where there is no end, after what was listed", async () => {
    const seen: string[] = [];
    const endless = async () => {
      for await (const entry of allPages(async (page) => pageOf([`t${page}`]), ignore, 20))
        seen.push(entry.trackingId);
    };
    await expect(endless()).rejects.toMatchObject({ code: "LIST_ENDLESS" });
    expect(seen).toHaveLength(20);
  });

  test("go on behind a page of which no entry can be understood", async () => {
    const rejected: Fault[] = [];
    const broken: Page<Entry> = { entries: [], rejected: [new Fault("BAD_ANSWER")] };
    const pages = [pageOf(["a"]), broken, pageOf(["b"]), pageOf([])];
    const found = await Array.fromAsync(
      allPages(
        async (page) => pages[page - 1] ?? pageOf([]),
        (fault) => rejected.push(fault),
      ),
    );
    expect(found.map((entry) => entry.trackingId)).toEqual(["a", "b"]);
    expect(rejected).toHaveLength(1);
  });
});

function ignore(): void {}

function pageOf(ids: readonly string[]): Page<Entry> {
  return { entries: ids.map((trackingId) => ({ trackingId })), rejected: [] };
}

async function collect(idsOf: (page: number) => readonly string[]): Promise<string[]> {
  const entries = await Array.fromAsync(allPages(async (page) => pageOf(idsOf(page)), ignore));
  return entries.map((entry) => entry.trackingId);
}
