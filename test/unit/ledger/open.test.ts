/** The ledger over restarts: what a power cut, an older copy, a wrong clock or a changed name leave of it. */
import { cp, mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemDisk } from "../../../src/base/disk.ts";
import { type LedgerPaths, ledgerPaths } from "../../../src/ledger/paths.ts";
import { peekLedger } from "../../../src/ledger/peek.ts";
import type { Ledger } from "../../../src/ledger/port.ts";
import { Retention } from "../../../src/ledger/retention.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import { findOlder, Watermark } from "../../../src/ledger/watermark.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { diskAround } from "../../support/disk-steps.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const DAY_MS = 24 * 60 * 60_000;

test("I2 once: another spelling of the mailbox's address is the same mailbox", async () => {
  const ledger = await ledgerIn(await makeFolder());
  const record = makeRecord({ mailbox: "Orders@Example.com" });
  await ledger.end({ ...record, state: "gone" });
  expect(await ledger.find({ mailbox: "orders@example.COM", trackingId: "t1" })).toMatchObject({
    state: "gone",
  });
});

test("I2 once: a work folder that was restored from an older copy is found, and not mistaken for a new one", async () => {
  const folder = await makeFolder();
  const watermark = { path: join(folder, "state"), id: "w" };
  const first = await ledgerIn(folder, { watermark });
  await first.end(makeRecord({ trackingId: "t1", state: "gone" }));
  await first.flush();
  await cp(join(folder, ".inlet"), join(folder, "copy"), { recursive: true });
  await first.end(makeRecord({ trackingId: "t2", state: "gone" }));
  await first.flush();
  const findHere = (id = watermark.id) =>
    findOlder(watermark.path, id, peekLedger({ work: join(folder, ".inlet"), inbox: folder }));
  expect(await findHere()).toBeUndefined();
  await rm(join(folder, ".inlet"), { recursive: true });
  await cp(join(folder, "copy"), join(folder, ".inlet"), { recursive: true });
  expect(await findHere()).toMatchObject({ code: "WORK_RESTORED" });
  expect(await findHere("of a new work folder")).toBeUndefined();
  await rm(watermark.path);
  expect(await findHere()).toBeUndefined();
});

test("a note without its text is taken for none: the transfer is discovered again", async () => {
  const folder = await makeFolder();
  const ledger = await ledgerIn(folder);
  await writeFile(ledgerPaths(join(folder, ".inlet")).note(ledger.nameOf(makeRecord())), "");
  expect(await ledger.find(makeRecord())).toBeUndefined();
  expect(await ledger.discover(makeRecord())).toBe(true);
  expect(await ledger.discover(makeRecord())).toBe(false);
});

test("a note of a round that has ended is removed at the next start, after the journal has the end", async () => {
  const folder = await makeFolder();
  const first = await ledgerIn(folder);
  await first.discover(makeRecord());
  await first.flush();
  const ended = makeRecord({ state: "gone" });
  const paths = ledgerPaths(join(folder, ".inlet"));
  const name = first.nameOf(ended);
  await mkdir(paths.ledgerFolder(name), { recursive: true });
  await writeFile(paths.end(name, 1), `${JSON.stringify(ended)}\n`);
  const second = await ledgerIn(folder);
  expect(await Array.fromAsync(second.open(() => {}))).toEqual([]);
  await second.flush();
  expect(await readdir(paths.notes)).toEqual([]);
  const [month = ""] = await readdir(paths.journal);
  expect(await readFile(join(paths.journal, month), "utf8")).toContain('"state":"gone"');
});

test.each([
  ["recovery", (ledger: Ledger) => ledger.recover(() => {})],
  ["a look at all open transfers", (ledger: Ledger) => Array.fromAsync(ledger.open(() => {}))],
])(
  "the journal has the end of a round once, though somebody looks for ends that it lacks %s, at any of its steps",
  async (_name, look) => {
    for (let step = 0, isReached = true; isReached; step++) {
      const folder = await makeFolder();
      let settle = async () => {};
      let left = Number.POSITIVE_INFINITY;
      // At one step of the look, the rest of the ledger goes on until it rests.
      const disk = diskAround(async (_, run) => {
        const result = await run();
        if (left-- === 0) await settle();
        return result;
      });
      const ledger = await ledgerIn(folder, { disk });
      const { stage, end } = await endRound(ledger);
      await ledger.place(end, stage);
      settle = () => ledger.flush();
      left = step;
      expect(await look(ledger)).toEqual([]);
      isReached = left < 0;
      left = Number.POSITIVE_INFINITY;
      await ledger.flush();
      const paths = ledgerPaths(join(folder, ".inlet"));
      const [month = ""] = await readdir(paths.journal);
      const lines = (await readFile(join(paths.journal, month), "utf8")).trim().split("\n");
      expect(lines.filter((line) => line.includes('"state":"delivered"'))).toHaveLength(1);
      expect([...(await readdir(paths.notes)), ...(await readdir(paths.staging))]).toEqual([]);
      expect(await ledger.isPlaced({ ...end, token: stage.token } as TransferRecord)).toBe(true);
    }
  },
);

test("I7 nothing silent: a delivery is in the journal only once its folder is in the inbox", async () => {
  const folder = await makeFolder();
  const ledger = await ledgerIn(folder);
  const look = async () => {
    expect(await Array.fromAsync(ledger.open(() => {}))).toEqual([]);
    await ledger.flush();
    const { journal } = ledgerPaths(join(folder, ".inlet"));
    const texts = await Promise.all(
      (await readdir(journal)).map((month) => readFile(join(journal, month), "utf8")),
    );
    return texts.join("").match(/"state":"delivered"/g);
  };
  const { stage, end } = await endRound(ledger);
  await ledger.stages.closeStage(stage);
  expect(await look()).toBeNull();
  await ledger.place(end, stage);
  expect(await look()).toHaveLength(1);
});

test("a name is claimed no longer once nothing is known of its open round: a crash has taken the note, and a recovery the stage", async () => {
  const folder = await makeFolder();
  const ledger = await ledgerIn(folder);
  const [noted, staged, lost] = ["noted", "staged", "lost"].map((trackingId) => makeRecord({ trackingId }));
  for (const record of [noted, staged, lost] as TransferRecord[]) {
    const id = { name: ledger.nameOf(record), round: 1 };
    expect(await ledger.placements.claim(id, [`m/${record.trackingId}`], record)).toBe(true);
  }
  await ledger.discover(noted as TransferRecord);
  const stage = await ledger.stages.openStage(staged as TransferRecord);
  await ledger.stages.closeStage(stage);
  const { names } = ledgerPaths(join(folder, ".inlet"));
  const owners = async () =>
    (await Promise.all((await readdir(names)).map((it) => readdir(join(names, it))))).flat();
  expect(await ledger.recover(() => expect.unreachable())).toEqual([]);
  expect((await owners()).map((owner) => owner.split(".")[0]).toSorted()).toEqual(["noted", "staged"]);
});

test("what is left out leaves nothing in quarantine, though the disk fails or the process is killed right after its end", async () => {
  const folder = await makeFolder();
  let isBroken = true;
  const disk = diskAround(async (name, run) => {
    if (isBroken && name === "removeTree") throw Object.assign(new Error("broken"), { code: "EIO" });
    return run();
  });
  const ledger = await ledgerIn(folder, { disk });
  const { quarantine } = ledger.stages;
  await ledger.end(makeRecord({ state: "quarantined" }));
  await mkdir(quarantine.folderOf(ledger.nameOf(makeRecord()), 1), { recursive: true });
  const open = makeRecord({ round: 2 });
  await ledger.begin(open, "retry", "w");
  expect(await ledger.end({ ...open, state: "gone", reason: "ignored" })).toBe(true);
  await ledger.flush();
  expect(await quarantine.list()).toHaveLength(1);
  isBroken = false;
  await ledger.recover(() => expect.unreachable());
  await ledger.flush();
  expect(await quarantine.list()).toEqual([]);
});

describe("retention", () => {
  const rules = { ledgerMs: 90 * DAY_MS, historyMs: 30 * DAY_MS, isListed: () => false };

  test("removes the records of a transfer that expired long enough ago, unless the service lists it or it waits to be picked up", async () => {
    const { ledger, files, work, folder } = await openWith([
      makeRecord({ trackingId: "young", state: "gone", expires: ago(89) }),
      makeRecord({ trackingId: "kept", state: "quarantined", expires: ago(500) }),
      makeRecord({ trackingId: "listed", state: "gone", expires: ago(91) }),
      makeRecord({ trackingId: "waiting", state: "gone", expires: ago(91) }),
      makeRecord({ trackingId: "old", state: "gone", expires: ago(91) }),
    ]);
    const waiting = ledger.nameOf(makeRecord({ trackingId: "waiting" }));
    await mkdir(join(work, "outbox"), { recursive: true });
    await writeFile(join(work, "outbox", `${waiting}~1.wait`), "");
    await ledger.flush();
    await sweepAll(ledger, { ...rules, isListed: ({ trackingId }) => trackingId === "listed" });
    const left = (await files()).map((name) => name.split(".")[0]);
    expect(left).toEqual(["kept", "listed", "waiting", "young"]);
    // Without the last record that was made, the work folder does not look restored.
    await expect(ledgerIn(folder)).resolves.toBeDefined();
  });

  test("removes the placements of a transfer with its records, unless the outbox has an entry, damaged or not", async () => {
    const ids = ["lost", "damaged", "young"];
    const { ledger, files, work } = await openWith(
      ids.map((trackingId) =>
        makeRecord({ trackingId, state: "delivered", expires: ago(trackingId === "young" ? 89 : 91) }),
      ),
    );
    const nameOf = (trackingId: string) => ledger.nameOf(makeRecord({ trackingId }));
    for (const trackingId of ids) {
      const folder = join(work, "placements", `${nameOf(trackingId)}~1~0123456789abcdef`);
      await mkdir(folder);
      await writeFile(join(folder, "placement.json"), "x");
    }
    const entry = join(work, "outbox", `${nameOf("damaged")}~1.json`);
    await mkdir(dirname(entry), { recursive: true });
    await writeFile(entry, "damaged");
    const left = async () =>
      (await readdir(join(work, "placements"))).map((name) => name.slice(0, name.indexOf("~")));
    await sweepAll(ledger, rules);
    expect((await left()).toSorted()).toEqual([nameOf("damaged"), nameOf("young")].toSorted());
    expect(await files()).toHaveLength(2);
    // The operator has removed the damaged entry.
    await rm(entry);
    await sweepAll(ledger, rules);
    expect(await left()).toEqual([nameOf("young")]);
  });

  test("comes to every record also where each process lives for one sweep only, as from cron", async () => {
    const { work, files } = await openWith([makeRecord({ state: "gone", expires: ago(91) })]);
    const paths = ledgerPaths(work);
    const rounds = new Rounds({ disk: systemDisk, paths, root: work, folderMode: () => 0o750 });
    const watermark = new Watermark(join(work, "watermark"), "test");
    for (let process = 0; process < 5_000 && (await files()).length > 0; process++) {
      await new Retention(rounds, watermark).sweep(rules, Date.now());
    }
    expect(await files()).toEqual([]);
  });

  test.each([
    [
      "whose later round is open, although its note is lost",
      async (ledger: Ledger, paths: LedgerPaths, name: string) => {
        await ledger.begin({ ...makeRecord(), round: 2 }, "retry", "me");
        await ledger.flush();
        await rm(paths.note(name));
      },
    ],
    [
      "whose record is damaged",
      (_ledger: Ledger, paths: LedgerPaths, name: string) => writeFile(paths.end(name, 1), "{"),
    ],
  ] as const)("I3 no burnt transfers: leaves attempts at a transfer %s", async (_, prepare) => {
    const { ledger, work } = await openWith([makeRecord({ state: "gone" })]);
    const name = ledger.nameOf(makeRecord());
    await prepare(ledger, ledgerPaths(work), name);
    // An earlier version has used the other folder.
    await mkdir(join(work, "attempts"));
    for (const folder of ["slots", "attempts"]) {
      for (const [file, of] of Object.entries({ "a.1.json": name, "b.1.json": "unknown" })) {
        const slot = { name: of, round: 1, at: ago(91) };
        await writeFile(join(work, folder, file), JSON.stringify(slot));
      }
    }
    await sweepAll(ledger, rules);
    for (const folder of ["slots", "attempts"])
      expect(await readdir(join(work, folder))).toEqual(["a.1.json"]);
  });

  async function openWith(records: readonly TransferRecord[]) {
    const folder = await makeFolder();
    const work = join(folder, ".inlet");
    const ledger = await ledgerIn(folder);
    for (const record of records) await ledger.end(record);
    const files = async () =>
      (await readdir(join(work, "ledger"), { recursive: true }))
        .filter((name) => name.endsWith(".json"))
        .map((name) => basename(name))
        .toSorted();
    return { folder, work, ledger, files };
  }

  async function sweepAll(ledger: Ledger, wanted: Parameters<Ledger["sweep"]>[0]): Promise<void> {
    for (let part = 0; part < 256; part++) await ledger.sweep(wanted);
  }

  function ago(days: number): string {
    return new Date(Date.now() - days * DAY_MS).toISOString();
  }
});

test("without hard links a record is written in place, and one that a crash cut short goes at the next start", async () => {
  const folder = await makeFolder();
  const link = systemDisk.link;
  systemDisk.link = async () => {
    throw Object.assign(new Error("EPERM"), { code: "EPERM", syscall: "link" });
  };
  try {
    const ledger = await ledgerIn(folder);
    const record = makeRecord();
    await ledger.discover(record);
    await ledger.flush();
    const paths = ledgerPaths(join(folder, ".inlet"));
    const path = paths.end(ledger.nameOf(record), 1);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '{"version":2,"mail');
    await expect(ledger.find(record)).rejects.toMatchObject({ code: "RECORD_UNREADABLE" });
    const next = await ledgerIn(folder);
    expect((await next.find(record))?.state).toBe("discovered");
    expect(await next.end({ ...record, state: "gone" })).toBe(true);
    expect(await next.end({ ...record, state: "gone" })).toBe(false);
    await expect(ledgerIn(folder, { writer: "w" })).rejects.toMatchObject({ code: "LINKS_MISSING" });
  } finally {
    systemDisk.link = link;
  }
});

/** A transfer that is discovered and downloaded, and whose folder is to be placed. */
async function endRound(ledger: Ledger) {
  const record = makeRecord();
  await ledger.discover(record);
  const stage = await ledger.stages.openStage(record);
  await ledger.stages.seal(stage);
  const end: TransferRecord = { ...record, state: "delivered", folder: "t1" };
  expect(await ledger.stages.endWith(stage, end)).toBe(true);
  return { stage, end };
}

describe("the stage of an attempt that is over", () => {
  const HOUR_AGO = new Date(Date.now() - 3_600_000);

  test("is removed by a later attempt of another process, although the ticket of that attempt is older", async () => {
    const { staging, own, crashed, reclaim } = await prepareStages();
    await utimes(`${own.folder}.ticket`, HOUR_AGO, HOUR_AGO);
    for (const path of [`${crashed.folder}/part`, crashed.folder]) await utimes(path, HOUR_AGO, HOUR_AGO);
    await reclaim();
    expect(await staging()).toEqual([basename(own.folder), `${basename(own.folder)}.ticket`]);
  });

  test.each(["", "/part", ".zip"])("is left while its %j changes", async (changed) => {
    const { staging, crashed, reclaim } = await prepareStages();
    await writeFile(`${crashed.folder}.zip`, "x");
    for (const end of ["/part", "", ".zip"]) {
      if (end !== changed) await utimes(`${crashed.folder}${end}`, HOUR_AGO, HOUR_AGO);
    }
    const before = await staging();
    await reclaim();
    expect(await staging()).toEqual(before);
  });

  /** Another process has a stage with one file, and this process has one that it opened before. */
  async function prepareStages() {
    const folder = await makeFolder();
    const record = makeRecord({});
    const ledger = await ledgerIn(folder, { writer: "a" });
    const own = await ledger.stages.openStage(record);
    await ledger.stages.closeStage(own);
    const crashed = await (await ledgerIn(folder, { writer: "b" })).stages.openStage(record);
    await writeFile(join(crashed.folder, "part"), "x");
    const reclaim = async () => {
      const stage = await ledger.stages.openStage(record);
      expect(stage.token).toBe(own.token);
      await ledger.reclaim(stage);
      expect(await readdir(join(folder, ".inlet", "new"))).toEqual([]);
    };
    const staging = async () => (await readdir(join(folder, ".inlet", "staging"))).toSorted();
    return { own, crashed, reclaim, staging };
  }
});
