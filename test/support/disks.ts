/** Disks of their own for a daemon: mounts in a namespace that ends with the test. Only root can mount. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Simulator } from "../../simulator/simulator.ts";
import type { CrashTask } from "./daemon-task.ts";
import { findProgram } from "./debian.ts";
import { CHILD, type Finished, makeFolder, runCommand, startCommand } from "./program.ts";
import { MAILBOX } from "./settings.ts";
import { linesOf, type WatchedDaemon, watchDaemon } from "./watched-daemon.ts";

export interface Disks {
  readonly folder: string;
  /** The path of an entry for processes outside of the namespace. */
  at(path: string): string;
  /** Runs a shell script in the folder. */
  run(script: string): Promise<void>;
  /** Whether the script succeeded. */
  tryRun(script: string): Promise<boolean>;
  /** The entries of a folder. */
  names(path: string): string[];
  /** Every path in a folder. */
  tree(path: string): string[];
  /** The folders of complete deliveries. */
  delivered(inbox?: string): string[];
  /** Everything about the deliveries is written: a start reports those again that the journal lacks. */
  expectRest(inbox?: string): Promise<void>;
  /** Polls once. */
  runChild(task: CrashTask): Promise<Finished>;
  /** `task`: see `ChildTask`. */
  startDaemon(service: Pick<Simulator, "url" | "clientId">, task?: object): WatchedDaemon;
}

/** A way to lose a disk, as shell scripts in the folder of the usual disks. */
export interface Loss {
  readonly because: string;
  readonly does: string;
  readonly undoes: string;
  /** The code of the trouble while it lasts, and after a restart of the daemon if it waits then. */
  readonly code: string;
  readonly restarted?: string;
  /** Where nothing may be written meanwhile. */
  readonly untouched: string;
}

export const UNMOUNTED: Loss = {
  because: "the inbox is unmounted",
  does: "umount -l inbox",
  undoes: "mount --bind store/inbox inbox",
  code: "DISK_UNMOUNTED",
  restarted: "WORK_LOST",
  untouched: "inbox",
};

export const LOSSES: readonly Loss[] = [
  UNMOUNTED,
  {
    because: "the inbox becomes read-only",
    // The kernel may do it at any time, but a command only while no file is open for writing.
    does: "mount --bind store/inbox inbox && until mount -o remount,bind,ro inbox 2>/dev/null; do sleep 0.05; done",
    undoes: "umount -l inbox",
    code: "DISK_READ_ONLY",
    restarted: "DISK_READ_ONLY",
    untouched: "inbox/.inlet",
  },
  {
    because: "an empty disk is mounted over the inbox",
    does: "mount -t tmpfs tmpfs inbox",
    undoes: "umount -l inbox",
    code: "DISK_REPLACED",
    restarted: "WORK_LOST",
    untouched: "inbox",
  },
  {
    because: "a disk with another work folder is mounted over the inbox",
    does: "mkdir other && mount -t tmpfs tmpfs other && cp -a store/inbox/. other/ && rm -f other/.inlet/new/.*.part && echo 0123 > other/.inlet/id && mount --move other inbox",
    undoes: "umount -l inbox",
    code: "DISK_REPLACED",
    restarted: "WORK_LOST",
    untouched: "inbox",
  },
  {
    because: "the work folder is moved away",
    does: "mv store/inbox/.inlet store/away",
    undoes: "mv store/away store/inbox/.inlet",
    code: "FOLDER_MISSING",
    restarted: "WORK_LOST",
    untouched: "inbox",
  },
  {
    because: "the state folder is unmounted",
    does: "umount -l state",
    undoes: "mount --bind store/state state",
    code: "DISK_UNMOUNTED",
    untouched: "state",
  },
  {
    because: "the content of the state folder is moved away",
    does: "mkdir store/away && mv store/state/* store/away",
    undoes: "mv store/away/* store/state",
    code: "DISK_REPLACED",
    untouched: "state",
  },
];

/** To what is used now, which may grow meanwhile. */
function shrink(option: string, used: string): string {
  return `for try in $(seq 100); do mount -o remount,${option}=${used} store 2>&- && exit; done; exit 1`;
}

export const FULL: readonly Loss[] = [
  {
    because: "the disk is full",
    does: shrink("size", "$(df -k --output=used store | tr -dc 0-9)k"),
    undoes: "mount -o remount,size=16M store",
    code: "DISK_FULL",
    restarted: "DISK_FULL",
    untouched: "inbox/orders@example.com",
  },
  {
    because: "the disk has no free inodes",
    does: shrink("nr_inodes", "$(df --output=iused store | tr -dc 0-9)"),
    undoes: "mount -o remount,nr_inodes=2k store",
    code: "DISK_FULL",
    restarted: "DISK_FULL",
    untouched: "inbox/orders@example.com",
  },
];

/** `store` is a disk of 16 MB whose folders are mounted as `inbox` and `state`. */
export function openUsualDisks(): Promise<Disks> {
  const mounts = ["inbox", "state"].map(
    (name) => `mkdir store/${name} && mount --bind store/${name} ${name}`,
  );
  return openDisks(
    `mkdir store inbox state && mount -t tmpfs -o size=16M,nr_inodes=2k tmpfs store && ${mounts.join(" && ")}`,
  );
}

/** `script` mounts them. */
export async function openDisks(script: string): Promise<Disks> {
  const folder = await makeFolder();
  const [unshare, nsenter] = await Promise.all(
    ["unshare", "nsenter"].map((name) => findProgram(name, ["util-linux"])),
  );
  const shell = ["sh", "-c", `cd "$0" && ${script} && echo mounted && exec cat`, folder];
  const holder = startCommand(unshare?.path ?? "", ["-m", "--propagation", "private", ...shell]);
  const lines = linesOf(holder);
  // If a mount fails, the output says why.
  await expect.poll(() => lines.join("\n")).toBe("mounted");
  const inside = [`--mount=/proc/${holder.pid}/ns/mnt`];
  const seen = (path: string) => join(`/proc/${holder.pid}/root`, folder, path);
  const execute = (text: string) =>
    runCommand(nsenter?.path ?? "", [...inside, "sh", "-c", `cd "$0" && ${text}`, folder]);
  return {
    folder,
    at: seen,
    async run(text) {
      expect(await execute(text)).toMatchObject({ exitCode: 0, stderr: "" });
    },
    tryRun: async (text) => (await execute(text)).exitCode === 0,
    names: (path) => readdirSync(seen(path)),
    tree: (path) => readdirSync(seen(path), { recursive: true }).map(String).toSorted(),
    delivered(inbox = "store/inbox") {
      const sender = join(seen(inbox), MAILBOX, "anna@supplier.example");
      const isComplete = (name: string) => tryRead(join(sender, name, "transfer.json")) !== undefined;
      return namesIn(sender).filter(isComplete).toSorted();
    },
    async expectRest(inbox = "store/inbox") {
      const left = () => ["staging", "notes"].flatMap((name) => namesIn(seen(join(inbox, ".inlet", name))));
      await expect.poll(left).toEqual([]);
    },
    runChild: (task) => runCommand(nsenter?.path ?? "", [...inside, ...programOf({ once: task })]),
    startDaemon({ url, clientId }, more = {}) {
      const task = { url, clientId, folder, http: true, ...more };
      return watchDaemon(startCommand(nsenter?.path ?? "", [...inside, ...programOf(task)]));
    },
  };
}

function programOf(task: object): string[] {
  return [process.execPath, CHILD, JSON.stringify(task)];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function tryRead(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
