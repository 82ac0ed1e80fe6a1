/** The state of a channel on a disk that is full, damaged, or shared with other processes. */
import { expect, onTestFinished, test, vi } from "vitest";
import { SharedState } from "../../../src/notify/shared-state.ts";
import { ChannelState } from "../../../src/notify/state.ts";
import { StateFiles } from "../../../src/notify/state-files.ts";
import { ModelDisk } from "../../support/model-disk.ts";
import { GatedDisk } from "../../support/schedules.ts";

const FOLDER = "/notify";
const SENT = { lastSentMs: 1, lastUrgentMs: 0 };

/** Can be full for one process. */
class LimitedDisk extends GatedDisk {
  isFull = false;

  constructor(disk: ModelDisk) {
    super(disk, (_, step) => step());
  }

  override create(path: string, mode: number) {
    return this.isFull ? Promise.reject(new Error("ENOSPC")) : super.create(path, mode);
  }
}

test("a message that is sent while the disk is full is saved later, and takes nothing of another process with it", async () => {
  const disk = await makeDisk();
  const [one, other] = [open(disk), open(disk)];
  begin(one, "sent");
  await one.shared.save();
  one.disk.isFull = true;
  const batch = await claim(one);
  begin(other, "pending");
  await other.shared.save();
  one.shared.change((state) => state.succeeded(one.shared.token, batch, SENT));
  await one.shared.save();
  one.disk.isFull = false;
  await one.shared.save();
  expect(keysIn(await restarted(disk))).toEqual(["pending"]);
});

test("an embedded daemon saves everything once the disk has room", async () => {
  const disk = await makeDisk();
  const one = open(disk, false);
  one.disk.isFull = true;
  begin(one, "sent");
  const batch = await claim(one);
  one.shared.change((state) => state.succeeded(one.shared.token, batch, SENT));
  begin(one, "pending");
  await one.shared.save();
  one.disk.isFull = false;
  begin(one, "more");
  await one.shared.save();
  const later = await restarted(disk);
  begin(later, "sent");
  expect(keysIn(later)).toEqual(["pending", "more"]);
});

test("a message of a process that was killed is sent by another one, after its lease", async () => {
  const disk = await makeDisk();
  const [killed, other] = [open(disk), open(disk)];
  begin(killed, "k");
  await claim(killed);
  const refresh = (nowMs: number) =>
    other.shared.run((state) => state.refresh({ by: other.shared.token, nowMs, leaseMs: 1_000 }));
  await refresh(999);
  expect(keysIn(other)).toEqual([]);
  await refresh(1_000);
  expect(keysIn(other)).toEqual(["k"]);
});

test("a torn state falls back to the one before, and a damaged one to none", async () => {
  const disk = await makeDisk();
  const one = open(disk);
  begin(one, "k");
  await one.shared.save();
  await write(disk, "memory-2.json", "{");
  const later = await restarted(disk);
  expect(keysIn(later)).toEqual(["k"]);
  begin(later, "next");
  await later.shared.save();
  expect(disk.namesIn(FOLDER)).toEqual(["memory-3.json"]);
  await write(disk, "memory-4.json", "{}");
  await disk.unlink(`${FOLDER}/memory-3.json`);
  expect(keysIn(await restarted(disk))).toEqual([]);
});

interface Opened {
  readonly disk: LimitedDisk;
  readonly shared: SharedState;
}

function open(model: ModelDisk, isShared = true): Opened {
  const disk = new LimitedDisk(model);
  const files = new StateFiles(FOLDER, disk);
  const makeState = (snapshot?: ReturnType<ChannelState["snapshot"]>) => new ChannelState(0, snapshot);
  return {
    disk,
    shared: new SharedState({ files, isShared, saveAfterMs: 1, makeState, onChanged: () => {} }),
  };
}

async function restarted(disk: ModelDisk): Promise<Opened> {
  const opened = open(disk);
  await opened.shared.save();
  return opened;
}

function begin({ shared }: Opened, key: string): void {
  shared.change(({ pending }) => pending.begin({ kind: "password", key, atMs: 0 }));
}

async function claim({ shared }: Opened) {
  const claimant = { by: shared.token, nowMs: 0, leaseMs: 1_000 };
  const batch = await shared.run((state) =>
    state.claim(claimant, ({ pending }) => pending.select(0, () => true)),
  );
  if (typeof batch !== "object") throw new Error("not claimed");
  return batch;
}

function keysIn({ shared }: Opened): string[] {
  return [...shared.state.pending.details()].map(({ key }) => key);
}

async function makeDisk(): Promise<ModelDisk> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const disk = new ModelDisk();
  await disk.makeFolder(FOLDER, 0o700);
  return disk;
}

async function write(disk: ModelDisk, name: string, text: string): Promise<void> {
  const file = await disk.create(`${FOLDER}/${name}`, 0o600);
  await file.write(text);
}
