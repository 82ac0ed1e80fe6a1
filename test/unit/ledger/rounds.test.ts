/** Each step of a round by itself, with and without hard links. */
import { copyFile, link, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { sumFolder } from "../../../src/base/sums.ts";
import type { EndRecord } from "../../../src/ledger/format.ts";
import { type LedgerPaths, ledgerPaths, nameOf, SPREAD } from "../../../src/ledger/paths.ts";
import type { Stage } from "../../../src/ledger/port.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import { nextRound } from "../../../src/model/record.ts";
import { diskAround } from "../../support/disk-steps.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { whileUnread } from "../../support/unread.ts";

const T1 = makeRecord();
const NAME = nameOf(T1);
const GONE: EndRecord = { ...T1, state: "gone", reason: "expired" };
const DELIVERED: EndRecord = { ...T1, state: "delivered", folder: "m/F" };

interface Bench {
  readonly disk: Disk;
  readonly paths: LedgerPaths;
  readonly root: string;
}

async function openBench(disk: Disk): Promise<Bench> {
  const folder = await makeFolder();
  const [paths, root] = [ledgerPaths(join(folder, "work")), join(folder, "inbox")];
  const records = SPREAD.map((name) => join(paths.ledger, name));
  for (const path of [root, ...paths.folders(), ...records]) await mkdir(path, { recursive: true });
  return { disk, paths, root };
}

const withoutLinks: Disk = {
  ...systemDisk,
  async link(from) {
    await systemDisk.read(from);
    throw Object.assign(new Error("EPERM"), { code: "EPERM" });
  },
};

describe("I1 whole or nothing: what waits in a stage after its round has ended", () => {
  async function openDecided() {
    const bench = await openBench(systemDisk);
    const rounds = start(bench);
    const stage = await stageOf(rounds, bench);
    const end = { ...DELIVERED, token: stage.token, sum: await sumFolder(stage.folder) };
    await rounds.endWith(stage, end);
    const target = join(bench.root, "m/F");
    return { bench, rounds, stage, end, target, file: join(stage.folder, "file") };
  }

  test.each([
    ["changed", (file: string) => writeFile(file, "0123456789abcdeX")],
    ["taken away", (file: string) => rm(file)],
    ["replaced by a link to the same bytes", replaceBy((other, file) => symlink(other, file))],
    ["replaced by a second name of the same bytes", replaceBy((other, file) => link(other, file))],
    ["joined by another one", (file: string) => writeFile(`${file}-2`, "")],
  ])("is not delivered by another process if its file was %s", async (_, change) => {
    const { bench, end, target, file, stage } = await openDecided();
    await change(file);
    const restarted = start(bench);
    await expect(restarted.place(end)).rejects.toMatchObject({ code: "CONTENT_CHANGED" });
    const failed: unknown[] = [];
    expect(await restarted.recover((_entry, error, record) => failed.push(error, record?.token))).toEqual([]);
    expect(failed).toMatchObject([{ code: "CONTENT_CHANGED" }, stage.token]);
    expect(await bench.disk.kindOf(target)).toBeUndefined();
    expect(await restarted.isPlaced(end)).toBe(false);
  });

  test("is delivered by another process as it was, and by the process that has staged it without reading it again", async () => {
    const first = await openDecided();
    expect(await start(first.bench).place(first.end)).toBe(true);
    expect(await first.bench.disk.list(first.target)).toEqual(["file"]);
    const second = await openDecided();
    second.stage.proof = second.end.sum;
    await whileUnread("file", () => second.rounds.place(second.end, second.stage));
    expect(await second.bench.disk.list(second.target)).toEqual(["file"]);
  });

  test("is no proof for a later attempt of the same process", async () => {
    const bench = await openBench(systemDisk);
    const rounds = start(bench);
    const stage = await stageOf(rounds, bench);
    stage.proof = await sumFolder(stage.folder);
    await rounds.closeStage(stage);
    expect((await rounds.openStage(T1)).proof).toBeUndefined();
  });

  test("is removed, with its outbox entry, once the next round has begun, and only if it has changed", async () => {
    const { bench, end, target, file, stage } = await openDecided();
    await writeFile(file, "changed");
    const entry = bench.paths.outboxEntry(NAME, 1, "json");
    await mkdir(bench.paths.outbox);
    await writeFile(entry, "{}");
    const restarted = start(bench);
    await restarted.begin({ ...nextRound(end), begun: { why: "redeliver", by: "anna", at: "" } });
    expect(await restarted.recover((_entry, error) => expect.unreachable(String(error)))).toEqual([]);
    for (const path of [target, stage.folder, entry]) expect(await bench.disk.kindOf(path)).toBeUndefined();
    expect(await bench.disk.list(bench.paths.staging)).toEqual([]);
    const sound = await openDecided();
    await sound.rounds.begin(nextRound(sound.end));
    await start(sound.bench).recover((_entry, error) => expect.unreachable(String(error)));
    expect(await sound.bench.disk.list(sound.target)).toEqual(["file"]);
  });
});

describe.each([
  ["the system's disk", () => openBench(systemDisk)],
  ["a disk without hard links", () => openBench(withoutLinks)],
])("on %s", (_, open) => {
  async function openStaged() {
    const bench = await open();
    const rounds = start(bench);
    return { bench, rounds, stage: await stageOf(rounds, bench) };
  }

  test("a sealed stage becomes the delivered folder, and nothing is left of the attempt", async () => {
    const { bench, rounds, stage } = await openStaged();
    expect(await rounds.endWith(stage, DELIVERED)).toBe(true);
    expect(await rounds.place({ ...DELIVERED, token: stage.token }, stage)).toBe(true);
    expect(await bench.disk.read(join(bench.root, "m/F/file"))).toBe(stage.token);
    expect(await rounds.current(NAME)).toMatchObject({
      round: 1,
      end: { token: stage.token, folder: "m/F" },
    });
    expect(await bench.disk.list(bench.paths.staging)).toEqual([]);
  });

  test("the first attempt to end a round decides it, and the second one removes its own stage only", async () => {
    const bench = await open();
    const [a, b] = [start(bench), start(bench)];
    const [first, second] = [await stageOf(a, bench), await stageOf(b, bench)];
    expect(await a.endWith(first, DELIVERED)).toBe(true);
    expect(await b.endWith(second, { ...DELIVERED, folder: "m/G" })).toBe(false);
    await b.dropStage(second);
    expect(await a.readEnd(NAME, 1)).toMatchObject({ token: first.token, folder: "m/F" });
    expect(await bench.disk.list(first.folder)).toEqual(["file"]);
    expect(await bench.disk.kindOf(second.folder)).toBeUndefined();
  });

  test("the next round is ordered once, and is the current one", async () => {
    const rounds = start(await open());
    await rounds.end(GONE);
    expect(await rounds.begin(nextRound(GONE))).toBe(true);
    expect(await rounds.begin({ ...nextRound(GONE), sender: "another" })).toBe(false);
    const { round, begin, end } = await rounds.current(NAME);
    expect({ round, sender: begin?.sender, end }).toEqual({ round: 2, sender: T1.sender, end: undefined });
  });

  test("a delivery is placed once, also where a consumer has taken it since", async () => {
    const { bench, rounds, stage } = await openStaged();
    await rounds.endWith(stage, DELIVERED);
    const end = { ...DELIVERED, token: stage.token };
    expect(await rounds.isPlaced(end)).toBe(false);
    expect(await start(bench).place(end)).toBe(true);
    await bench.disk.removeTree(join(bench.root, "m/F"));
    await rounds.place(end, stage);
    expect(await rounds.place(end)).toBe(false);
    expect(await rounds.isPlaced(end)).toBe(true);
    expect(await bench.disk.list(join(bench.root, "m"))).toEqual([]);
  });

  test("a foreign folder of that name is left alone, and the delivery waits until it is moved away", async () => {
    const bench = await open();
    const rounds = start(bench);
    await bench.disk.makeFolder(join(bench.root, "m"), 0o700);
    await bench.disk.makeFolder(join(bench.root, "m/F"), 0o700);
    const stage = await stageOf(rounds, bench);
    await rounds.endWith(stage, DELIVERED);
    const end = { ...DELIVERED, token: stage.token };
    await expect(rounds.place(end)).rejects.toMatchObject({ code: "TARGET_TAKEN" });
    expect(await bench.disk.list(join(bench.root, "m/F"))).toEqual([]);
    await bench.disk.removeFolder(join(bench.root, "m/F"));
    expect(await rounds.place(end)).toBe(true);
    expect(await bench.disk.list(join(bench.root, "m/F"))).toEqual(["file"]);
  });

  test("a stage is continued by its process, and by no other", async () => {
    const bench = await open();
    const rounds = start(bench);
    const stage = await rounds.openStage(T1);
    await rounds.closeStage(stage);
    expect((await rounds.openStage(T1)).token).toBe(stage.token);
    expect((await rounds.openStage(T1)).token).not.toBe(stage.token);
    expect((await start(bench).openStage(T1)).token).not.toBe(stage.token);
  });

  test("an attempt that was revoked cannot end the round, and is not continued", async () => {
    const { bench, rounds, stage } = await openStaged();
    await start(bench).revoke(stage);
    expect(await rounds.endWith(stage, DELIVERED)).toBe(false);
    expect((await rounds.current(NAME)).end).toBeUndefined();
    await rounds.closeStage(stage);
    expect((await rounds.openStage(T1)).token).not.toBe(stage.token);
  });

  test("an attempt that tries again to end the round keeps its first record, and is placed if it is revoked then", async () => {
    const { bench, rounds, stage } = await openStaged();
    await rounds.endWith(stage, DELIVERED);
    expect(await rounds.endWith(stage, { ...DELIVERED, folder: "m/G" })).toBe(true);
    expect(await rounds.readEnd(NAME, 1)).toMatchObject({ folder: "m/F" });
    await start(bench).revoke(stage);
    expect(await bench.disk.list(join(bench.root, "m/F"))).toEqual(["file"]);
  });
});

/** How a process ends a round. */
type Ending = (rounds: Rounds, stage: Stage) => Promise<boolean>;

const deliver: Ending = (rounds, stage) => rounds.endWith(stage, DELIVERED);
const discard: Ending = (rounds) => rounds.end(GONE);

test.each([
  ["two deliveries", deliver, deliver],
  ["a delivery and a discard", deliver, discard],
  ["a discard and a delivery", discard, deliver],
  ["two discards", discard, discard],
])("I2 once: of %s at the same time, one ends the round", async (_, endFirst, endSecond) => {
  let steps = 0;
  while (await endTwice(endFirst, endSecond, steps)) steps++;
  expect(steps).toBeGreaterThan(1);
});

/** The second process ends the round after some steps of the first one. False if the first one makes no more steps. */
async function endTwice(endFirst: Ending, endSecond: Ending, afterSteps: number): Promise<boolean> {
  const bench = await openBench(systemDisk);
  const readEnd = () => bench.disk.read(bench.paths.end(NAME, 1));
  let stepsLeft = Number.POSITIVE_INFINITY;
  const found: { readonly hasEnded: boolean; readonly text: string }[] = [];
  const disk = diskAround(async (_, run) => {
    if (stepsLeft-- === 0) found.push({ hasEnded: await endSecond(b, second), text: await readEnd() });
    return run();
  });
  const [a, b] = [start({ ...bench, disk }), start(bench)];
  const [first, second] = [await stageOf(a, bench), await stageOf(b, bench)];
  stepsLeft = afterSteps;
  const hasEnded = await endFirst(a, first);
  if (found.length > 0) expect(found).toEqual([{ hasEnded: !hasEnded, text: await readEnd() }]);
  return found.length > 0;
}

test("a revoked attempt stays revoked in a power cut of the file server, which does not end the attempt", async () => {
  const steps: string[] = [];
  const disk: Disk = {
    ...systemDisk,
    unlink: (path) => systemDisk.unlink(path).then(() => void steps.push(`unlinked ${path}`)),
    syncFolder: (path) => systemDisk.syncFolder(path).then(() => void steps.push(`synced ${path}`)),
    removeTree: async (path) => void steps.push(`removed ${path}`),
  };
  const bench = await openBench(disk);
  const stage = await stageOf(start(bench), bench);
  steps.length = 0;
  await start(bench).revoke(stage);
  const { paths } = bench;
  expect(steps.slice(0, 2)).toEqual([`unlinked ${paths.ticket(stage)}`, `synced ${paths.staging}`]);
  expect(steps).toContain(`removed ${stage.folder}`);
});

function start({ disk, paths, root }: Bench): Rounds {
  return new Rounds({ disk, paths, root, folderMode: () => 0o750 });
}

/** Moves the file elsewhere, and puts something else in its place. */
function replaceBy(put: (other: string, file: string) => Promise<void>) {
  return async (file: string) => {
    const other = join(await makeFolder(), "other");
    await copyFile(file, other);
    await rm(file);
    await put(other, file);
  };
}

async function stageOf(rounds: Rounds, { disk }: Bench): Promise<Stage> {
  const stage = await rounds.openStage(T1);
  const file = await disk.create(join(stage.folder, "file"), 0o600);
  await file.write(stage.token);
  await file.sync();
  await file.close();
  await rounds.seal(stage);
  return stage;
}
