/** Two who share an inbox: each hand-off has one owner, whoever resumes a delivery or is given an order. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type OpenHandoffs, openHandoffs } from "../../../src/handoff/open.ts";
import { folderIn } from "../../../src/handoff/outbox.ts";
import type { Receipt } from "../../../src/model/receipt.ts";
import { HANDOFF_PATIENCE, handoffOf } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";
import { watchWith } from "../../support/settings.ts";

const RECEIPT = makeReceipt({
  state: "delivering",
  folder: "m/t1",
  at: { delivering: "2026-03-01T08:00:00.000Z" },
});

test("a delivery that is resumed has the hand-off that was noted before, whoever noted it; a new one has its own", async () => {
  const { open, files } = await prepare();
  const [one, two] = [await open("one"), await open("two")];
  await one.note(RECEIPT, false);
  await one.note(RECEIPT, true);
  await two.note({ ...RECEIPT, fence: 2 }, true);
  expect(await files()).toEqual(["t1~one.json"]);
  await two.note({ ...RECEIPT, at: { delivering: "2026-03-02T08:00:00.000Z" } }, true);
  expect(await files()).toEqual(["t1~one.json", "t1~two.json"]);
});

test("an order to try again is left for the owner, unless that one is gone", async () => {
  const { open, gone, files } = await prepare();
  const [one, two] = [await open("one"), await open("two")];
  await one.note(RECEIPT, false);
  expect(await two.retry(RECEIPT)).toBe(false);
  expect(await one.retry(RECEIPT)).toBe(true);
  gone.add("one");
  expect(await two.retry(RECEIPT)).toBe(true);
  expect(await files()).toEqual(["t1~two.json"]);
  expect(await two.retry({ ...RECEIPT, trackingId: "unheard" })).toBe(true);
});

async function prepare() {
  const work = await makeFolder();
  const gone = new Set<string>();
  const open = async (owner: string): Promise<OpenHandoffs> => {
    const handoffs = await openHandoffs({
      work,
      isAlone: false,
      owner,
      isGone: async (other) => gone.has(other),
      // One that does nothing more than be there: no receipt says that it was delivered.
      handoff: () => handoffOf({ command: ["true"] }),
      receipts: {
        find: async (): Promise<Receipt> => RECEIPT,
        put: async () => {},
        folderName: ({ trackingId }) => trackingId,
      },
      inbox: { root: join(work, "inbox"), isHere: async () => true, removeDelivered: async () => "removed" },
      clock: { now: () => 0 },
      uptimeMs: () => 0,
      random: () => 0,
      patience: HANDOFF_PATIENCE,
      watch: watchWith(),
      stop: new AbortController().signal,
    });
    onTestFinished(() => handoffs.close());
    return handoffs;
  };
  const files = async () =>
    (await readdir(folderIn(work))).filter((name) => name.endsWith(".json")).toSorted();
  return { open, gone, files };
}
