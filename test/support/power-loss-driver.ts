/**
 * Cuts the power at durable steps of a daemon, each time on a new disk, until a daemon ends before its step. Reads the disk
 * when the power is back, and again after another run of the daemon.
 *
 * It mounts file systems, so it must be started in its own mount namespace: the kernel removes all mounts and loop devices
 * with the last process there.
 *
 * Argument: a JSON of a `PowerTask`. Prints a JSON of an `Aftermath` for each run, one per line; the last one is of the
 * daemon that ended before its cut.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type CrashTask, runCrashDaemon } from "./crash-daemon.ts";
import { type CrashReport, listNames } from "./crash-report.ts";
import type { DebianProgram } from "./debian.ts";
import { readRecords } from "./ledger.ts";
import { MAILBOX } from "./settings.ts";
import { readTree, withoutTimes } from "./tree.ts";

export interface PowerTask extends Omit<CrashTask, "folder"> {
  /** An empty folder for all mounts. */
  readonly folder: string;
  readonly programs: Readonly<Record<"mount" | "umount" | "mkfs.ext4" | "perl", DebianProgram>>;
  /** The daemon also creates its folders. */
  readonly isNew: boolean;
  /** The steps at which the power is cut. */
  readonly first: number;
  readonly every: number;
}

export interface Aftermath {
  readonly cut: number;
  /** Missing if the daemon ended before the cut. */
  readonly report?: CrashReport;
  /** When the power is back, before anything runs. */
  readonly found: DiskState;
  /** After another run of the daemon. */
  readonly end: DiskState;
}

export interface DiskState {
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

/** Built beside this program. */
const CHILD = join(import.meta.dirname, "crash-child.js");
const IMAGE_BYTES = 24 * 1024 ** 2;
/** Nothing is written without a sync: no timed commits, no flush of a new file when a rename replaces an old one. */
const OPTIONS = "loop,noauto_da_alloc,commit=600";
/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: after it nothing is written, not even the journal. */
const UNPLUG =
  'open(my $f, "<", $ARGV[0]) or die $!; my $v = pack("L", 2); ioctl($f, 0x8004587d, $v) or die "ioctl: $!"';

const task: PowerTask = JSON.parse(process.argv[2] ?? "{}");
const image = join(task.folder, "image");
const disk = join(task.folder, "disk");
const blank = join(task.folder, "blank");

// The images may be in memory: only writes to the loop devices count.
run("mount", ["-t", "tmpfs", "-o", "size=100M", "tmpfs", task.folder]);
mkdirSync(disk);
writeFileSync(blank, "");
truncateSync(blank, IMAGE_BYTES);
run("mkfs.ext4", ["-q", "-F", "-b", "4096", blank]);
if (!task.isNew) await makeFolders();
let [cut, isOver] = [task.first, false];
while (!isOver) {
  const aftermath = await cutPower(cut);
  process.stdout.write(`${JSON.stringify(aftermath)}\n`);
  isOver = aftermath.report === undefined;
  cut += task.every;
}

async function makeFolders(): Promise<void> {
  run("mount", ["-o", OPTIONS, blank, disk]);
  await runCrashDaemon({ ...task, folder: disk, paused: true });
  await unmount();
}

async function cutPower(cut: number): Promise<Aftermath> {
  copyFileSync(blank, image);
  run("mount", ["-o", OPTIONS, image, disk]);
  const report = runChild(cut);
  await unmount();
  run("mount", ["-o", OPTIONS, image, disk]);
  const found = await readDisk();
  await runCrashDaemon({ ...task, folder: disk });
  const end = await readDisk();
  await unmount();
  return { cut, ...report, found, end };
}

/** A command that the daemon has started may end a moment later than the daemon. */
async function unmount(): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return run("umount", [disk]);
    } catch (error) {
      if (tries >= 100 || !String(error).includes("busy")) throw error;
      await pause(100);
    }
  }
}

function runChild(cut: number): Pick<Aftermath, "report"> {
  const unplug = [task.programs.perl.path, "-e", UNPLUG, disk];
  const childTask = { ...task, folder: disk, crashAt: cut, unplug };
  const { signal, status, stdout, stderr } = spawnSync(process.execPath, [CHILD, JSON.stringify(childTask)], {
    encoding: "utf8",
  });
  if (status === 0) return {};
  if (signal === "SIGKILL" && stdout !== "") return { report: JSON.parse(stdout) };
  throw new Error(`cut ${cut}: the daemon ended with ${signal ?? status}: ${stderr}`);
}

async function readDisk(): Promise<DiskState> {
  const inbox = join(disk, "inbox");
  const tree = Object.entries(withoutTimes(await readTree(inbox)));
  const delivered = namesIn(join(inbox, MAILBOX)).map((name) => join(MAILBOX, name));
  return {
    names: listNames(disk),
    deliveries: Object.fromEntries(delivered.map((path) => [path, statSync(join(inbox, path)).ino])),
    digests: Object.fromEntries(tree.map(([path, text]) => [path, digestOf(text)])),
    ledger: statesIn(join(inbox, ".inlet")),
    leftOver: listAll(join(inbox, ".inlet")).filter((path) => /\.part$|^(notes|staging)\/./.test(path)),
  };
}

/** A damaged record fails the whole test. */
function statesIn(work: string): DiskState["ledger"] {
  return Object.fromEntries(
    readRecords(work).map(({ trackingId, state, folder }) => [trackingId, { state, folder }]),
  );
}

function listAll(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : [];
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).toSorted() : [];
}

function digestOf(text: string): string {
  return createHash("sha256").update(text, "latin1").digest("hex");
}

function run(program: keyof PowerTask["programs"], args: readonly string[]): void {
  const { path, env } = task.programs[program];
  const options = { env: { ...process.env, ...env }, encoding: "utf8" } as const;
  const { status, error, stderr } = spawnSync(path, args, options);
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")}: ${error ?? stderr}`);
}
