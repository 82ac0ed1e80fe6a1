// @module-tag system
/**
 * I7 nothing silent: a lost disk is one trouble that names its cause. Nothing is written in its place, and work continues
 * by itself when the disk is back.
 */
import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, onTestFailed, test } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import type { Status } from "../../src/model/status.ts";
import { findProgram } from "../support/debian.ts";
import { groupsOf } from "../support/notify.ts";
import { childProgram, makeFolder, runCommand, startCommand } from "../support/program.ts";
import { accept, openReceiver, type Receiver } from "../support/receiver.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

/** Shell scripts in the folder of the disks: `store` is a disk whose folders are mounted as `inbox` and `state`. */
interface Case {
  readonly does: string;
  readonly undoes: string;
  /** The code of the trouble while it lasts, and after a restart of the daemon. */
  readonly code: string;
  readonly restarted?: string;
  /** Where nothing may be written meanwhile. */
  readonly untouched: string;
}

const UNMOUNTED: Case = {
  does: "umount -l inbox",
  undoes: "mount --bind store/inbox inbox",
  code: "DISK_UNMOUNTED",
  restarted: "WORK_LOST",
  untouched: "inbox",
};

/** `perl` makes ext4 answer EIO to everything. */
const SHUTDOWN = `perl -e 'open(my $f, "<", "inbox") or die $!; my $v = pack("L", 1); ioctl($f, 0x8004587d, $v) or die $!'`;

const CASES: readonly (readonly [string, Case])[] = [
  ["the inbox is unmounted", UNMOUNTED],
  [
    "the inbox becomes read-only",
    {
      // The kernel may do it at any time, but a command only while no file is open for writing.
      does: "mount --bind store/inbox inbox && mount -o remount,bind,ro inbox",
      undoes: "umount -l inbox",
      code: "DISK_READ_ONLY",
      restarted: "DISK_READ_ONLY",
      untouched: "inbox/.inlet",
    },
  ],
  [
    "an empty disk is mounted over the inbox",
    {
      does: "mount -t tmpfs tmpfs inbox",
      undoes: "umount -l inbox",
      code: "DISK_REPLACED",
      restarted: "WORK_LOST",
      untouched: "inbox",
    },
  ],
  [
    "a disk with another work folder is mounted over the inbox",
    {
      does: "mkdir other && mount -t tmpfs tmpfs other && cp -a store/inbox/. other/ && rm -f other/.inlet/new/.*.part && echo 0123 > other/.inlet/id && mount --move other inbox",
      undoes: "umount -l inbox",
      code: "DISK_REPLACED",
      restarted: "WORK_LOST",
      untouched: "inbox",
    },
  ],
  [
    "the work folder is moved away",
    {
      does: "mv store/inbox/.inlet store/away",
      undoes: "mv store/away store/inbox/.inlet",
      code: "FOLDER_MISSING",
      restarted: "WORK_LOST",
      untouched: "inbox",
    },
  ],
  [
    "the state folder is unmounted",
    {
      does: "umount -l state",
      undoes: "mount --bind store/state state",
      code: "DISK_UNMOUNTED",
      untouched: "state",
    },
  ],
  [
    "the content of the state folder is moved away",
    {
      does: "mkdir store/away && mv store/state/* store/away",
      undoes: "mv store/away/* store/state",
      code: "DISK_REPLACED",
      untouched: "state",
    },
  ],
];

describe("I7 nothing silent: a lost disk", () => {
  test.each(CASES)("%s: one trouble, nothing written, then everything delivered once", async (_what, it) => {
    const { simulator, disks, receiver } = await setUp();
    const daemon = await disks.startDaemon(simulator, receiver);
    await daemon.expectFine();
    await expect.poll(() => disks.delivered()).toEqual(["t1"]);
    await disks.expectRest();
    await disks.run(it.does);
    const before = disks.tree(it.untouched);
    await daemon.expectTrouble(it.code);
    simulator.addTransfer(plan("t2"));
    await someTries();
    await daemon.expectTrouble(it.code);
    expect(disks.tree(it.untouched)).toEqual(before);
    await expect.poll(() => notified(receiver)).toEqual(["disk"]);
    await disks.run(it.undoes);
    await expect.poll(() => disks.delivered()).toEqual(["t1", "t2"]);
    await daemon.expectFine();
    await expect.poll(() => notified(receiver)).toEqual(["disk", "disk over"]);
    await daemon.stop();
    expect(daemon.alarms()).toEqual(["a disk cannot be used: work that needs it pauses"]);
    expect(daemon.logged("delivered")).toEqual(["t1", "t2"]);
  });

  test.each(CASES.filter(([, { restarted }]) => restarted !== undefined))(
    "%s, and the daemon is restarted: it waits, writes nothing, and continues",
    async (_what, it) => {
      const { simulator, disks, receiver } = await setUp();
      const first = await disks.startDaemon(simulator, receiver);
      await expect.poll(() => disks.delivered()).toEqual(["t1"]);
      await disks.expectRest();
      await first.stop();
      await disks.run(it.does);
      const before = disks.tree(it.untouched);
      simulator.addTransfer(plan("t2"));
      const second = await disks.startDaemon(simulator, receiver);
      await second.expectTrouble(it.restarted ?? "");
      await someTries();
      expect(disks.tree(it.untouched)).toEqual(before);
      await disks.run(it.undoes);
      await expect.poll(() => disks.delivered()).toEqual(["t1", "t2"]);
      await second.expectFine();
      await second.stop();
      expect(second.logged("delivered")).toEqual(["t2"]);
    },
  );

  test("the inbox is unmounted during a download: it is downloaded and delivered once", async () => {
    const { simulator, disks, receiver } = await setUp([]);
    simulator.addFault({ on: "file", does: { kind: "stall", afterBytes: 400_000, seconds: 2 } });
    const daemon = await disks.startDaemon(simulator, receiver);
    await daemon.expectFine();
    simulator.addTransfer(plan("t1", 1_000_000));
    await expect.poll(() => disks.tree("store/inbox").some((path) => path.endsWith("data.bin"))).toBe(true);
    await disks.run(UNMOUNTED.does);
    await daemon.expectTrouble(UNMOUNTED.code);
    await someTries();
    expect(disks.tree("inbox")).toEqual([]);
    await disks.run(UNMOUNTED.undoes);
    await expect.poll(() => disks.delivered()).toEqual(["t1"]);
    await daemon.expectFine();
    await daemon.stop();
    expect(daemon.alarms()).toEqual(["a disk cannot be used: work that needs it pauses"]);
  });

  test("the disk answers EIO to everything: it can be unmounted, and continues when it is mounted again", async () => {
    const simulator = await openTestSimulator({ transfers: [plan("t1")] });
    const receiver = await openReceiver(accept);
    const image = "truncate -s 16M image && mkfs.ext4 -q image && mount -o loop image inbox";
    const disks = await openDisks(`mkdir inbox && ${image}`);
    const daemon = await disks.startDaemon(simulator, receiver);
    await expect.poll(() => disks.delivered("inbox")).toEqual(["t1"]);
    await disks.expectRest("inbox");
    await disks.run(SHUTDOWN);
    await daemon.expectTrouble("DISK_(REFUSED|UNREADABLE|READ_ONLY)");
    simulator.addTransfer(plan("t2"));
    await someTries();
    // Not lazily: the daemon holds no file open there.
    await expect.poll(() => disks.tryRun("umount inbox")).toBe(true);
    await daemon.expectTrouble("DISK_UNMOUNTED");
    await someTries();
    expect(disks.tree("inbox")).toEqual([]);
    await disks.run("mount -o loop image inbox");
    await expect.poll(() => disks.delivered("inbox")).toEqual(["t1", "t2"]);
    await daemon.expectFine();
    await daemon.stop();
    expect(daemon.logged("delivered")).toEqual(["t1", "t2"]);
  });

  const OWN = [
    ["replaced", "mount -t tmpfs tmpfs inbox/own", "umount -l inbox/own", "DISK_REPLACED", []],
    ["missing", "mv store/inbox/own store/own", "mv store/own store/inbox/own", "FOLDER_MISSING", undefined],
  ] as const;
  test.each(OWN)(
    "an inbox of a mailbox is %s: only its deliveries wait",
    async (_what, does, undoes, code, left) => {
      const { simulator, disks, receiver } = await setUp([]);
      const inbox = join(disks.folder, "inbox/own");
      const daemon = await disks.startDaemon(simulator, receiver, { mailbox: { inbox } });
      await daemon.expectFine();
      await disks.run(does);
      await daemon.expectTrouble(code);
      simulator.addTransfer(plan("t1"));
      await expect.poll(() => daemon.waiting()).toEqual(["t1"]);
      await daemon.expectTrouble(code);
      expect(left === undefined ? disks.names("inbox").includes("own") : disks.tree("inbox/own")).toEqual(
        left ?? false,
      );
      await disks.run(undoes);
      await expect.poll(() => disks.delivered("store/inbox/own")).toEqual(["t1"]);
      await daemon.expectFine();
      await daemon.stop();
      expect(daemon.alarms()).toEqual(["a disk cannot be used: work that needs it pauses"]);
    },
  );
});

function plan(trackingId: string, bytes = 1_000) {
  return transferPlan({ trackingId, files: [{ name: "data.bin", generate: { bytes } }] });
}

function notified(receiver: Receiver): string[] {
  return groupsOf(receiver).map(({ kind, over }) => (over ? `${kind} over` : kind));
}

/** Long enough for several attempts of a daemon with short waits to write something. */
async function someTries(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 600));
}

async function setUp(transfers = [plan("t1")]) {
  const simulator = await openTestSimulator({ transfers });
  const receiver = await openReceiver(accept);
  const mounts = ["inbox", "state"].map(
    (name) => `mkdir store/${name} && mount --bind store/${name} ${name}`,
  );
  const disks = await openDisks(
    `mkdir store inbox state && mount -t tmpfs tmpfs store && ${mounts.join(" && ")}`,
  );
  return { simulator, disks, receiver };
}

/** Mounts in a namespace of their own, which ends with the test. */
async function openDisks(script: string) {
  const folder = await makeFolder();
  const [unshare, nsenter] = await Promise.all(
    ["unshare", "nsenter"].map((name) => findProgram(name, ["util-linux"])),
  );
  const args = [
    "-m",
    "--propagation",
    "private",
    "sh",
    "-c",
    `cd "$0" && ${script} && echo mounted && exec cat`,
  ];
  const holder = startCommand(unshare?.path ?? "", [...args, folder]);
  const lines = linesOf(holder);
  // If a mount fails, the output says why: only root can mount.
  await expect.poll(() => lines.join("\n")).toBe("mounted");
  const inside = [`--mount=/proc/${holder.pid}/ns/mnt`];
  const seen = (path: string) => join(`/proc/${holder.pid}/root`, folder, path);
  const execute = (text: string) =>
    runCommand(nsenter?.path ?? "", [...inside, "sh", "-c", `cd "$0" && ${text}`, folder]);
  return {
    folder,
    async run(text: string): Promise<void> {
      expect(await execute(text)).toMatchObject({ exitCode: 0, stderr: "" });
    },
    tryRun: async (text: string) => (await execute(text)).exitCode === 0,
    names: (path: string) => readdirSync(seen(path)),
    /** Every path in a folder. */
    tree: (path: string) => readdirSync(seen(path), { recursive: true }).map(String).toSorted(),
    delivered(inbox = "store/inbox"): string[] {
      const sender = join(seen(inbox), MAILBOX, "anna@supplier.example");
      try {
        const names = readdirSync(sender);
        for (const name of names) readFileSync(join(sender, name, "transfer.json"));
        return names.toSorted();
      } catch {
        return [];
      }
    },
    /** Everything about the deliveries is written: a start reports those again that the journal lacks. */
    async expectRest(inbox = "store/inbox") {
      await expect.poll(() => readdirSync(seen(join(inbox, ".inlet/staging")))).toEqual([]);
    },
    async startDaemon({ url, clientId }: Simulator, { url: notify }: Receiver, more: object = {}) {
      const task = { url, clientId, folder, http: true, notify, ...more };
      const program = [process.execPath, childProgram("daemon-child"), JSON.stringify(task)];
      return watchDaemon(startCommand(nsenter?.path ?? "", [...inside, ...program]));
    },
  };
}

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly address?: string;
  readonly trackingId?: string;
}

function watchDaemon(child: ChildProcess) {
  const lines = linesOf(child);
  onTestFailed(() => void process.stderr.write(`${lines.slice(-50).join("\n")}\n`));
  const parsed = () => lines.map((line) => JSON.parse(line) as Line);
  const get = async (path: string) => {
    const address = parsed().find(({ msg }) => msg === "the console is open")?.address;
    return address === undefined ? undefined : fetch(new URL(path, address));
  };
  const status = async () => (await (await get("/api/status"))?.json()) as Status | undefined;
  const troubles = async () => (await status())?.troubles.map(({ what, code }) => `${what} ${code}`);
  const isReady = async () =>
    ((await (await get("/readyz"))?.json()) as { ready: boolean } | undefined)?.ready;
  const metric = async () => {
    const text = (await (await get("/metrics"))?.text()) ?? "";
    return /^inlet_trouble\{what="disk"\} (\d)$/m.exec(text)?.[1];
  };
  return {
    alarms: () =>
      parsed()
        .filter(({ level }) => ["warn", "error", "fatal"].includes(level))
        .map(({ msg }) => msg),
    logged: (message: string) =>
      parsed()
        .filter(({ msg }) => msg === message)
        .map(({ trackingId }) => trackingId)
        .toSorted(),
    /** Transfers that wait for a disk. */
    waiting: async () => {
      const { queued = [] } = (await status()) ?? {};
      return queued.filter(({ reason }) => reason === "disk").map(({ trackingId }) => trackingId);
    },
    async expectFine() {
      await expect.poll(async () => [await troubles(), await isReady()]).toEqual([[], true]);
      expect(await metric()).toBe("0");
    },
    async expectTrouble(code: string) {
      await expect.poll(troubles).toEqual([expect.stringMatching(new RegExp(`^disk ${code}$`))]);
      expect([await isReady(), await metric()]).toEqual([false, "1"]);
    },
    async stop() {
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGTERM");
      expect(await ended).toBe(0);
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
