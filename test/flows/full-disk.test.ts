// @module-tag system
/** I6 no contagion: a full disk, of bytes or of inodes, pauses intake with one message, and loses nothing. */
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFailed, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { openDisks } from "../support/disks.ts";
import { observeInbox } from "../support/inbox-observer.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import type { WatchedDaemon } from "../support/watched-daemon.ts";

const SMALL_DISK = "size=6M,nr_inodes=120";
const PLANS = ["t1", "t2", "t3"].map((trackingId) =>
  transferPlan({ trackingId, files: [{ name: "data.bin", generate: { bytes: 1_000_000 } }] }),
);
const PAUSED = "a disk cannot be used: work that needs it pauses";

describe.each(["bytes", "inodes"] as const)("I6 no contagion: a disk without %s", (kind) => {
  test("before the first start: it waits, reports it once, and starts when there is space", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const disk = await openSmallDisk();
    disk.fill(kind);
    const daemon = disk.startDaemon(simulator);
    await expect.poll(() => daemon.alarms()).toHaveLength(1);
    await someTries();
    disk.free();
    await expect.poll(() => disk.delivered()).toEqual(["t1", "t2", "t3"]);
    await disk.stopAfterOneAlarm(daemon);
  });

  test("during a download: it resumes when there is space", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS.slice(0, 1) });
    simulator.addFault({ on: "file", does: { kind: "stall", afterBytes: 400_000, seconds: 1 } });
    const disk = await openSmallDisk();
    const daemon = disk.startDaemon(simulator);
    await expect.poll(() => disk.stagedBytes()).toBeGreaterThan(100_000);
    disk.fill(kind);
    await expect.poll(() => daemon.alarms()).toHaveLength(1);
    if (kind === "bytes") await expect.poll(() => daemon.logged("waiting")).toContain("t1");
    const { info } = simulator.totals();
    await someTries();
    // No requests while there is no space.
    if (kind === "bytes") expect(simulator.totals().info).toBeLessThanOrEqual(info + 1);
    expect(disk.delivered()).toEqual([]);
    disk.free();
    await expect.poll(() => disk.delivered()).toEqual(["t1"]);
    await disk.stopAfterOneAlarm(daemon);
    if (kind === "bytes") expect(simulator.requests().some(({ status }) => status === 206)).toBe(true);
  });
});

test("a transfer that does not fit waits, while a smaller one is delivered", async () => {
  const files = [{ name: "x", generate: { bytes: 50_000_000 } }];
  const large = transferPlan({ trackingId: "large", files, expiresInSeconds: 2 * 24 * 3600 });
  const simulator = await openTestSimulator({ transfers: [large, ...PLANS.slice(0, 2)] });
  const disk = await openSmallDisk();
  const daemon = disk.startDaemon(simulator);
  await expect.poll(() => disk.delivered()).toEqual(["t1", "t2"]);
  await expect.poll(() => daemon.health()).toMatchObject({ reports: [{ code: "DISK_FULL" }] });
  const { info } = simulator.totals();
  await someTries();
  expect(simulator.totals().info).toBe(info);
  await daemon.stop();
});

/** Long enough for several retries of a daemon with short waits. */
async function someTries(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 600));
}

/** Folders on a small file system. */
async function openSmallDisk() {
  const disks = await openDisks(`mount -t tmpfs -o ${SMALL_DISK} tmpfs "$0" && cd "$0"`);
  const [inbox, ballast] = [disks.at("inbox"), disks.at("ballast")];
  const observer = observeInbox(inbox, 1);
  return {
    fill(kind: "bytes" | "inodes"): void {
      mkdirSync(ballast);
      for (let number = 0; ; number++) {
        try {
          if (kind === "bytes") appendFileSync(join(ballast, "bytes"), Buffer.alloc(4096));
          else appendFileSync(join(ballast, String(number)), "");
        } catch {
          return;
        }
      }
    },
    free: () => rmSync(ballast, { recursive: true }),
    delivered(): string[] {
      const names = disks.delivered("inbox");
      const folder = join(inbox, MAILBOX, "anna@supplier.example");
      for (const name of names) expect(readFileSync(join(folder, name, "data.bin"))).toHaveLength(1_000_000);
      return names;
    },
    stagedBytes(): number {
      try {
        const parts = disks.tree("inbox/.inlet/staging").filter((path) => path.endsWith("data.bin"));
        return parts.reduce((sum, path) => sum + statSync(join(inbox, ".inlet/staging", path)).size, 0);
      } catch {
        // Not made yet, or just removed.
        return 0;
      }
    },
    startDaemon(simulator: Simulator): WatchedDaemon {
      const daemon = disks.startDaemon(simulator);
      onTestFailed(() => void process.stderr.write(`${daemon.lastLines()}\n`));
      return daemon;
    },
    /** One warning when it began, one message when it was over, and no other warnings. */
    async stopAfterOneAlarm(daemon: WatchedDaemon): Promise<void> {
      await expect.poll(() => daemon.logged("the disk can be used again")).toHaveLength(1);
      await daemon.stop();
      expect(daemon.alarms()).toEqual([PAUSED]);
      observer.close();
      expect(observer.problems).toEqual([]);
    },
  };
}
