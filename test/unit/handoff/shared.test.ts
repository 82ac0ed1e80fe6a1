/** Several processes that share an inbox: every step runs once, and never twice at the same time. */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EntryLocks } from "../../../src/handoff/outbox.ts";
import type { HandoffSummary } from "../../../src/model/handoff.ts";
import { outboxIn } from "../../../src/model/outbox.ts";
import { HANDOFF_PATIENCE } from "../../support/handoff.ts";
import { makeFolder, startCommand } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";
import { keyOf, openBench } from "./bench.ts";

const DELIVERIES = 12;
/** Notes begin and end, and fails where the same delivery runs already. */
const ALONE =
  'mkdir "$0/$INLET_ID" || echo twice >> "$0/note"; sleep 0.05; rmdir "$0/$INLET_ID"; echo "$INLET_ID" >> "$0/note"';

test("two processes that scan the same outbox run each command once, and never at the same time", async () => {
  const folder = await makeFolder();
  const bench = await openBench({ command: ["sh", "-c", ALONE, folder] }, { isAlone: false });
  for (let at = 0; at < DELIVERIES; at++) await bench.deliver(`t${at}`);
  const both = [await bench.open(), await bench.open()];
  for (const handoffs of both) handoffs.start();
  await expect.poll(() => bench.told.length).toBe(DELIVERIES);
  for (const handoffs of both) await handoffs.finish();
  const ran = (await readFile(join(folder, "note"), "utf8")).trim().split("\n");
  expect(ran).not.toContain("twice");
  expect([ran.length, new Set(ran).size]).toEqual([DELIVERIES, DELIVERIES]);
});

test("a pick-up that two processes see is reported once, and its lock file goes with it", async () => {
  const bench = await openBench({ expectWithinMs: 1_000_000 }, { isAlone: false });
  const delivered = await Promise.all(["t1", "t2", "t3"].map((trackingId) => bench.deliver(trackingId)));
  const both = [await bench.open(), await bench.open()];
  for (const { folder } of delivered) await rm(folder, { recursive: true });
  await Promise.all(both.map((handoffs) => handoffs.finish()));
  await both[0]?.finish();
  expect(bench.told.toSorted()).toEqual(["t1: taken", "t2: taken", "t3: taken"]);
  expect(await readdir(join(outboxIn(bench.work), "locks"))).toEqual([]);
});

test("an entry that another process works on is left alone, until that process is killed", async () => {
  const bench = await openBench({ command: ["true"] }, { isAlone: false });
  const { record, folder } = await bench.deliver("t1");
  const handoffs = await bench.open();
  const child = await holdElsewhere(join(outboxIn(bench.work), "locks", keyOf(record)));
  await rm(folder, { recursive: true });
  await handoffs.finish();
  expect(await handoffs.retry(record)).toBe(false);
  handoffs.placed(record);
  expect(bench.told).toEqual([]);
  expect(await bench.files()).toEqual(["t1~1.json"]);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
  expect(await handoffs.retry(record)).toBe(true);
  await handoffs.finish();
  await expect.poll(() => bench.told.toSorted()).toEqual(["t1: command done", "t1: taken"]);
});

test("an entry that another process works on is counted, and nothing is due here", async () => {
  const summaries: HandoffSummary[] = [];
  const bench = await openBench({ command: ["false"] }, { isAlone: false });
  const { record, folder } = await bench.deliver("t1");
  const handoffs = await bench.open({
    patience: { ...HANDOFF_PATIENCE, retryMs: 60_000 },
    emit: bench.emitAnd({ "outbox-scanned": ({ summary }) => void summaries.push(summary) }),
  });
  await handoffs.finish();
  expect(summaries.at(-1)).toMatchObject({ waiting: 1, troubled: 1 });
  await holdElsewhere(join(outboxIn(bench.work), "locks", keyOf(record)));
  // Something is to be done for it, which needs the lock.
  await rm(folder, { recursive: true });
  await handoffs.finish();
  expect(summaries.at(-1)).toMatchObject({ waiting: 1, troubled: 1 });
  expect(bench.told).toEqual(["t1: command failed"]);
});

test("a lock is shared within a process, and released with its last user", async () => {
  const folder = await makeFolder();
  const [one, other] = [new EntryLocks(folder), new EntryLocks(folder)];
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const held: string[] = [];
  const holding = [first, second].map(({ promise }) =>
    one.hold("k", () => {
      held.push("k");
      return promise;
    }),
  );
  await expect.poll(() => held).toEqual(["k", "k"]);
  expect(await other.hold("k", async () => "held")).toBeUndefined();
  first.resolve();
  await holding[0];
  expect(await other.hold("k", async () => "held")).toBeUndefined();
  second.resolve();
  await holding[1];
  expect(await other.hold("k", async () => "held")).toBe("held");
});

test("lock files of finished entries are cleared by a start, and others are not", async () => {
  const bench = await openBench({ command: ["true"] }, { isAlone: false });
  const { folder, record } = await bench.deliver("t1");
  await rm(folder, { recursive: true });
  await bench.scan();
  const open = await bench.deliver("t2");
  const locks = join(outboxIn(bench.work), "locks");
  for (const { record: each } of [{ record }, open]) await writeFile(join(locks, keyOf(each)), "");
  await bench.open();
  expect(await readdir(locks)).toEqual([keyOf(open.record)]);
});

/** A process that holds the lock until it is killed. */
async function holdElsewhere(path: string) {
  const code = `
    const { tryLock } = await import(${JSON.stringify(join(ROOT, "src/base/kernel-lock.ts"))});
    const lock = await tryLock(${JSON.stringify(path)}, "alone");
    console.log(lock === undefined ? "busy" : "held");
    setInterval(() => lock, 1_000);
  `;
  const child = startCommand(process.execPath, ["--input-type=module", "-e", code]);
  const said = await new Promise((resolve) => child.stdout?.once("data", (chunk) => resolve(String(chunk))));
  expect(said).toBe("held\n");
  return child;
}
