/**
 * The file-system steps of which the ledger protocol consists. Tests replace them by a model that switches between
 * workers at each step, or that loses all unsynced changes.
 */
import { channel } from "node:diagnostics_channel";
import { constants, readdirSync, readFileSync } from "node:fs";
import { Coalesced } from "./concurrency.ts";
import { systemCode, tolerate } from "./faults.ts";
import {
  chmod,
  lchown,
  link,
  makeFolder,
  type OpenFile,
  openFile,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  tryLstat,
  unlink,
  withFile,
} from "./files.ts";

/** The user id with which `lchown` keeps the owner. */
export const UNCHANGED = -1;

const steps = channel("inlet:durable-step");

/** Announces a change on the disk, so that a test can stop the process after each. */
export function durableStep(name: string): void {
  if (steps.hasSubscribers) steps.publish(name);
}

function announced<Args extends readonly unknown[]>(name: string, change: (...args: Args) => Promise<void>) {
  return async (...args: Args): Promise<void> => {
    await change(...args);
    durableStep(name);
  };
}

export type EntryKind = "file" | "folder" | "link" | "other";

const OPEN_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY;

/** Each method is one step. All of them throw the system's error. */
export const systemDisk = {
  /** Creates a file that must not exist yet, to write and read it. */
  create: (path: string, mode: number): Promise<OpenFile> => openFile(path, "wx+", mode),
  /** Empties an existing file, and opens it for writing. */
  truncate: (path: string): Promise<OpenFile> => openFile(path, constants.O_WRONLY | constants.O_TRUNC),
  read: (path: string): Promise<string> => readFile(path, "utf8"),
  list: (folder: string): Promise<string[]> => readdir(folder),
  /** `undefined` for a missing entry. Follows no link. */
  async kindOf(path: string): Promise<EntryKind | undefined> {
    const facts = await tryLstat(path);
    if (facts === undefined) return undefined;
    if (facts.isSymbolicLink()) return "link";
    if (facts.isDirectory()) return "folder";
    return facts.isFile() ? "file" : "other";
  },
  link: announced("linked", (from: string, to: string) => link(from, to)),
  rename: announced("renamed", (from: string, to: string) => rename(from, to)),
  unlink: announced("unlinked", (path: string) => unlink(path)),
  /** The folder has exactly this mode, whatever the umask is. */
  makeFolder: announced("folder made", makeFolder),
  /** Gives a folder to a group, and keeps its mode. */
  setGroup: announced("group set", (path: string, gid: number) => lchown(path, UNCHANGED, gid)),
  removeFolder: (path: string): Promise<void> => rmdir(path),
  /** Removes a folder and its content. A missing one is no error. */
  async removeTree(path: string): Promise<void> {
    const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 });
    await remove().catch(async (error: unknown) => {
      // A crash during a check leaves its folder read-only.
      if (systemCode(error) !== "EACCES") throw error;
      await chmod(path, 0o700);
      await remove();
    });
  },
  syncFolder: announced("folder synced", (path: string) => withFile(path, "r", (folder) => folder.sync())),
  /**
   * Opens a folder, which must be closed. It stays the same folder if another entry takes its name. Refuses a link to a
   * folder, unless `link` is "follow".
   */
  async openFolder(path: string, link?: "follow") {
    const folder = await openFile(path, OPEN_FOLDER | (link === "follow" ? 0 : constants.O_NOFOLLOW));
    return {
      /** The path of an entry in it. */
      at: (name: string): string => folder.at(name),
      /** Equal for everyone who opens this folder. */
      async identity(): Promise<string> {
        const { dev, ino } = await folder.statExactly();
        return `${dev}:${ino}`;
      },
      sync: announced("folder synced", () => folder.sync()),
      close: (): void => folder.closeNow(),
    };
  },
};

export type Disk = typeof systemDisk;

export type DiskFolder = Awaited<ReturnType<Disk["openFolder"]>>;

/** For a command, which has nothing else to do: reads block the process, but take a fraction of the time. */
export const blockingDisk: Disk = {
  ...systemDisk,
  read: async (path) => readFileSync(path, "utf8"),
  list: async (folder) => readdirSync(folder),
};

/**
 * Shares folder syncs between waiters: a caller that arrives while a sync runs waits for the next one, which serves all
 * callers that wait by then.
 */
export class FolderSyncs {
  readonly #disk: Disk;
  readonly #syncs = new Map<string, SharedSync>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  sync(folder: string): Promise<void> {
    return this.#share(folder, () => this.#disk.syncFolder(folder));
  }

  async syncOpen(folder: DiskFolder): Promise<void> {
    await this.#share(await folder.identity(), () => folder.sync());
  }

  async #share(key: string, sync: () => Promise<void>): Promise<void> {
    const shared = this.#syncs.get(key) ?? new SharedSync();
    this.#syncs.set(key, shared);
    // A run calls the `sync` of its last caller, which still waits and so keeps its folder open.
    shared.sync = sync;
    try {
      await shared.runs.run();
    } finally {
      if (shared.runs.isIdle) this.#syncs.delete(key);
    }
  }
}

/** The syncs of one folder. */
class SharedSync {
  sync: () => Promise<void> = async () => {};
  readonly runs = new Coalesced(() => this.sync());
}

/** Whether a link failed because the file system has no hard links. */
export function meansNoLinks(error: unknown): boolean {
  return ["EPERM", "ENOTSUP", "ENOSYS", "EOPNOTSUPP"].includes(systemCode(error));
}

/** Unlinks a file; a missing one is no error. Returns whether it was there. */
export async function tryUnlink(disk: Disk, path: string): Promise<boolean> {
  const unlinked = disk.unlink(path).then(() => true);
  return (await unlinked.catch(tolerate("ENOENT"))) ?? false;
}

/** `undefined` if the file is missing. */
export function tryRead(disk: Disk, path: string): Promise<string | undefined> {
  return disk.read(path).catch(tolerate("ENOENT", "ENOTDIR"));
}
