// @module-tag system
/**
 * I6 no contagion, I7 nothing silent: a lost or full disk is one trouble that names its cause. Nothing is written in its
 * place, and work continues by itself when the disk is back, or has room.
 */
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { type Disks, FULL, LOSSES, openDisks, openUsualDisks, UNMOUNTED } from "../support/disks.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import type { WatchedDaemon } from "../support/watched-daemon.ts";

/** `perl` makes ext4 answer EIO to everything. */
const SHUTDOWN = `perl -e 'open(my $f, "<", "inbox") or die $!; my $v = pack("L", 1); ioctl($f, 0x8004587d, $v) or die $!'`;

describe("I7 nothing silent: a lost or full disk", () => {
  test.each([...LOSSES, ...FULL].filter(({ restarted }) => restarted !== undefined))(
    "$because, and the daemon is restarted: it waits, writes nothing, and continues",
    async (it) => {
      const { simulator, disks } = await setUp();
      const first = disks.startDaemon(simulator);
      await expect.poll(() => disks.delivered()).toEqual(["t1"]);
      await disks.expectRest();
      await first.stop();
      await disks.run(it.does);
      const before = disks.tree(it.untouched);
      simulator.addTransfer(plan("t2"));
      const second = disks.startDaemon(simulator);
      await expectTrouble(second, it.restarted ?? "");
      await someTries();
      expect(disks.tree(it.untouched)).toEqual(before);
      await disks.run(it.undoes);
      await expect.poll(() => disks.delivered()).toEqual(["t1", "t2"]);
      await second.expectFine();
      await second.stop();
      expect(second.logged("delivered")).toEqual(["t2"]);
    },
  );

  test.each([UNMOUNTED, ...FULL.slice(0, 1)])(
    "$because during a download: it is delivered once",
    async (it) => {
      const { simulator, disks } = await setUp([]);
      simulator.addFault({ on: "file", does: { kind: "stall", afterBytes: 400_000, seconds: 2 } });
      const daemon = disks.startDaemon(simulator);
      await daemon.expectFine();
      simulator.addTransfer(plan("t1", 1_000_000));
      await expect.poll(() => disks.tree("store/inbox").some((path) => path.endsWith("data.bin"))).toBe(true);
      await disks.run(it.does);
      await expectTrouble(daemon, it.code);
      const { info } = simulator.totals();
      await someTries();
      expect(disks.delivered("inbox")).toEqual([]);
      expect(simulator.totals().info).toBeLessThanOrEqual(info + 1);
      await disks.run(it.undoes);
      await expect.poll(() => disks.delivered()).toEqual(["t1"]);
      await daemon.expectFine();
      await daemon.stop();
      expect(daemon.alarms()).toEqual(["a disk cannot be used: work that needs it pauses"]);
    },
  );

  test("I6 no contagion: a transfer that does not fit waits, while a smaller one is delivered", async () => {
    const { simulator, disks } = await setUp([plan("large", 50_000_000), plan("t1")]);
    const daemon = disks.startDaemon(simulator);
    await expect.poll(() => disks.delivered()).toEqual(["t1"]);
    await expect.poll(() => daemon.health()).toMatchObject({ reports: [{ code: "DISK_FULL" }] });
    const { info } = simulator.totals();
    await someTries();
    expect(simulator.totals().info).toBe(info);
    await daemon.stop();
  });

  test("the disk answers EIO to everything: it can be unmounted, and continues when it is mounted again", async () => {
    const simulator = await openTestSimulator({ transfers: [plan("t1")] });
    const image = "truncate -s 16M image && mkfs.ext4 -q image && mount -o loop image inbox";
    const disks = await openDisks(`mkdir inbox && ${image}`);
    const daemon = disks.startDaemon(simulator);
    await expect.poll(() => disks.delivered("inbox")).toEqual(["t1"]);
    await disks.expectRest("inbox");
    await disks.run(SHUTDOWN);
    await expectTrouble(daemon, "DISK_(REFUSED|UNREADABLE|READ_ONLY)");
    simulator.addTransfer(plan("t2"));
    await someTries();
    // Not lazily: the daemon holds no file open there.
    await expect.poll(() => disks.tryRun("umount inbox")).toBe(true);
    await expectTrouble(daemon, "DISK_UNMOUNTED");
    await someTries();
    expect(disks.tree("inbox")).toEqual([]);
    await disks.run("mount -o loop image inbox");
    await expect.poll(() => disks.delivered("inbox")).toEqual(["t1", "t2"]);
    await daemon.expectFine();
    await daemon.stop();
    expect(daemon.logged("delivered")).toEqual(["t1", "t2"]);
  });
});

function plan(trackingId: string, bytes = 1_000) {
  return transferPlan({ trackingId, files: [{ name: "data.bin", generate: { bytes } }] });
}

/** Long enough for several attempts of a daemon with short waits to write something. */
async function someTries(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 600));
}

async function setUp(transfers = [plan("t1")]): Promise<{ simulator: Simulator; disks: Disks }> {
  return { simulator: await openTestSimulator({ transfers }), disks: await openUsualDisks() };
}

async function expectTrouble({ health }: WatchedDaemon, code: string): Promise<void> {
  const reports = [{ what: "disk", code: expect.stringMatching(new RegExp(`^${code}$`)) }];
  await expect.poll(health).toMatchObject({ reports, ready: false, metrics: ["disk"] });
}
