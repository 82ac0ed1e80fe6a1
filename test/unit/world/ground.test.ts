/** What worlds stand on: the simulated disk, watches and clocks behave as real ones do. */
import { constants } from "node:fs";
import { expect, test } from "vitest";
import { lchown, link, openFile, readFile, rename, stat, writeFile } from "../../../src/base/files.ts";
import type { FolderWatchOptions } from "../../../src/base/system-watch.ts";
import { SimulatedDisk } from "../../world/ground/disk.ts";
import { type Ground, Process, START_MS } from "../../world/ground/process.ts";
import { Random } from "../../world/ground/random.ts";
import { Schedule } from "../../world/ground/schedule.ts";
import type { WatchMood } from "../../world/ground/watches.ts";

const MINUTE_MS = 60_000;

function makeGround(): Ground {
  const schedule = new Schedule(START_MS);
  const disk = new SimulatedDisk(() => schedule.nowMs);
  for (const folder of ["/data/inbox", "/state"]) disk.prepare(folder, 0o755, 0);
  const unused = () => Promise.reject(new Error("no program and no request runs here"));
  return {
    ...{ schedule, disk, random: new Random(1), areLocksBroken: false },
    ...{ locks: new Map(), watches: new Set(), disturb: () => 0, runProgram: unused, post: unused },
  };
}

/** Runs work as a process until it ends, or for an hour. */
async function runAs<Result>({ schedule }: Ground, process: Process, work: () => Promise<Result>) {
  let result: Result | "failed" | "open" = "open";
  process.run(work).then(
    (value) => (result = value),
    (error: NodeJS.ErrnoException) => (result = (error.code ?? String(error)) as "failed"),
  );
  await schedule.run(schedule.nowMs + 60 * MINUTE_MS, () => result !== "open");
  return result as Result | string;
}

function put(disk: SimulatedDisk, path: string, text = "text"): void {
  const open = disk.open(path, "w", 0o644, 0);
  open.write(text);
  open.close();
}

interface Watched extends Ground {
  readonly process: Process;
  readonly told: string[];
}

async function watch(mood: WatchMood, options: FolderWatchOptions): Promise<Watched> {
  const ground = makeGround();
  ground.watchMood = mood;
  put(ground.disk, "/data/inbox/old");
  const process = new Process("watcher", ground);
  const told: string[] = [];
  await runAs(ground, process, async () => {
    const watching = await process.watchFolder("/data/inbox", options, {
      changed: (path, event) => told.push(`${event} ${path.slice("/data/inbox/".length)}`),
      unwatchable: ({ code }) => told.push(code),
    });
    await watching.ready;
  });
  return { ...ground, process, told };
}

const act = (disk: SimulatedDisk) => {
  put(disk, "/data/inbox/old", "changed");
  put(disk, "/data/inbox/new");
  disk.makeFolder("/data/inbox/folder", 0o755, 0);
};

test.each<[WatchMood, FolderWatchOptions, string[]]>([
  ["prompt", { ignoreInitial: true }, ["add new", "change old", "other folder"]],
  ["late", { ignoreInitial: true }, ["add new", "change old", "other folder"]],
  ["prompt", { ignoreInitial: false }, ["add new", "add old", "change old", "other folder"]],
  ["never", { ignoreInitial: false }, []],
  [
    "twice",
    { ignoreInitial: true },
    ["add new", "add new", "change old", "change old", "other folder", "other folder"],
  ],
  ["blind", { ignoreInitial: true }, ["WATCH_REFUSED", "add new", "add old", "change old", "other folder"]],
])("changes are told when watches are %s, with %o", async (mood, options, expected) => {
  const { schedule, disk, told } = await watch(mood, options);
  await schedule.run(schedule.nowMs + MINUTE_MS);
  act(disk);
  await schedule.run(schedule.nowMs + 5 * MINUTE_MS);
  expect(told.toSorted()).toEqual(expected);
});

test("a watch reaches as far as its depth, and ends with its process", async () => {
  const { schedule, disk, told, process } = await watch("prompt", { ignoreInitial: true, depth: 1 });
  disk.makeFolder("/data/inbox/folder", 0o755, 0);
  put(disk, "/data/inbox/folder/first");
  await schedule.run(schedule.nowMs + MINUTE_MS);
  put(disk, "/data/inbox/folder/second");
  disk.makeFolder("/data/inbox/folder/deep", 0o755, 0);
  put(disk, "/data/inbox/folder/deep/third");
  disk.unlink("/data/inbox/folder/first");
  await schedule.run(schedule.nowMs + MINUTE_MS);
  expect(told.toSorted()).toEqual([
    "add folder/first",
    "add folder/second",
    "other folder",
    "other folder/deep",
    "other folder/first",
  ]);
  process.kill();
  put(disk, "/data/inbox/later");
  await schedule.run(schedule.nowMs + MINUTE_MS);
  expect(told).toHaveLength(5);
  expect(disk.folder("/data/inbox").listeners).toBeUndefined();
});

test("a file is not renamed or linked to another device", async () => {
  const ground = makeGround();
  const process = new Process("any", ground);
  put(ground.disk, "/data/inbox/file");
  const deviceOf = (path: string) => runAs(ground, process, async () => (await stat(path)).dev);
  expect(await deviceOf("/data/inbox/file")).toBe(await deviceOf("/data"));
  expect(await deviceOf("/state")).not.toBe(await deviceOf("/data"));
  for (const change of [rename, link]) {
    expect(await runAs(ground, process, () => change("/data/inbox/file", "/state/file"))).toBe("EXDEV");
  }
  ground.disk.moveTree("/data/inbox", "/state/inbox");
  expect(await deviceOf("/state/inbox/file")).toBe(await deviceOf("/state"));
  expect(ground.disk.tryGet("/data/inbox")).toBeUndefined();
});

test("a restored folder is what it was, with new numbers, and survives a power cut", async () => {
  const { disk, schedule } = makeGround();
  put(disk, "/data/inbox/file", "before");
  disk.link("/data/inbox/file", "/data/inbox/second");
  const { ino, modified } = disk.get("/data/inbox/file");
  const snapshot = disk.snapshot("/data");
  const modifiedMs = schedule.nowMs;
  await schedule.run(schedule.nowMs + MINUTE_MS);
  put(disk, "/data/inbox/file", "after");
  put(disk, "/data/inbox/more");
  disk.restore("/data", snapshot);
  disk.powerCut(new Random(3));
  const after = disk.get("/data/inbox/file");
  expect(disk.text("/data/inbox/file")).toBe("before");
  expect(disk.get("/data/inbox/second")).toBe(after);
  expect(disk.names("/data/inbox")).toEqual(["file", "second"]);
  expect(after.ino).not.toBe(ino);
  expect([after.modifiedMs, after.modified]).toEqual([modifiedMs, modified]);
});

test("a tree is copied without some names, and its bytes are counted", () => {
  const { disk } = makeGround();
  put(disk, "/data/inbox/file", "12345");
  put(disk, "/data/inbox/left", "1");
  disk.copyTree("/data/inbox", "/data/copy", { without: (name) => name === "left" });
  expect(disk.names("/data/copy")).toEqual(["file"]);
  expect([disk.usedBytes("/data/inbox"), disk.usedBytes("/data/copy"), disk.usedBytes("/none")]).toEqual([
    6, 5, 0,
  ]);
  disk.makeSparse("/data/copy/huge", 2 ** 40, 0);
  expect(disk.usedBytes("/data/copy")).toBe(5);
});

test("a pipe is waited for, and a huge file is not read as a whole", async () => {
  const ground = makeGround();
  const { disk } = ground;
  const process = new Process("any", ground);
  const large: unknown[] = [];
  disk.onLargeRead = (...read) => large.push(read);
  disk.makePipe("/data/inbox/pipe", 0);
  disk.makeSparse("/data/inbox/huge", 500 * 2 ** 20, 0);
  expect(await runAs(ground, process, () => readFile("/data/inbox/pipe", "utf8"))).toBe("open");
  expect(await runAs(ground, process, () => openFile("/data/inbox/pipe", "r"))).toBe("open");
  const isFile = async () => {
    const file = await openFile("/data/inbox/pipe", constants.O_RDONLY | constants.O_NONBLOCK);
    return (await file.stat()).isFile();
  };
  expect(await runAs(ground, process, isFile)).toBe(false);
  expect(await runAs(ground, process, () => readFile("/data/inbox/huge", "utf8"))).toBe("EIO");
  expect(large).toEqual([["/data/inbox/huge", 500 * 2 ** 20]]);
  const readEnd = async () => {
    const file = await openFile("/data/inbox/huge", "r");
    return file.read(Buffer.alloc(64), 500 * 2 ** 20 - 10);
  };
  expect(await runAs(ground, process, readEnd)).toBe(10);
});

test("clocks may be wrong, and time since the start of the machine is not", () => {
  const ground = makeGround();
  const [first, second] = [new Process("first", ground), new Process("second", ground)];
  ground.wallOffsetMs = 5_000;
  second.wallOffsetMs = -1_000;
  ground.bootedMs = START_MS - 7_000;
  expect([first.now(), second.now(), first.uptimeMs()]).toEqual([START_MS + 5_000, START_MS - 1_000, 7_000]);
});

test("an owner is changed, and new entries get the group of a folder that says so", async () => {
  const ground = makeGround();
  const { disk } = ground;
  const process = new Process("any", ground);
  disk.setMode(disk.get("/data/inbox"), 0o2750);
  await runAs(ground, process, () => lchown("/data/inbox", -1, 50));
  await runAs(ground, process, () => writeFile("/data/inbox/file", "text"));
  await runAs(ground, process, () => lchown("/data/inbox/file", 7, -1));
  expect(disk.get("/data/inbox/file")).toMatchObject({ uid: 7, gid: 50 });
});

test("disks that begin with one image do not change each other", () => {
  const { disk } = makeGround();
  put(disk, "/state/file", "first");
  const image = disk.image();
  const [one, other] = [new SimulatedDisk(() => START_MS), new SimulatedDisk(() => START_MS)];
  for (const each of [one, other]) each.loadImage(image);
  put(one, "/state/file", "second");
  one.makeFolder("/state/folder", 0o700, 0);
  other.powerCut(new Random(1));
  expect([other.text("/state/file"), other.names("/state")]).toEqual(["first", ["file"]]);
  expect(other.get("/state/file").ino).toBe(disk.get("/state/file").ino);
});
