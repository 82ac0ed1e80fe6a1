// @module-tag system
/**
 * I1 whole or nothing, I2 once: the power is cut at every durable step of the daemon, on a real file system.
 *
 * The disk is ext4 on a loop device that is shut down without a flush: unsynced data is lost. Then it is mounted again,
 * which replays its journal, and the daemon is started again.
 */
import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { CrashTask } from "../support/daemon-task.ts";
import { findProgram } from "../support/debian.ts";
import { openDisks } from "../support/disks.ts";
import { AT_ONCE, type CrashReport, PLANS } from "../support/disturbed.ts";
import { readRecords } from "../support/ledger.ts";
import { openTestSimulator } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import { oneIn } from "../support/thorough.ts";
import { listNames, readTree, withoutTimes } from "../support/tree.ts";

/** There are some 40. */
const MIN_STEPS = 35;
/** After these steps all names are durable. */
const PROMISES = ["round ended", "content placed"];

/** Of a sample of all steps: it is chance which of them have something to lose. */
let lossy = 0;

describe("I1 whole or nothing, I2 once: a power cut at any step leads to the same end as an undisturbed run", () => {
  test.each([
    ["by single files", "files", 3, {}],
    ["by ZIP", "zip", 5, {}],
    ["after a check", "files", 3, { check: ["sha256sum --quiet -c SHA256SUMS"] }],
    ["in folders that do not exist yet", "files", 5, { isNew: true }],
  ] as const)(
    "%s",
    async (name, fetch, interval, more) => {
      const { url, clientId } = await openTestSimulator({ transfers: PLANS });
      const cutPower = await openPowerSwitch({ url, clientId, fetch, isNew: false, ...more });
      const every = oneIn(interval);
      const lanes = Array.from({ length: AT_ONCE }, (_, lane) =>
        cutPower((lane + 1) * every, AT_ONCE * every),
      );
      const [cuts, undisturbed] = divide((await Promise.all(lanes)).flat());
      expect(cuts.length * every).toBeGreaterThan(MIN_STEPS);
      expect(cuts.flatMap((aftermath) => findProblems(aftermath, undisturbed.end))).toEqual([]);
      const losses = cuts.filter(({ report, found }) => lostNames(report.names, found).length > 0);
      lossy += losses.length;
      process.stdout.write(`power cuts, ${name}: ${cuts.length}, of which ${losses.length} lost something\n`);
    },
    600_000,
  );

  test("some of these cuts have lost something: otherwise they would prove nothing", () => {
    expect(lossy).toBeGreaterThan(0);
  });
});

type Cut = Required<Aftermath>;

function divide(aftermaths: readonly Aftermath[]): [Cut[], Aftermath] {
  const undisturbed = aftermaths.find(({ report }) => report === undefined);
  if (undisturbed === undefined) throw new Error("no daemon ended without a cut");
  return [aftermaths.filter((aftermath): aftermath is Cut => aftermath.report !== undefined), undisturbed];
}

/** All problems after one cut, each with the violated invariant. */
function findProblems({ cut, report, found, end }: Cut, undisturbed: DiskState): string[] {
  const { deliveries } = found;
  const ledger = Object.entries(found.ledger);
  const partial = Object.keys(deliveries).filter(
    (folder) =>
      !isDeepStrictEqual(
        describeContent(found, `inbox/${folder}/`),
        describeContent(undisturbed, `inbox/${folder}/`),
      ),
  );
  // The ticket of another transfer, which is being written, promises nothing.
  const lost = lostNames(report.names, found).filter((name) => !name.includes(".ticket "));
  const promised = PROMISES.includes(report.step) ? lost : [];
  const isStaged = (id: string) => found.names.some((name) => name.includes(`/staging/${id}.`));
  const empty = ledger.filter(
    ([id, it]) => it.state === "delivered" && !(`${it.folder}` in deliveries) && !isStaged(id),
  );
  // Notes are not synced: only an end is durable.
  const takenBack = Object.entries(report.reported).filter(
    ([id, state]) => state === "delivered" && found.ledger[id]?.state !== "delivered",
  );
  const again = Object.entries(deliveries).filter(([folder, inode]) => end.deliveries[folder] !== inode);
  const [expected, actual] = [describeEnd(undisturbed), describeEnd(end)];
  return [
    ...partial.map((folder) => `I1 whole or nothing: ${folder} is not whole`),
    ...promised.map((name) => `I1 whole or nothing: ${name} was on the disk, and is lost`),
    ...empty.map(
      ([id]) => `I2 once: the record of ${id} says delivered, and there is neither folder nor stage`,
    ),
    ...takenBack.map(([id, state]) => `I2 once: ${id} was reported as ${state}, and its record was lost`),
    ...again.map(([folder]) => `I2 once: ${folder} was there, and was delivered again`),
    ...expected
      .filter((line) => !actual.includes(line))
      .map((line) => `at the end, this is missing: ${line}`),
    ...actual
      .filter((line) => !expected.includes(line))
      .map((line) => `at the end, this is too much: ${line}`),
  ].map((problem) => `cut ${cut}, ${report.step}: ${problem}`);
}

function lostNames(before: readonly string[], { names }: DiskState): string[] {
  return before.filter((name) => !names.includes(name));
}

/** Names, modes, sizes and digests. */
function describeContent({ names, digests }: DiskState, folder = ""): string[] {
  const files = Object.entries(digests).map(([path, digest]) => `inbox/${path} ${digest}`);
  return [...names, ...files].filter((line) => line.startsWith(folder));
}

function describeEnd(state: DiskState): string[] {
  const ledger = Object.entries(state.ledger).map(
    ([id, { state, folder }]) => `record of ${id}: ${state} ${folder}`,
  );
  return [...describeContent(state), ...ledger, ...state.leftOver];
}

interface Aftermath {
  readonly cut: number;
  /** Missing if the daemon ended before the cut. */
  readonly report?: CrashReport;
  /** When the power is back, before anything runs. */
  readonly found: DiskState;
  /** After another run of the daemon. */
  readonly end: DiskState;
}

interface DiskState {
  readonly names: readonly string[];
  /** The inode of each delivered folder: a different one would be a second delivery. */
  readonly deliveries: Readonly<Record<string, number>>;
  /** A digest of every delivered file without its times, by path in the inbox. */
  readonly digests: Readonly<Record<string, string>>;
  /** By tracking-id. */
  readonly ledger: Readonly<Record<string, { readonly state: string; readonly folder: string | undefined }>>;
  /** In the work folder: notes, stages and temporary files. */
  readonly leftOver: readonly string[];
}

/** `isNew`: the daemon also creates its folders. */
type PowerTask = Omit<CrashTask, "folder"> & { readonly isNew: boolean };

/** Nothing is written without a sync: no timed commits, no flush of a new file when a rename replaces an old one. */
const OPTIONS = "loop,noauto_da_alloc,commit=600";
/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: after it nothing is written, not even the journal. */
const UNPLUG =
  'open(my $f, "<", $ARGV[0]) or die $!; my $v = pack("L", 2); ioctl($f, 0x8004587d, $v) or die "ioctl: $!"';
/** A command that the daemon has started may end a moment later than the daemon. */
const UNMOUNT = "for try in $(seq 100); do umount disk && exit; sleep 0.1; done; exit 1";

/**
 * Cuts the power at steps of a daemon, each time on a new disk, until a daemon ends before its step. Needs root, and a loop
 * device: `modprobe loop`, or give the container /dev/loop-control. The images may be in memory: only writes to the loop
 * devices count.
 */
async function openPowerSwitch({
  isNew,
  ...service
}: PowerTask): Promise<(first: number, every: number) => Promise<Aftermath[]>> {
  const perl = await findProgram("perl", ["perl-base"]);
  return async (first, every) => {
    const disks = await openDisks(`mount -t tmpfs -o size=100M tmpfs "$0" && cd "$0" && mkdir disk`);
    onTestFinished(() => expect.poll(() => loopDevicesOn(disks.folder)).toEqual([]));
    const task = { ...service, folder: join(disks.folder, "disk") };
    const mount = (image: string) => disks.run(`mount -o ${OPTIONS} ${image} disk`);
    const finish = async () => expect(await disks.runChild(task)).toMatchObject({ exitCode: 0, stderr: "" });
    await disks.run("truncate -s 24M blank && mkfs.ext4 -q -F -b 4096 blank");
    if (!isNew) {
      await mount("blank");
      await disks.runChild({ ...task, paused: true });
      await disks.run(UNMOUNT);
    }
    const cutPower = async (cut: number): Promise<Aftermath> => {
      await disks.run("cp blank image");
      await mount("image");
      const unplug = [perl.path, "-e", UNPLUG, task.folder];
      const { exitCode, stdout, stderr } = await disks.runChild({ ...task, crashAt: cut, unplug });
      expect([cut, stderr]).toEqual([cut, ""]);
      await disks.run(UNMOUNT);
      await mount("image");
      const found = await readDisk(disks.at("disk"));
      await finish();
      const end = await readDisk(disks.at("disk"));
      await disks.run(UNMOUNT);
      return { cut, ...(exitCode === null ? { report: JSON.parse(stdout) } : {}), found, end };
    };
    const aftermaths: Aftermath[] = [];
    do aftermaths.push(await cutPower(first + aftermaths.length * every));
    while (aftermaths.at(-1)?.report !== undefined);
    return aftermaths;
  };
}

/** A damaged record fails the whole test. */
async function readDisk(disk: string): Promise<DiskState> {
  const [inbox, work] = [join(disk, "inbox"), join(disk, "inbox/.inlet")];
  const tree = Object.entries(withoutTimes(await readTree(inbox)));
  const listIn = (folder: string, recursive: boolean) =>
    existsSync(folder) ? readdirSync(folder, { recursive, encoding: "utf8" }) : [];
  const delivered = listIn(join(inbox, MAILBOX), false).map((name) => join(MAILBOX, name));
  return {
    names: listNames(disk),
    deliveries: Object.fromEntries(delivered.map((path) => [path, statSync(join(inbox, path)).ino])),
    digests: Object.fromEntries(tree.map(([path, text]) => [path, hash("sha256", text)])),
    ledger: Object.fromEntries(
      readRecords(work).map(({ trackingId, state, folder }) => [trackingId, { state, folder }]),
    ),
    leftOver: listIn(work, true).filter((path) => /\.part$|^(notes|staging)\/./.test(path)),
  };
}

/** Loop devices backed by a file in the folder. */
function loopDevicesOn(folder: string): string[] {
  return readdirSync("/sys/block").filter((device) => {
    try {
      return readFileSync(join("/sys/block", device, "loop/backing_file"), "utf8").startsWith(`${folder}/`);
    } catch {
      return false; // It is no loop device, or a free one.
    }
  });
}
