import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { isFinal, type Receipt, type ReceiptState, TRANSITIONS } from "../../../src/model/receipt.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { formatReceipt } from "../../../src/receipts/format.ts";
import { Places } from "../../../src/receipts/places.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

const ALONE = { alone: true };
const KEY = { mailbox: "orders@example.com", trackingId: "20260301-080000-abc" };

describe("receipts", () => {
  test("are found again by mailbox and tracking-id, also after a restart", async () => {
    const work = await makeFolder();
    const receipts = await openReceipts(work, ALONE);
    expect(await receipts.find(KEY)).toBeUndefined();
    await receipts.create(receipt("discovered"), undefined);
    expect(await receipts.find(KEY)).toEqual(receipt("discovered"));
    expect(await (await openReceipts(work, ALONE)).find(KEY)).toEqual(receipt("discovered"));
    expect(await receipts.find({ ...KEY, mailbox: "other" })).toBeUndefined();
    expect(await receipts.find({ ...KEY, trackingId: KEY.trackingId.toUpperCase() })).toBeUndefined();
  });

  test("that are not final are listed, the others are not read", async () => {
    const work = await makeFolder();
    const receipts = await openReceipts(work, ALONE);
    await receipts.create(receipt("discovered"), undefined);
    expect(await open(work)).toEqual([KEY.trackingId]);
    await receipts.put(receipt("gone"), receipt("discovered"));
    expect(await open(work)).toEqual([]);
    expect(await readdir(join(work, "receipts/open"))).toEqual([]);
    await receipts.create(receipt("discovered"), receipt("gone"));
    expect((await receipts.find(KEY))?.state).toBe("discovered");
  });

  test.each(Object.entries(TRANSITIONS))(
    "go only the ways that the table allows from %s",
    async (from, ways) => {
      const before = receipt(from as ReceiptState);
      for (const to of Object.keys(TRANSITIONS) as ReceiptState[]) {
        const receipts = await openReceipts(await seed(before), ALONE);
        const isReopened = isFinal(before) && !isFinal(receipt(to));
        const step = isReopened ? receipts.create(receipt(to), before) : receipts.put(receipt(to), before);
        if (to === from || (ways as string[]).includes(to)) {
          await step;
          expect((await receipts.find(KEY))?.state).toBe(to);
        } else await expect(step).rejects.toThrow(`from ${from} to ${to}`);
      }
    },
  );

  test("write one line into the journal per change of state", async () => {
    const work = await makeFolder();
    const receipts = await openReceipts(work, ALONE);
    await receipts.create(receipt("discovered"), undefined);
    await receipts.put({ ...receipt("discovered"), attempts: 3 }, receipt("discovered"));
    await receipts.put(receipt("gone"), receipt("discovered"));
    const lines = (await readFile(join(work, "journal/2026-03.jsonl"), "utf8")).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).state)).toEqual(["discovered", "gone"]);
  });

  test.each([
    ["cut", (text: string) => text.slice(0, 40)],
    ["empty", () => ""],
    ["of a newer version", (text: string) => text.replace('"version":1', '"version":2')],
    ["of an unknown state", (text: string) => text.replace('"state":"discovered"', '"state":"dreaming"')],
  ])("that are %s are a fault, never guessed over", async (_kind, damage) => {
    const work = await makeFolder();
    const receipts = await openReceipts(work, ALONE);
    await receipts.create(receipt("discovered"), undefined);
    const folder = join(work, "receipts/open", receipts.folderName(KEY));
    const path = join(folder, "0.json");
    await writeFile(path, damage(await readFile(path, "utf8")));
    await expect(receipts.find(KEY)).rejects.toMatchObject({ code: "RECEIPT_UNREADABLE", verdict: "wait" });
    const damaged: string[] = [];
    for await (const _receipt of receipts.open((place) => damaged.push(place)));
    expect(damaged).toEqual([folder]);
  });

  test("of hostile ids stay in their folder, each in a file of its own", async () => {
    const work = await makeFolder();
    const receipts = await openReceipts(work, ALONE);
    const ids = ["../../x", "/etc/passwd", "", ".", "a\u0000b", "a", "A", "x".repeat(500), "ä", "a\u0308"];
    for (const trackingId of ids) await receipts.create({ ...receipt("discovered"), trackingId }, undefined);
    for (const trackingId of ids)
      expect((await receipts.find({ ...KEY, trackingId }))?.trackingId).toBe(trackingId);
    expect(
      new Set(ids.map((trackingId) => receipts.folderName({ ...KEY, trackingId }).toLowerCase())).size,
    ).toBe(ids.length);
    expect(await readdir(join(work, "receipts/open"))).toHaveLength(ids.length);
  });
});

function receipt(state: ReceiptState): Receipt {
  return makeReceipt({ ...KEY, state, at: { [state]: "2026-03-01T08:00:00.000Z" } });
}

/** A work folder with this receipt in it. */
async function seed(before: Receipt): Promise<string> {
  const work = await makeFolder();
  const places = new Places(work);
  const path = isFinal(before) ? places.donePathOf(before) : places.openPathOf(before);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, formatReceipt(before));
  return work;
}

async function open(work: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const found of (await openReceipts(work, ALONE)).open(() => {})) ids.push(found.trackingId);
  return ids;
}
