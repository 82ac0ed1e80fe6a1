/** A receipt is appended to while it is open: what a failure or a power cut leaves of a line never counts. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { rmSync } from "node:fs";
import { appendFile, readdir, readFile, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Receipt } from "../../../src/model/receipt.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { formatReceipt } from "../../../src/receipts/format.ts";
import { Places } from "../../../src/receipts/places.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

const LATER = formatReceipt(makeReceipt({ state: "waiting", fence: 1 }));

test.each([
  ["the beginning of a line", LATER.slice(0, 30)],
  ["a line without its end", LATER.slice(0, -1)],
  ["zeros", "\0".repeat(30)],
  ["zeros, and the end of a line", `${"\0".repeat(30)}${LATER.slice(30)}`],
])("%s at the end is what a power cut left, and the line before it counts", async (_, rest) => {
  const { receipts, claimed, path } = await setUp();
  await appendFile(path, rest);
  expect(await receipts.find(claimed)).toEqual(claimed);
  const again = await receipts.claim(claimed, (receipt) => receipt);
  expect(again).toEqual({ ...claimed, fence: 2 });
});

test("a whole line that cannot be read is damage, and nothing is guessed", async () => {
  const { receipts, claimed, path } = await setUp();
  await appendFile(path, LATER.replace('"waiting"', '"wai ing"'));
  await expect(receipts.find(claimed)).rejects.toMatchObject({ code: "RECEIPT_UNREADABLE" });
});

test("what could not be appended leaves nothing that the next line could run into", async () => {
  const { receipts, claimed, path } = await setUp();
  await unlink(path);
  await symlink("/dev/full", path);
  const waiting: Receipt = { ...claimed, state: "waiting", reason: "disk" };
  await expect(receipts.put(waiting, claimed)).rejects.toMatchObject({ code: "DISK_FULL" });
  await receipts.put(waiting, claimed);
  expect(await readFile(path, "utf8")).toBe(formatReceipt(waiting));
  await receipts.put(claimed, waiting);
  expect(await receipts.find(claimed)).toEqual(claimed);
});

test("a last word on what could not be appended to gets a file of its own, and takes nothing away before", async () => {
  const { receipts, places, claimed, path } = await setUp();
  const text = await readFile(path, "utf8");
  await unlink(path);
  await symlink("/dev/full", path);
  const gone: Receipt = { ...claimed, state: "gone" };
  await expect(receipts.put(gone, claimed)).rejects.toMatchObject({ code: "DISK_FULL" });
  await unlink(path);
  await writeFile(path, `${text}{"version`);
  await receipts.put(gone, claimed);
  expect(await readFile(places.donePathOf(claimed), "utf8")).toBe(formatReceipt(gone));
  expect(await readdir(places.openFolder)).toEqual([]);
});

test("what was appended to is the final receipt in the end, with all that it ever said", async () => {
  const { receipts, places, claimed, path } = await setUp();
  const { ino } = await stat(path);
  const gone: Receipt = { ...claimed, state: "gone" };
  await receipts.put(gone, claimed);
  expect((await stat(places.donePathOf(claimed))).ino).toBe(ino);
  expect(await readFile(places.donePathOf(claimed), "utf8")).toBe(
    formatReceipt(claimed) + formatReceipt(gone),
  );
  expect(await readdir(places.openFolder)).toEqual([]);
});

test("a last word that never got the name of the final receipt does not count: it is said again", async () => {
  const { receipts, places, claimed, path } = await setUp();
  const gone: Receipt = { ...claimed, state: "gone" };
  await appendFile(path, formatReceipt(gone));
  expect(await receipts.find(claimed)).toEqual(claimed);
  expect(await Array.fromAsync(receipts.open(() => {}))).toEqual([claimed]);
  await receipts.put(gone, claimed);
  expect(await receipts.find(claimed)).toEqual(gone);
  expect(await readdir(places.openFolder)).toEqual([]);
});

test("that it was delivered is written down though a later claim takes the file away at that moment", async () => {
  const { receipts, claimed, path } = await setUp();
  const delivering: Receipt = { ...claimed, state: "delivering" };
  await receipts.put(delivering, claimed);
  const takeAway = (step: unknown) => {
    if (step === "appended text synced") rmSync(path);
  };
  subscribe("inlet:durable-step", takeAway);
  onTestFinished(() => void unsubscribe("inlet:durable-step", takeAway));
  const delivered: Receipt = { ...delivering, state: "delivered" };
  await receipts.put(delivered, delivering);
  expect(await receipts.find(claimed)).toEqual(delivered);
});

async function setUp() {
  const work = await makeFolder();
  const receipts = await openReceipts(work, { alone: true });
  await receipts.create(makeReceipt(), undefined);
  const claimed = await receipts.claim(makeReceipt(), (it) => ({ ...it, state: "collecting" }));
  if (claimed === undefined) throw new Error("there was nothing to claim");
  const places = new Places(work);
  return { receipts, places, claimed, path: places.openPathOf(claimed) };
}
