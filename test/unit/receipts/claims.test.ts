/** I2 once: of two who work on one transfer, the one that claimed it first can change nothing any more. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import type { Receipt } from "../../../src/model/receipt.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { formatReceipt } from "../../../src/receipts/format.ts";
import { Places } from "../../../src/receipts/places.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

const LOST = { code: "CLAIM_LOST" };
const same = (receipt: Receipt) => receipt;

describe("a claim", () => {
  test("counts the fence up, and what was there before stays", async () => {
    const { receipts } = await setUp();
    const first = await receipts.claim(makeReceipt(), (receipt) => ({ ...receipt, state: "collecting" }));
    expect(first).toEqual(makeReceipt({ state: "collecting", fence: 1 }));
    expect(await claimFound(receipts, same)).toEqual(makeReceipt({ state: "collecting", fence: 2 }));
    expect((await receipts.find(makeReceipt()))?.fence).toBe(2);
  });

  test("shuts out whoever had it: what that one writes is refused, and does not count", async () => {
    const { receipts, places } = await setUp();
    const first = await claim(receipts);
    const second = await claim(receipts);
    for (const state of ["collecting", "waiting", "delivering", "gone", "quarantined"] as const) {
      await expect(receipts.put({ ...first, state }, first)).rejects.toMatchObject(LOST);
      expect(await receipts.find(first)).toEqual(second);
    }
    await receipts.put({ ...second, state: "gone" }, second);
    expect((await receipts.find(first))?.state).toBe("gone");
    await expect(receipts.put({ ...first, state: "waiting" }, first)).rejects.toMatchObject(LOST);
    expect(await readdir(places.openFolder)).toEqual([]);
  });

  test("of one that others have claimed more than once since it was found is lost", async () => {
    const { receipts } = await setUp();
    await claim(receipts);
    const second = await claim(receipts);
    await expect(receipts.claim(makeReceipt(), same)).rejects.toMatchObject(LOST);
    expect(await receipts.find(second)).toEqual(second);
    await receipts.put({ ...second, attempts: 7 }, second);
  });

  test("on one that an operator sent back to the start is not undone by the news that it was collected", async () => {
    const { receipts } = await setUp();
    const delivering = { ...(await claim(receipts)), state: "delivering" } as const;
    const delivered = { ...delivering, state: "delivered" } as const;
    await receipts.put(delivered, delivering);
    const collected = {
      ...delivered,
      state: "collected",
      at: { collected: "2026-03-01T09:00:00.000Z" },
    } as const;
    expect(await receipts.create({ ...delivered, state: "discovered" }, delivered)).toBe(true);
    await expect(receipts.put(collected, delivered)).rejects.toMatchObject(LOST);
    expect(await receipts.find(delivered)).toMatchObject({ state: "discovered", fence: delivered.fence + 1 });
  });

  test("sees what the other wrote at the last moment, such as an attempt that it spent", async () => {
    const { receipts, places } = await setUp();
    const first = await claim(receipts);
    const spent = { ...first, refusedPasswords: 1, unansweredPasswords: 1 };
    let isFirstLook = true;
    const second = await receipts.claim(first, (receipt) => {
      if (isFirstLook) writeFileSync(places.openPathOf(first), formatReceipt(spent));
      isFirstLook = false;
      return receipt;
    });
    expect(second).toEqual({ ...spent, fence: 2 });
    expect(await receipts.find(first)).toEqual(second);
  });

  test("finds nothing to do where the other has settled it at the last moment", async () => {
    const { receipts, places } = await setUp();
    const first = await claim(receipts);
    const settled = { ...first, state: "delivered" as const };
    const second = await receipts.claim(first, (receipt) => {
      mkdirSync(dirname(places.donePathOf(first)), { recursive: true });
      writeFileSync(places.donePathOf(first), formatReceipt(settled));
      return receipt;
    });
    expect(second).toBeUndefined();
    expect(await receipts.find(first)).toEqual(settled);
    expect(await readdir(places.openFolder)).toEqual([]);
  });

  test("of many at once is one's alone", async () => {
    const { receipts } = await setUp();
    const ends = await Promise.allSettled(
      Array.from({ length: 8 }, () => receipts.claim(makeReceipt(), same)),
    );
    const fences = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value?.fence] : []));
    expect(new Set(fences).size).toBe(fences.length);
    for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject(LOST);
    expect((await receipts.find(makeReceipt()))?.fence).toBe(Math.max(...fences.map(Number)));
  });
});

describe("the end of a transfer", () => {
  test("is what was delivered, whoever says first that it is gone", async () => {
    const { receipts, places } = await setUp();
    const first = await claim(receipts);
    mkdirSync(dirname(places.donePathOf(first)), { recursive: true });
    const second = await claim(receipts);
    // The first one had looked for another claim before the second one came, and writes only now.
    writeFileSync(places.donePathOf(first), formatReceipt({ ...first, state: "gone" }));
    expect(await receipts.find(first)).toEqual(second);
    const delivering = { ...second, state: "delivering" as const };
    await receipts.put(delivering, second);
    await receipts.put({ ...delivering, state: "delivered" }, delivering);
    expect((await receipts.find(first))?.state).toBe("delivered");
    await expect(receipts.put({ ...first, state: "gone" }, first)).rejects.toMatchObject(LOST);
    expect((await receipts.find(first))?.state).toBe("delivered");
  });

  test("may be said by both where both know it", async () => {
    const { receipts } = await setUp();
    const first = await claim(receipts, "delivering");
    const second = await claim(receipts, "delivering");
    await receipts.put({ ...second, state: "delivered" }, second);
    await receipts.put({ ...first, state: "delivered" }, first);
    expect((await receipts.find(first))?.fence).toBe(second.fence);
  });

  test("is not undone by one who discovers it from an older list", async () => {
    const { receipts } = await setUp();
    const first = await claim(receipts, "delivering");
    await receipts.put({ ...first, state: "delivered" }, first);
    expect(await receipts.claim(first, same)).toBeUndefined();
  });

  test("that it was gone can be undone, also where a crash left both receipts", async () => {
    const { receipts, places } = await setUp();
    const gone = { ...(await claim(receipts)), state: "gone" as const };
    await receipts.put(gone, { ...gone, state: "collecting" });
    expect(await receipts.create(makeReceipt(), gone)).toBe(true);
    writeFileSync(places.donePathOf(gone), formatReceipt(gone));
    expect(await receipts.find(gone)).toMatchObject({ state: "discovered", fence: gone.fence + 1 });
    expect(await receipts.create(makeReceipt(), gone)).toBe(false);
    rmSync(places.donePathOf(gone));
    expect(await receipts.find(gone)).toMatchObject({ state: "discovered" });
  });
});

test("only one of many discovers a transfer", async () => {
  const receipts = await openReceipts(await makeFolder(), { alone: false });
  const made = await Promise.all(Array.from({ length: 8 }, () => receipts.create(makeReceipt(), undefined)));
  expect(made.filter(Boolean)).toHaveLength(1);
});

async function setUp() {
  const work = await makeFolder();
  const receipts = await openReceipts(work, { alone: false });
  await receipts.create(makeReceipt(), undefined);
  return { receipts, places: new Places(work) };
}

async function claimFound(
  receipts: Awaited<ReturnType<typeof openReceipts>>,
  next: (receipt: Receipt) => Receipt,
): Promise<Receipt | undefined> {
  const found = await receipts.find(makeReceipt());
  return found && receipts.claim(found, next);
}

async function claim(
  receipts: Awaited<ReturnType<typeof openReceipts>>,
  state: "collecting" | "delivering" = "collecting",
): Promise<Receipt> {
  const claimed = await claimFound(receipts, (receipt) =>
    state === "delivering" && receipt.state === "discovered"
      ? { ...receipt, state: "collecting" }
      : { ...receipt, state: receipt.state === "delivering" ? "delivering" : "collecting" },
  );
  if (claimed === undefined) throw new Error("there was nothing to claim");
  if (state === "collecting" || claimed.state === "delivering") return claimed;
  const delivering = { ...claimed, state: "delivering" as const };
  await receipts.put(delivering, claimed);
  return delivering;
}
