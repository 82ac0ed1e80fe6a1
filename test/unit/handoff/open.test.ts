import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { newEntry } from "../../../src/handoff/entry.ts";
import type { HandoffSummary } from "../../../src/model/handoff.ts";
import { formatEntry, outboxIn } from "../../../src/model/outbox.ts";
import { HANDOFF_PATIENCE } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { accept, openReceiver } from "../../support/receiver.ts";
import { keyOf, openBench, recordOf, writeDelivery } from "./bench.ts";

/** More than a lane keeps. */
const DUE = 1_050;

test("a delivery that is only to be picked up waits as an empty file, and is finished when its folder is gone, not when its manifest is", async () => {
  const bench = await openBench({});
  const { folder, record } = await bench.deliver("t1");
  await bench.scan();
  expect(await bench.files()).toEqual(["t1~1.wait"]);
  expect((await stat(join(outboxIn(bench.work), `${keyOf(record)}.wait`))).size).toBe(0);
  await rm(join(folder, "transfer.json"));
  await bench.scan();
  expect(bench.told).toEqual([]);
  expect(await bench.files()).toEqual(["t1~1.wait"]);
  await rm(folder, { recursive: true });
  await bench.scan();
  expect(bench.told).toEqual(["t1: taken"]);
  expect(bench.ledger.journal).toEqual(["t1: picked up from m/t1"]);
  expect(await bench.files()).toEqual([]);
  expect(await bench.finished(record)).toMatchObject({
    version: 1,
    pickedUpAt: new Date(bench.machine.nowMs).toISOString(),
    how: "taken",
  });
});

test("a delivery whose command takes the folder is picked up and finished at once", async () => {
  const bench = await openBench({ command: ["sh", "-c", 'rm -r "$INLET_FOLDER"'] });
  const { record } = await bench.deliver("t1");
  await bench.scan();
  expect(bench.told.toSorted()).toEqual(["t1: command done", "t1: taken"]);
  expect(await bench.finished(record)).toMatchObject({ command: { state: "done", attempts: 1 } });
});

describe("an entry", () => {
  test("of an open round, or of a folder that is still staged, is left alone, and nothing runs for it", async () => {
    const bench = await openBench({ command: ["true"] });
    const record = await bench.note("t1");
    const seen: HandoffSummary[] = [];
    await bench.scan({
      emit: bench.emitAnd({ "outbox-scanned": ({ summary }) => void seen.push(summary) }),
    });
    expect(bench.told).toEqual([]);
    expect(seen[0]).toMatchObject({ waiting: 0, troubled: 0 });
    expect(await bench.files()).toEqual(["t1~1.json"]);
    bench.ledger.end(record);
    bench.ledger.staged.add(keyOf(record));
    await bench.scan();
    expect(bench.told).toEqual([]);
    bench.ledger.staged.clear();
    await writeDelivery(bench.root, record);
    await bench.scan();
    expect(bench.told).toEqual(["t1: command done"]);
  });

  test.each([[{}], [{ command: ["true"] as const }]])(
    "that a worker creates after the delivery was finished is dropped: %j",
    async (task) => {
      const bench = await openBench(task);
      const { folder, record } = await bench.deliver("t1");
      await rm(folder, { recursive: true });
      await bench.scan();
      bench.told.splice(0);
      const handoffs = await bench.open();
      await handoffs.prepare(record);
      expect(await bench.files()).toHaveLength(1);
      handoffs.placed(record);
      await handoffs.finish();
      expect(await bench.files()).toEqual([]);
      expect(bench.told).toEqual([]);
    },
  );

  test("that is damaged, or whose end record is, is reported once, and keeps no other waiting", async () => {
    const bench = await openBench({ command: ["true"] });
    const { record } = await bench.deliver("t2");
    await bench.deliver("t1");
    await writeFile(join(outboxIn(bench.work), "t0.ab~1.json"), "{");
    const handoffs = await bench.open({
      ledger: {
        ...bench.ledger,
        async readEnd(name, round) {
          if (name === bench.ledger.nameOf(record)) throw new Fault("RECORD_UNREADABLE");
          return bench.ledger.readEnd(name, round);
        },
      },
    });
    await handoffs.finish();
    await handoffs.finish();
    const damaged = ["damaged: t0.ab~1.json", `damaged: ${keyOf(record)}`];
    expect(bench.told.toSorted()).toEqual([...damaged, "t1: command done"]);
    expect(await bench.files()).toEqual(["t0.ab~1.json", "t1~1.wait", "t2~1.json"]);
  });
});

test("a delivery counts as picked up once another one has its name", async () => {
  const bench = await openBench({});
  const { record, folder } = await bench.deliver("t1");
  await rm(folder, { recursive: true });
  await writeDelivery(bench.root, recordOf("t8"), record.folder ?? "");
  await bench.scan();
  expect(bench.told).toEqual(["t1: taken"]);
});

test("an order tries given-up steps of all rounds again, and none that are done", async () => {
  const go = join(await makeFolder(), "go");
  const bench = await openBench({ command: ["sh", "-c", '[ -e "$0" ]', go] });
  const first = await bench.deliver("t1");
  await bench.deliver("t1", { round: 2, folder: "m/t1-2" });
  const handoffs = await bench.open({
    patience: { retryMs: 20, giveUpMs: 0, scanMs: 20, killMs: 300 },
  });
  await handoffs.finish();
  expect(handoffs.failing()).toBe(2);
  await handoffs.finish();
  expect(bench.told.splice(0)).toEqual(["t1: command failed", "t1: command failed"]);
  await writeFile(go, "");
  expect(await handoffs.retry({ ...first.record, round: 2 })).toBe(true);
  await expect.poll(() => bench.told).toEqual(["t1: command done", "t1: command done"]);
  expect(await handoffs.retry({ ...first.record, round: 3 })).toBe(true);
  await handoffs.finish();
  expect(bench.told).toHaveLength(2);
  expect(handoffs.failing()).toBe(0);
});

test("a result that cannot be stored is reported once, however many scans succeed meanwhile, and once when it can", async () => {
  let scans = 0;
  const bench = await openBench({ command: ["true"] });
  const { record } = await bench.deliver("t1");
  const handoffs = await bench.open({
    emit: bench.emitAnd({ "outbox-scanned": () => void scans++ }),
  });
  // Without that folder no temporary file can be created, as on a full disk.
  const temporary = join(outboxIn(bench.work), "new");
  await rm(temporary, { recursive: true });
  handoffs.start();
  handoffs.placed(record);
  await expect.poll(() => bench.told).toEqual(["stuck: DISK_REFUSED"]);
  const before = scans;
  await expect.poll(() => scans).toBeGreaterThan(before + 3);
  expect(bench.told).toEqual(["stuck: DISK_REFUSED"]);
  await mkdir(temporary);
  await expect.poll(() => bench.told).toHaveLength(3);
  expect(bench.told.toSorted()).toEqual(["going on", "stuck: DISK_REFUSED", "t1: command done"]);
});

test("everything that is due is tried before `finish` resolves, however much that is", async () => {
  const seen = Promise.withResolvers<void>();
  const receiver = await openReceiver((response) => void seen.promise.then(() => accept(response)));
  const bench = await openBench({ webhook: receiver.url });
  await mkdir(outboxIn(bench.work), { recursive: true });
  const entry = formatEntry(newEntry(["webhook"]));
  for (let at = 0; at < DUE; at++) {
    const record = recordOf(`t${at}`, { folder: "m", steps: ["webhook"] });
    bench.ledger.end(record);
    await writeFile(join(outboxIn(bench.work), `${keyOf(record)}.json`), entry);
  }
  await mkdir(join(bench.root, "m"));
  const handoffs = await bench.open({ emit: bench.emitAnd({ "outbox-scanned": () => seen.resolve() }) });
  await handoffs.finish();
  expect(new Set(bench.told).size).toBe(DUE);
  expect(receiver.calls).toHaveLength(DUE);
});

test("an entry that cannot be read counts as waiting, and an outbox that cannot be listed changes no summary", async () => {
  const bench = await openBench({ command: ["false"] });
  for (const trackingId of ["t1", "t2"]) await bench.deliver(trackingId);
  const counts: string[] = [];
  let unreadable: readonly string[] = [];
  let fault: "DISK_UNREADABLE" | "RECORD_UNREADABLE" = "DISK_UNREADABLE";
  const handoffs = await bench.open({
    ledger: {
      ...bench.ledger,
      async readEnd(name, round) {
        const end = await bench.ledger.readEnd(name, round);
        if (unreadable.includes(end?.trackingId ?? "")) throw new Fault(fault);
        return end;
      },
    },
    patience: { ...HANDOFF_PATIENCE, giveUpMs: 0 },
    emit: bench.emitAnd({
      "outbox-scanned": ({ summary: { waiting, troubled, oldestMs } }) =>
        void counts.push(`${waiting} ${troubled}${oldestMs === undefined ? ", no time" : ""}`),
    }),
  });
  const scan = async (...failing: string[]) => {
    unreadable = failing;
    await handoffs.finish();
    return counts.splice(0).at(-1);
  };
  for (fault of ["DISK_UNREADABLE", "RECORD_UNREADABLE"] as const) {
    expect(await scan("t1", "t2")).toBe("2 0, no time");
    expect(await scan("t1")).toBe("2 1");
    expect(await scan()).toBe("2 2");
  }
  const [outbox, away] = [outboxIn(bench.work), join(bench.work, "away")];
  await rename(outbox, away);
  await writeFile(outbox, "");
  expect(await scan()).toBeUndefined();
  expect(handoffs.failing()).toBe(2);
  await rm(outbox);
  await rename(away, outbox);
  expect(await scan()).toBe("2 2");
});

test("`close` waits for the checks that have begun", async () => {
  const bench = await openBench({});
  const { folder, record } = await bench.deliver("t1");
  const checking = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<boolean>();
  const isHere = () => {
    checking.resolve();
    return goOn.promise;
  };
  const inbox = { root: bench.root, isHere, removeDelivered: async () => "removed" as const };
  const handoffs = await bench.open({ inbox });
  await rm(folder, { recursive: true });
  handoffs.start();
  await checking.promise;
  let isClosed = false;
  const closing = handoffs.close().then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect([isClosed, await bench.finished(record)]).toEqual([false, undefined]);
  goOn.resolve(true);
  await closing;
  expect(await bench.finished(record)).toMatchObject({ how: "taken" });
});
