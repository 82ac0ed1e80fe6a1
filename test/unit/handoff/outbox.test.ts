import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { makeEntry } from "../../../src/handoff/entry.ts";
import { folderIn, hasOpenSteps, Outbox } from "../../../src/handoff/outbox.ts";
import { handoffOf } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

/** No receipt. */
const NONE = async () => undefined;

describe("hand-offs of one that is gone", () => {
  test("are taken over by one of several that try at the same time", async () => {
    const { outboxOf } = await prepare();
    const gone = await outboxOf("gone");
    const names = Array.from({ length: 50 }, (_, at) => `t${at}.d`);
    for (const name of names) await gone.write(name, entryOf("2026-03-01T08:00:00.000Z"));
    const [one, two] = [await outboxOf("one"), await outboxOf("two")];
    const taken = await Promise.all(
      names.map(async (name) =>
        Promise.all([one.takeOver(name, "gone", NONE), two.takeOver(name, "gone", NONE)]),
      ),
    );
    expect(taken.map((both) => both.filter(Boolean).length)).toEqual(names.map(() => 1));
    expect(await Array.fromAsync(one.list())).toHaveLength(50);
  });

  test("give way to a later delivery of the same transfer, and take the place of an earlier one", async () => {
    const { outboxOf } = await prepare();
    const [gone, self] = [await outboxOf("gone"), await outboxOf("self")];
    const [early, late] = ["2026-03-01T08:00:00.000Z", "2026-03-02T08:00:00.000Z"].map(entryOf);
    if (early === undefined || late === undefined) throw new Error("no entries");
    await gone.write("a", early);
    await self.write("a", late);
    await gone.write("b", late);
    await self.write("b", early);
    const taken = [await self.takeOver("a", "gone", NONE), await self.takeOver("b", "gone", NONE)];
    expect(taken).toEqual([false, true]);
    expect([await self.read("a"), await self.read("b")]).toEqual([late, late]);
    expect([await self.ownersOf("a"), await self.ownersOf("b")]).toEqual([["self"], ["self"]]);
  });
});

describe("of two machines whose clocks differ", () => {
  test.each(["delivering", "delivered", "collected"] as const)(
    "the delivery that the receipt names is handed over, where it is %s",
    async (state) => {
      const { outboxOf } = await prepare();
      const [gone, self] = [await outboxOf("gone"), await outboxOf("self")];
      const [ahead, behind] = ["2026-03-01T08:05:00.000Z", "2026-03-01T08:02:00.000Z"];
      const find = async () => makeReceipt({ state, at: { delivering: behind } });
      await self.write("a", entryOf(ahead));
      await gone.write("a", entryOf(behind));
      await self.write("b", entryOf(behind));
      await gone.write("b", entryOf(ahead));
      expect(await self.takeOver("a", "gone", find)).toBe(true);
      expect(await self.takeOver("b", "gone", find)).toBe(false);
      expect([await self.read("a"), await self.read("b")]).toEqual([entryOf(behind), entryOf(behind)]);
      expect([await self.ownersOf("a"), await self.ownersOf("b")]).toEqual([["self"], ["self"]]);
    },
  );

  test("none is thrown away while the receipt cannot be read", async () => {
    const { outboxOf } = await prepare();
    const [gone, self] = [await outboxOf("gone"), await outboxOf("self")];
    await self.write("a", entryOf("2026-03-01T08:05:00.000Z"));
    await gone.write("a", entryOf("2026-03-01T08:02:00.000Z"));
    const find = () => Promise.reject(new Fault("RECEIPT_UNREADABLE"));
    await expect(self.takeOver("a", "gone", find)).rejects.toMatchObject({ code: "RECEIPT_UNREADABLE" });
    expect((await self.ownersOf("a")).toSorted()).toEqual(["gone", "self"]);
  });
});

test("a damaged file is reported and left where it is; others are found by their names", async () => {
  const { work, outboxOf, damaged } = await prepare();
  const outbox = await outboxOf("self");
  await writeFile(join(folderIn(work), "bad~self.json"), "{");
  await writeFile(join(folderIn(work), "notes.txt"), "somebody's");
  await outbox.write("good", entryOf("2026-03-01T08:00:00.000Z"));
  expect(await outbox.read("bad")).toBeUndefined();
  expect(damaged).toEqual([join(folderIn(work), "bad~self.json")]);
  const found = await Array.fromAsync(outbox.list());
  expect(found.map(({ name }) => name).toSorted()).toEqual(["bad", "good"]);
});

test("whoever looks from outside sees whether a step is left", async () => {
  const { work, outboxOf } = await prepare();
  expect(await hasOpenSteps(join(work, "nowhere"), "a")).toBe(false);
  const outbox = await outboxOf("self");
  const entry = entryOf("2026-03-01T08:00:00.000Z");
  await outbox.write("a", entry);
  await outbox.write("b", { ...entry, command: { state: "done", attempts: 1 } });
  expect([await hasOpenSteps(work, "a"), await hasOpenSteps(work, "b")]).toEqual([true, false]);
});

async function prepare() {
  const work = await makeFolder();
  const damaged: string[] = [];
  const outboxOf = async (owner: string) => {
    const outbox = new Outbox(folderIn(work), owner, (path) => damaged.push(path));
    await outbox.open(false, 0);
    return outbox;
  };
  return { work, outboxOf, damaged };
}

function entryOf(delivering: string) {
  const receipt = makeReceipt({ folder: "m/t1", at: { delivering } });
  return makeEntry(receipt, handoffOf({ command: ["true"] }), 0);
}
