import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { type Begun, type EndRecord, formatRecord } from "../../../src/ledger/format.ts";
import { openLedger } from "../../../src/ledger/ledger.ts";
import { attemptsKey, ledgerPaths, nameOf } from "../../../src/ledger/paths.ts";
import { type LedgerPeek, peekLedger } from "../../../src/ledger/peek.ts";
import { EMPTY_ENTRY, type Entry, formatEntry } from "../../../src/model/outbox.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const AT = "2026-03-01T08:00:00.000Z";
const LATER = "2026-03-02T09:00:00.000Z";
const TOKEN = "0123456789abcdef";
const KEY = { mailbox: "m", trackingId: "t1" };
const DELIVERED = { state: "delivered", folder: "m/t1", token: TOKEN } as const;

describe("a look at the ledger", () => {
  test("finds nothing, and creates nothing, where there is no work folder yet", async () => {
    const work = join(await makeFolder(), "work");
    const peek = peekLedger({ work, inbox: join(work, "..") });
    expect([await peek.find(KEY), await peek.describe(KEY)]).toEqual([undefined, undefined]);
    expect(await listAll(peek)).toEqual([]);
    expect(await states(peek.quarantined())).toEqual([]);
    const countOf = await peek.countAttempts();
    expect(await countOf(KEY, 2)).toBe(0);
    expect(await readdir(dirname(work))).toEqual([]);
  });

  test("goes by the end record where a crash left the note of a round that has ended", async () => {
    const { peek, note, end } = await setUp();
    await note({ state: "downloading" });
    await end({ state: "gone", reason: "expired" });
    expect(await peek.find(KEY)).toMatchObject({ state: "gone", reason: "expired" });
    expect(await states(peek.open())).toEqual([]);
    expect(await listAll(peek)).toEqual(["t1 gone 1"]);
  });

  test("a transfer whose round ends during the look is not unknown, to commands and to the daemon", async () => {
    const { work, paths, note, end } = await setUp();
    const path = paths.note(nameOf(KEY));
    // Between the look for an end and the look for the note.
    const disk: Disk = {
      ...systemDisk,
      async read(file) {
        if (file !== path) return systemDisk.read(file);
        await end(DELIVERED);
        await rm(path, { force: true });
        return systemDisk.read(file);
      },
    };
    const root = join(work, "..");
    await note({ state: "downloading" });
    expect(await peekLedger({ work, inbox: root }, disk).find(KEY)).toMatchObject({ state: "delivered" });
    await rm(paths.end(nameOf(KEY), 1));
    await note({ state: "downloading" });
    const watermark = { path: join(work, "watermark"), id: "test" };
    const ledger = await openLedger({
      work,
      root,
      disk,
      clock: systemClock,
      folderMode: () => 0o750,
      watermark,
    });
    onTestFinished(() => ledger.close());
    expect(await ledger.find(KEY)).toMatchObject({ state: "delivered" });
  });

  test("goes by the begin record where a round has begun and its note is lost or of an earlier round", async () => {
    const { peek, note, begin, end } = await setUp();
    await end({ state: "quarantined", reason: "CHECKSUM_MISMATCH" });
    await begin({ round: 2 }, { why: "retry", by: "root", at: LATER });
    expect(await peek.find(KEY)).toMatchObject({ state: "discovered", round: 2 });
    expect(await listAll(peek)).toEqual(["t1 discovered 2"]);
    await note({ state: "waiting", round: 1 });
    expect(await listAll(peek)).toEqual(["t1 discovered 2"]);
    await note({ state: "waiting", round: 2 });
    expect(await listAll(peek)).toEqual(["t1 waiting 2"]);
  });

  test("shows each transfer once, in its last round, whatever the number of rounds", async () => {
    const { peek, begin, end, note } = await setUp();
    const begun = { why: "redeliver", by: "root", at: LATER } as const;
    await end(DELIVERED);
    for (let round = 2; round <= 11; round++) {
      await begin({ round }, begun);
      await end({ ...DELIVERED, round, folder: `m/t1-${round}` });
    }
    for (let at = 0; at < 100; at++) {
      if (at % 2 === 0) await end({ trackingId: `other${at}`, state: "gone" });
      else await note({ trackingId: `other${at}` });
    }
    const listed = await listAll(peek);
    expect(listed).toHaveLength(101);
    expect(new Set(listed).size).toBe(101);
    expect(listed).toContain("t1 delivered 11");
    expect(listed.slice(0, 50).every((it) => it.includes("discovered"))).toBe(true);
  });

  test("shows a delivery as delivering until its staged folder is moved", async () => {
    const { peek, end, paths } = await setUp();
    await end(DELIVERED);
    const staged = paths.staged({ name: nameOf(KEY), round: 1, token: TOKEN });
    await mkdir(staged, { recursive: true });
    expect(await peek.find(KEY)).toMatchObject({ state: "delivering", folder: "m/t1" });
    expect(await listAll(peek)).toEqual(["t1 delivering 1"]);
    expect(await peek.describe(KEY)).toMatchObject({
      record: { state: "delivering" },
      rounds: [{ round: 1, ended: { outcome: "delivered", isPlaced: false } }],
      staged: [staged],
    });
    await rm(staged, { recursive: true });
    // Another attempt's folder says nothing about this delivery.
    await mkdir(paths.staged({ name: nameOf(KEY), round: 1, token: "f".repeat(16) }));
    expect(await peek.find(KEY)).toMatchObject({ state: "delivered" });
    expect(await listAll(peek)).toEqual(["t1 delivered 1"]);
  });

  test("shows a delivery as picked up once its hand-off says so", async () => {
    const { work, peek, end, paths } = await setUp();
    await end(DELIVERED);
    const entry = join(work, "outbox", `${nameOf(KEY)}~1`);
    const text = (facts: Partial<Entry>) => formatEntry({ ...EMPTY_ENTRY, ...facts });
    const [done, failed] = [
      { state: "done", attempts: 1 },
      { state: "failed", attempts: 1 },
    ] as const;
    const see = async () => {
      const [listed] = await Array.fromAsync(peek.all());
      expect(listed).toEqual(await peek.find(KEY));
      const handoff = (await peek.describe(KEY))?.rounds[0]?.ended?.handoff;
      return { state: listed?.state, progress: handoff?.progress };
    };
    expect(await see()).toEqual({ state: "delivered", progress: undefined });
    await put(`${entry}.json`, text({ command: done, webhook: failed }));
    expect(await see()).toEqual({ state: "delivered", progress: "open" });
    await put(`${entry}.json`, text({ command: done, reported: true }));
    expect(await see()).toEqual({ state: "delivered", progress: "waiting" });
    await rm(`${entry}.json`);
    await put(`${entry}.wait`, "");
    expect(await see()).toEqual({ state: "delivered", progress: "waiting" });
    await put(`${entry}.kept`, text({ pickedUpAt: LATER }));
    expect(await see()).toEqual({ state: "picked-up", progress: "kept" });
    await rm(`${entry}.kept`);
    // A late worker left the empty entry, though the hand-off is finished.
    await put(paths.handoff(nameOf(KEY), 1), text({}));
    expect(await see()).toEqual({ state: "delivered", progress: "finished" });
    await rm(`${entry}.wait`);
    await put(paths.handoff(nameOf(KEY), 1), text({ pickedUpAt: LATER }));
    expect(await see()).toEqual({ state: "picked-up", progress: "finished" });
    expect((await peek.find(KEY))?.at).toEqual({ delivered: AT, "picked-up": LATER });
  });

  test("counts password attempts over gaps, and granted ones too", async () => {
    const { peek, note, attempt, paths } = await setUp();
    await note({ state: "waiting", reason: "password" });
    for (const number of [2, 3, 14]) await attempt(number);
    for (let number = 1; number <= 12; number++) {
      await put(join(paths.slots, `${attemptsKey("t1")}.grant-${number}.json`), "");
    }
    expect(await spentIn(peek)).toEqual({ shown: 3, listed: 3, allowed: 14 });
    expect((await peek.describe(KEY))?.passwords).toBeUndefined();
  });

  test("counts no attempt of a round that was delivered, as the daemon does", async () => {
    const { peek, end, begin, note, attempt } = await setUp();
    await end(DELIVERED);
    await begin({ round: 2 }, { why: "redeliver", by: "anna", at: LATER });
    await note({ state: "waiting", reason: "password", round: 2 });
    for (const number of [1, 2]) await attempt(number, { round: 1 });
    for (const number of [3, 4]) await attempt(number, { round: 2 });
    expect(await spentIn(peek)).toEqual({ shown: 2, listed: 2, allowed: 2 });
  });

  test("lists a transfer whose attempts a damaged record hides, without their number", async () => {
    const { peek, note, attempt, paths } = await setUp();
    await note({ state: "waiting", reason: "password" });
    const other = nameOf({ mailbox: "other", trackingId: "t1" });
    await put(paths.end(other, 1), "{");
    await attempt(1, { name: other });
    const countOf = await peek.countAttempts();
    expect(await countOf(KEY, 2)).toBeUndefined();
  });

  test("passes over damaged records in lists and reports them, but never guesses over one", async () => {
    const { peek, note, end, paths } = await setUp();
    const [bad, later] = [
      { mailbox: "m", trackingId: "bad" },
      { mailbox: "m", trackingId: "later" },
    ];
    await end({ trackingId: "t2", state: "gone" });
    await put(paths.end(nameOf(bad), 1), '{"version":2');
    await end({ ...later, ...DELIVERED });
    await put(paths.handoff(nameOf(later), 1), "\0\0");
    await note({});
    const damaged: string[] = [];
    expect(await states(peek.all((path) => damaged.push(path)))).toEqual(["t1 discovered 1", "t2 gone 1"]);
    expect(damaged.toSorted()).toEqual([paths.end(nameOf(bad), 1), paths.end(nameOf(later), 1)]);
    for (const key of [bad, later]) {
      await expect(peek.find(key)).rejects.toMatchObject({ code: "RECORD_UNREADABLE" });
      await expect(peek.describe(key)).rejects.toMatchObject({ code: "RECORD_UNREADABLE" });
    }
  });

  test("does without a damaged note, as the daemon does, and reports it in lists", async () => {
    const { peek, paths } = await setUp();
    await put(paths.note(nameOf(KEY)), "");
    const damaged: string[] = [];
    expect(await states(peek.open((path) => damaged.push(path)))).toEqual([]);
    expect(damaged).toEqual([paths.note(nameOf(KEY))]);
    expect(await peek.find(KEY)).toBeUndefined();
  });

  test("says which folder it cannot read", async () => {
    const { work, peek } = await setUp();
    await writeFile(join(work, "notes"), "not a folder");
    await expect(listAll(peek)).rejects.toMatchObject({
      code: "DISK_UNREADABLE",
      message: expect.stringContaining(join(work, "notes")),
    });
  });
});

async function setUp() {
  const work = await makeFolder();
  const paths = ledgerPaths(work);
  return {
    work,
    paths,
    peek: peekLedger({ work, inbox: join(work, "..") }),
    async note(facts: Partial<TransferRecord>): Promise<void> {
      const record = recordOf(facts);
      await put(paths.note(nameOf(record)), formatRecord(record));
    },
    async end(facts: Partial<EndRecord>): Promise<void> {
      const record = recordOf(facts);
      await put(paths.end(nameOf(record), record.round), formatRecord(record));
    },
    async attempt(number: number, { name = nameOf(KEY), round = 1 } = {}): Promise<void> {
      const slot = JSON.stringify({ name, round, at: AT, fingerprint: "f" });
      await put(join(paths.slots, `${attemptsKey("t1")}.${number}.json`), slot);
    },
    async begin(facts: Partial<TransferRecord>, begun: Begun): Promise<void> {
      const record = recordOf(facts);
      await put(paths.begin(nameOf(record), record.round), formatRecord({ ...record, begun }));
    },
  };
}

function recordOf(facts: Partial<EndRecord>): EndRecord {
  return makeRecord({ at: { [facts.state ?? "discovered"]: AT }, ...facts });
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

async function spentIn(peek: LedgerPeek) {
  const passwords = (await peek.describe(KEY, 2))?.passwords;
  const listed = await (await peek.countAttempts())(KEY, 2);
  return { shown: passwords?.spent, listed, allowed: passwords?.allowed };
}

async function listAll(peek: LedgerPeek): Promise<string[]> {
  return states(peek.all());
}

async function states(records: AsyncIterable<TransferRecord>): Promise<string[]> {
  const found = await Array.fromAsync(records);
  return found.map(({ trackingId, state, round }) => `${trackingId} ${state} ${round}`);
}
