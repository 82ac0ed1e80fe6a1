// @module-tag system
/** I6 no contagion: a full disk, of bytes or of inodes, pauses intake with one message, and loses nothing. */
import type { ChildProcess } from "node:child_process";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, onTestFailed, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import { findProgram } from "../support/debian.ts";
import { observeInbox } from "../support/inbox-observer.ts";
import { childProgram, makeFolder, startCommand } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const SMALL_DISK = "size=6M,nr_inodes=120";
const SENDER = "anna@supplier.example";
const PLANS = ["t1", "t2", "t3"].map((trackingId) =>
  transferPlan({ trackingId, files: [{ name: "data.bin", generate: { bytes: 1_000_000 } }] }),
);

describe.each(["bytes", "inodes"] as const)("I6 no contagion: a disk without %s", (kind) => {
  test("before the first start: it waits, reports it once, and starts when there is space", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS });
    const disk = await openSmallDisk();
    disk.fill(kind);
    const daemon = await disk.startDaemon(simulator);
    await expect.poll(() => daemon.alarms()).toHaveLength(1);
    await someTries();
    disk.free();
    await expect.poll(() => disk.delivered()).toEqual(["t1", "t2", "t3"]);
    await daemon.stopAfterOneAlarm();
  });

  test("during a download: it resumes when there is space", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS.slice(0, 1) });
    simulator.addFault({ on: "file", does: { kind: "stall", afterBytes: 400_000, seconds: 1 } });
    const disk = await openSmallDisk();
    const daemon = await disk.startDaemon(simulator);
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
    await daemon.stopAfterOneAlarm();
    if (kind === "bytes") expect(simulator.requests().some(({ status }) => status === 206)).toBe(true);
  });

  test("after a delivery and across a restart: nothing is lost, and nothing delivered twice", async () => {
    const simulator = await openTestSimulator({ transfers: PLANS.slice(0, 1) });
    const disk = await openSmallDisk();
    const first = await disk.startDaemon(simulator);
    // The folder appears before the log line.
    await expect.poll(() => first.logged("delivered")).toEqual(["t1"]);
    // A start logs deliveries again that the journal lacks.
    await expect.poll(() => disk.tickets()).toEqual([]);
    disk.fill(kind);
    for (const plan of PLANS.slice(1)) simulator.addTransfer(plan);
    await expect.poll(() => first.alarms()).toHaveLength(1);
    await first.stop();
    const second = await disk.startDaemon(simulator);
    await expect.poll(() => second.alarms()).toHaveLength(1);
    // Enough for a start, but not for a transfer.
    disk.freeLittle(kind);
    await expect.poll(() => second.logged("ready")).toHaveLength(1);
    await someTries();
    disk.free();
    await expect.poll(() => disk.delivered()).toEqual(["t1", "t2", "t3"]);
    await second.stopAfterOneAlarm();
    expect(second.logged("delivered")).toEqual(["t2", "t3"]);
  });
});

test("a transfer that does not fit waits, while a smaller one is delivered", async () => {
  const large = transferPlan({
    trackingId: "large",
    files: [{ name: "x", generate: { bytes: 50_000_000 } }],
  });
  const simulator = await openTestSimulator({
    transfers: [{ ...large, expiresInSeconds: 2 * 24 * 3600 }, ...PLANS.slice(0, 2)],
  });
  const disk = await openSmallDisk();
  const daemon = await disk.startDaemon(simulator);
  await expect.poll(() => disk.delivered()).toEqual(["t1", "t2"]);
  await expect.poll(() => daemon.alarms()).toHaveLength(1);
  expect(daemon.alarms()[0]?.fault).toMatchObject({ code: "DISK_FULL" });
  const { info } = simulator.totals();
  await someTries();
  expect(simulator.totals().info).toBe(info);
  await daemon.stop();
});

/** Lines of a daemon's log to show when a test fails. */
const LAST_LINES = 50;

/** Long enough for several retries of a daemon with short waits. */
async function someTries(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 600));
}

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly trackingId?: string;
  readonly fault?: { readonly code: string };
}

interface WatchedDaemon {
  /** Lines of level warn and worse. */
  alarms(): Line[];
  /** The transfers with this log message, sorted by id. */
  logged(message: string): (string | undefined)[];
  /** One warning when it began, one message when it was over, and no other warnings. */
  stopAfterOneAlarm(): Promise<void>;
  stop(): Promise<void>;
}

/** A small file system in its own mount namespace, which ends with the test. */
async function openSmallDisk() {
  const mountPoint = await makeFolder();
  const [unshare, mount] = await Promise.all(
    ["unshare", "mount"].map((name) => findProgram(name, [name === "mount" ? "mount" : "util-linux"])),
  );
  const script = `${mount?.path} -t tmpfs -o ${SMALL_DISK} tmpfs "$0" && echo mounted && exec cat`;
  const args = ["-m", "--propagation", "private", "sh", "-c", script, mountPoint];
  const holder = startCommand(unshare?.path ?? "", args);
  const lines = linesOf(holder);
  // If the mount fails, the output says why: only root can mount.
  await expect.poll(() => lines.join("\n")).toBe("mounted");
  const seen = join(`/proc/${holder.pid}/root`, mountPoint);
  const inbox = join(seen, "inbox");
  const observer = observeInbox(inbox, 1);
  const ballast = join(seen, "ballast");
  const nsenter = await findProgram("nsenter", ["util-linux"]);
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
    freeLittle(kind: "bytes" | "inodes"): void {
      const bytes = join(ballast, "bytes");
      if (kind === "bytes") truncateSync(bytes, lengthOf(bytes) - 64 * 1024);
      else for (const name of namesIn(ballast).slice(0, 8)) rmSync(join(ballast, name));
    },
    free: () => rmSync(ballast, { recursive: true }),
    tickets: () => readdirSync(join(inbox, ".inlet", "staging")),
    delivered(): string[] {
      const folder = join(inbox, MAILBOX, SENDER);
      const names = namesIn(folder);
      for (const name of names) expect(readFileSync(join(folder, name, "data.bin"))).toHaveLength(1_000_000);
      return names;
    },
    stagedBytes(): number {
      const staging = join(inbox, ".inlet/staging");
      const parts = namesIn(staging, true).filter((name) => name.endsWith("data.bin"));
      return parts.reduce((sum, name) => sum + lengthOf(join(staging, name)), 0);
    },
    async startDaemon({ url, clientId }: Simulator): Promise<WatchedDaemon> {
      const task = JSON.stringify({ url, clientId, folder: mountPoint });
      const child = startCommand(nsenter.path, [
        `--mount=/proc/${holder.pid}/ns/mnt`,
        process.execPath,
        childProgram("daemon-child"),
        task,
      ]);
      return watchDaemon(child, async () => {
        observer.close();
        expect(observer.problems).toEqual([]);
      });
    },
  };
}

function watchDaemon(child: ChildProcess, onStopped: () => Promise<void>): WatchedDaemon {
  const lines = linesOf(child);
  onTestFailed(() => void process.stderr.write(`${lines.slice(-LAST_LINES).join("\n")}\n`));
  const parsed = () => lines.map((line) => JSON.parse(line) as Line);
  const alarms = () => parsed().filter(({ level }) => ["warn", "error", "fatal"].includes(level));
  const over = () => parsed().filter(({ msg }) => msg === "the disk can be used again");
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    await onStopped();
  };
  return {
    alarms,
    stop,
    logged: (message) =>
      parsed()
        .filter(({ msg }) => msg === message)
        .map(({ trackingId }) => trackingId)
        .toSorted(),
    async stopAfterOneAlarm() {
      await expect.poll(over).not.toEqual([]);
      await stop();
      expect(alarms().map(({ msg }) => msg)).toEqual(["a disk cannot be used: work that needs it pauses"]);
      expect(over()).toHaveLength(1);
    },
  };
}

function linesOf(child: ChildProcess): string[] {
  const lines: string[] = [];
  if (child.stdout === null || child.stderr === null) throw new Error("no pipes");
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => lines.push(line));
  }
  return lines;
}

function namesIn(folder: string, recursive = false): string[] {
  try {
    return readdirSync(folder, { recursive, encoding: "utf8" }).toSorted();
  } catch {
    return [];
  }
}

function lengthOf(path: string): number {
  try {
    return readFileSync(path).length;
  } catch {
    return 0;
  }
}
