/** How hand-offs begin, go through trouble, and end. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { formatEntry, makeEntry } from "../../../src/handoff/entry.ts";
import { folderIn } from "../../../src/handoff/outbox.ts";
import { makeReceipt } from "../../support/receipt.ts";
import { accept, openReceiver } from "../../support/receiver.ts";
import { openBench } from "./bench.ts";

/** More than wait for their turn at a time. */
const DUE = 1_050;
const KEY = { mailbox: "m", trackingId: "t1" };

test("that an outcome cannot be written down is told once, however many looks succeed meanwhile, and once when it can", async () => {
  let looks = 0;
  const bench = await openBench({ command: ["true"] });
  await bench.deliver("t1");
  const handoffs = await bench.open({
    watch: { ...bench.watch, handoffsSeen: () => void looks++ },
  });
  // Without it no temporary file can be made, as on a full disk.
  const temporary = join(folderIn(bench.work), "new");
  await rm(temporary, { recursive: true });
  handoffs.start();
  handoffs.begin(KEY);
  await expect.poll(() => bench.told).toEqual(["stuck: DISK_REFUSED"]);
  const before = looks;
  await expect.poll(() => looks).toBeGreaterThan(before + 3);
  expect(bench.told).toEqual(["stuck: DISK_REFUSED"]);
  await mkdir(temporary);
  await expect.poll(() => bench.told).toHaveLength(3);
  expect(bench.told.toSorted()).toEqual(["going on", "stuck: DISK_REFUSED", "t1: command done"]);
});

test("everything that is due is tried before it is said to be finished, however much that is", async () => {
  const seen = Promise.withResolvers<void>();
  const receiver = await openReceiver((response) => void seen.promise.then(() => accept(response)));
  const bench = await openBench({ webhook: receiver.url });
  await mkdir(folderIn(bench.work), { recursive: true });
  for (let at = 0; at < DUE; at++) {
    const receipt = makeReceipt({ trackingId: `t${at}`, folder: "m", at: { delivering: "then" } });
    const entry = formatEntry(makeEntry(receipt, bench.handoff, bench.machine.nowMs));
    await writeFile(join(folderIn(bench.work), `${bench.receipts.folderName(receipt)}~alone.json`), entry);
  }
  await mkdir(join(bench.root, "m"));
  const handoffs = await bench.open({ watch: { ...bench.watch, handoffsSeen: () => seen.resolve() } });
  await handoffs.finish();
  expect(new Set(bench.told).size).toBe(DUE);
  expect(receiver.calls).toHaveLength(DUE);
});

test("what fails is tried once before it is said to be finished, and counted", async () => {
  const bench = await openBench({ command: ["false"] });
  for (const trackingId of ["t1", "t2"]) await bench.deliver(trackingId);
  const handoffs = await bench.open();
  await handoffs.finish();
  expect(bench.told.toSorted()).toEqual(["t1: command failed", "t2: command failed"]);
  expect(handoffs.failing()).toBe(2);
});

test("nothing is looked at or written any more once they are closed", async () => {
  const bench = await openBench({ command: ["true"] });
  const folder = await bench.deliver("t1");
  const looking = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const handoffs = await bench.open({
    watch: {
      ...bench.watch,
      // The look that follows it finds the folder taken.
      handedOver: () => looking.resolve(),
    },
    inbox: { ...bench.inbox, isHere: () => goOn.promise.then(() => true) },
  });
  await rm(folder, { recursive: true });
  handoffs.begin(KEY);
  await looking.promise;
  let isClosed = false;
  const closing = handoffs.close().then(() => {
    isClosed = true;
  });
  expect(await bench.receipts.find(KEY)).toMatchObject({ state: "delivered" });
  expect(isClosed).toBe(false);
  goOn.resolve();
  await closing;
  expect(await bench.receipts.find(KEY)).toMatchObject({ state: "collected" });
});
