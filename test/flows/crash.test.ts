/**
 * I1 whole or nothing, I2 once: the real program is killed with SIGKILL, or the power of its disk is cut, and it is started
 * again. The simulated world does both after every step of its disk; this shows that real systems behave like its own.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { forEachLimit } from "../../src/base/concurrency.ts";
import { peekLedger } from "../../src/ledger/peek.ts";
import { isOnRedis, readTree, withoutTimes } from "../support/daemon.ts";
import type { CrashTask } from "../support/daemon-task.ts";
import { findProgram } from "../support/debian.ts";
import { openDisks } from "../support/disks.ts";
import { type Finished, finish, makeFolder, runCommand, startChild } from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

/** A transfer with a message and small files, and one with a file of many blocks. */
const PLANS = [
  transferPlan({ trackingId: "t1", message: "Hello", expiresInSeconds: 1000 }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 300_000 } }] }),
];
/** About in the order in which they come. */
const STEPS = [
  "folder made",
  "temporary written",
  "named",
  "file fetched",
  "folder read-only",
  "checked",
  "linked",
  "round ended",
  "renamed",
  "content placed",
];
const AT_ONCE = 2;
/** Root could write files that a daemon's own user cannot. */
const USER = process.getuid?.() === 0 ? { user: 65_534 } : {};
const CHECK = ['sha256sum --quiet -c SHA256SUMS && ! [ -e "$0" ]'] as const;

test("a daemon that is killed after any kind of step leads to the same end as one that is not", async () => {
  const simulator = await openTestSimulator({ transfers: PLANS });
  const expected = await live(simulator);
  expect(expected.handedOver).toEqual(["t1", "t2"]);
  await forEachLimit(STEPS, AT_ONCE, async (step) => {
    expect({ step, ...(await live(simulator, step)) }).toEqual({ step, ...expected });
  });
});

test("a mailbox that starts now leaves out what was there, and nothing else, wherever its daemon is killed", async () => {
  for (const crashAt of STEPS.slice(0, 3)) {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const task = await prepare(simulator, { since: "now" });
    expect((await runChild({ ...task, crashAt })).exitCode).toBe(null);
    const [inbox, work] = [join(task.folder, "inbox"), join(task.folder, "inbox/.inlet")];
    const hasStarted = existsSync(join(work, "starts")) && readdirSync(join(work, "starts")).length > 0;
    if (hasStarted) simulator.addTransfer(transferPlan({ trackingId: "later" }));
    await runToItsEnd(task);
    const delivered = hasStarted ? ["later"] : [];
    expect([crashAt, existsSync(join(inbox, MAILBOX)) ? readdirSync(join(inbox, MAILBOX)) : []]).toEqual([
      crashAt,
      delivered,
    ]);
    const ledger = peekLedger({ work, inbox });
    for (const trackingId of ["t1", "t2"]) {
      expect((await ledger.find({ mailbox: MAILBOX, trackingId }))?.reason).toBe("ignored");
    }
  }
});

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: after it nothing is written, not even the journal. */
const UNPLUG =
  'open(my $f, "<", $ARGV[0]) or die $!; my $v = pack("L", 2); ioctl($f, 0x8004587d, $v) or die "ioctl: $!"';
/** Nothing is written without a sync: no timed commits, no flush of a new file when a rename replaces an old one. */
const MOUNT = "mount -o loop,noauto_da_alloc,commit=600 image disk";
/** A command that the daemon has started may end a moment later than the daemon. */
const UNMOUNT = "for try in $(seq 100); do umount disk && exit; sleep 0.1; done; exit 1";

/** Needs root, and a loop device: `modprobe loop`, or give the container /dev/loop-control. */
test("so does one whose ext4 loses everything that was not synced", { tags: ["system"] }, async () => {
  const { url, clientId } = await openTestSimulator({ transfers: PLANS });
  const perl = await findProgram("perl", ["perl-base"]);
  const disks = await openDisks(`mount -t tmpfs -o size=100M tmpfs "$0" && cd "$0" && mkdir disk`);
  onTestFinished(() => expect.poll(() => loopDevicesOn(disks.folder)).toEqual([]));
  await disks.run("truncate -s 24M blank && mkfs.ext4 -q -F -b 4096 blank");
  const task = { url, clientId, fetch: "files", folder: join(disks.folder, "disk"), check: CHECK } as const;
  const inbox = disks.at("disk/inbox");
  const treeNow = async () => withoutTimes(await readTree(inbox));
  const cutPower = async (crashAt?: string) => {
    await disks.run(`cp blank image && ${MOUNT}`);
    const unplug = [perl.path, "-e", UNPLUG, task.folder];
    const first = await disks.runChild({ ...task, ...(crashAt === undefined ? {} : { crashAt, unplug }) });
    expect([crashAt, first.exitCode, first.stderr]).toEqual([crashAt, crashAt === undefined ? 0 : null, ""]);
    await disks.run(UNMOUNT);
    await disks.run(MOUNT);
    const found = { tree: await treeNow(), folders: deliveredIn(inbox) };
    expect(await disks.runChild(task)).toMatchObject({ exitCode: 0, stderr: "" });
    const end = { tree: await treeNow(), folders: deliveredIn(inbox) };
    await disks.run(UNMOUNT);
    return { found, end };
  };
  const { tree } = (await cutPower()).end;
  for (const step of STEPS) {
    const { found, end } = await cutPower(step);
    // What was there is whole, and stays: another inode would be a second delivery.
    expect({ step, tree: { ...tree, ...found.tree } }).toEqual({ step, tree });
    expect({ step, ...end.folders }).toMatchObject({ step, ...found.folders });
    expect({ step, tree: end.tree }).toEqual({ step, tree });
    if (step === "content placed") expect(Object.keys(found.folders)).toHaveLength(1);
  }
});

/** Its exit code is null if it was killed at its step. */
function runChild(task: CrashTask): Promise<Finished> {
  return finish(startChild({ once: task }));
}

/** Runs a daemon that is killed after this step, and once more to its end. */
async function live(simulator: Simulator, crashAt?: string) {
  const task = await prepare(simulator);
  const note = join(task.folder, "note");
  const command = ["sh", "-c", 'echo "$INLET_ID $INLET_TRACKING_ID" >> "$0"', note] as const;
  const whole = { ...task, fileMode: 0o440, check: CHECK, handoff: { command } };
  if (crashAt !== undefined) {
    expect([crashAt, (await runChild({ ...whole, crashAt })).exitCode]).toEqual([crashAt, null]);
  }
  await runToItsEnd(whole);
  const inbox = join(task.folder, "inbox");
  const calls = new Set(readFileSync(note, "utf8").trim().split("\n"));
  return {
    tree: withoutTimes(await readTree(inbox)),
    // Repeated calls have the same id.
    handedOver: [...calls].map((line) => line.split(" ")[1]).toSorted(),
    left: ["staging", "names", "notes"].flatMap((name) => readdirSync(join(inbox, ".inlet", name))),
  };
}

async function prepare({ url, clientId }: Simulator, more: Partial<CrashTask> = {}) {
  const folder = await makeFolder();
  if ("user" in USER) await runCommand("chown", [`${USER.user}:${USER.user}`, folder]);
  const redis = isOnRedis ? (await startRedis()).url : undefined;
  return { url, clientId, folder, redis, fetch: "files", ...USER, ...more } as const;
}

async function runToItsEnd(task: CrashTask): Promise<void> {
  expect(await runChild(task)).toMatchObject({ exitCode: 0, stderr: "" });
}

/** The inode of each delivered folder. */
function deliveredIn(inbox: string): Record<string, number> {
  const folder = join(inbox, MAILBOX);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return Object.fromEntries(names.map((name) => [name, statSync(join(folder, name)).ino]));
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
