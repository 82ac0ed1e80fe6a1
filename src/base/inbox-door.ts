/**
 * The door to the inboxes: everything that Inlet creates, renames or removes below an inbox goes through here.
 *
 * A consumer may replace a folder below an inbox with a symbolic link at any moment. So the folders on the way are opened
 * one by one, from the inbox's root on, and no link is followed. Names are then resolved in the open folder, through
 * `/proc/self/fd`, and a later replacement has no effect. The administrator chooses the root: it may be reached through links.
 */
import { join } from "node:path";
import { type Disk, type DiskFolder, FolderSyncs } from "./disk.ts";
import { Fault, systemCode, tolerate } from "./faults.ts";

/** A folder of an inbox, open until the work with it is done. */
export interface InboxFolder {
  /** The path of an entry. Throws `TARGET_UNSAFE` for anything but a plain name. */
  at(name: string): string;
  sync(): Promise<void>;
}

/** Creates a missing folder. May fail because its name is taken. */
export type MakeFolder = (path: string) => Promise<void>;

/** Error codes that mean: another entry has the name. */
export const TAKEN: readonly string[] = ["EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR"];
/** How many folders are remembered as synced. When the memory is full, all are forgotten. */
const MAX_DURABLE = 10_000;
/** How often a folder is made and opened, if consumers remove it each time. */
const MAX_ATTEMPTS = 20;

export class InboxDoor {
  readonly #disk: Disk;
  readonly #syncs: FolderSyncs;
  /** Paths of folders whose names this process has synced. */
  readonly #durable = new Set<string>();
  #hasProc = false;

  constructor(disk: Disk, syncs = new FolderSyncs(disk)) {
    this.#disk = disk;
    this.#syncs = syncs;
  }

  /**
   * Opens a folder, given by its path from the inbox's root, and runs `work` with it. Only returns `undefined` if the folder
   * is missing. Throws `TARGET_UNSAFE` if a link or a file is in the way, `INBOX_MISSING`, and `PROC_MISSING`.
   */
  async inFolder<Result>(
    root: string,
    folder: string,
    work: (folder: InboxFolder) => Promise<Result>,
  ): Promise<Result | undefined> {
    try {
      const open = await this.#open(root, folder).catch(tolerate("ENOENT"));
      return open === undefined ? undefined : await this.#use(open, work);
    } catch (error) {
      throw withPath(error, join(root, folder));
    }
  }

  /**
   * As `inFolder`, but creates missing folders with `make`, and syncs them. Starts again after an `ENOENT`, because consumers
   * may remove folders at any moment.
   */
  async inMadeFolder<Result>(
    root: string,
    folder: string,
    make: MakeFolder,
    work: (folder: InboxFolder) => Promise<Result>,
  ): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#use(await this.#open(root, folder, make), work);
      } catch (error) {
        if (systemCode(error) !== "ENOENT" || attempt === MAX_ATTEMPTS) {
          throw withPath(error, join(root, folder));
        }
      }
    }
  }

  async #use<Result>(open: DiskFolder, work: (folder: InboxFolder) => Promise<Result>): Promise<Result> {
    try {
      return await work({ at: (name) => entryOf(open, name), sync: () => this.#syncs.syncOpen(open) });
    } finally {
      open.close();
    }
  }

  async #open(root: string, folder: string, make?: MakeFolder): Promise<DiskFolder> {
    const names = folder === "" ? [] : folder.split("/");
    if (!names.every(isPlainName)) throw new Fault("TARGET_UNSAFE", { detail: join(root, folder) });
    const firstPath = join(root, names[0] ?? "");
    // The root itself is trusted, so it is opened only if the first folder in it may have to be made or synced.
    const tryFirst = () => this.#openEntry(firstPath, firstPath).catch(tolerate("ENOENT"));
    const first = this.#durable.has(firstPath) ? await tryFirst() : undefined;
    let open = first ?? (await this.#openRoot(root));
    let path = first === undefined ? root : firstPath;
    for (const name of first === undefined ? names : names.slice(1)) {
      const above = open;
      path = join(path, name);
      try {
        open = await this.#openBelow(above, above.at(name), path, make);
      } finally {
        above.close();
      }
    }
    return open;
  }

  /** A missing inbox is never created here: its disk may not be mounted. */
  async #openRoot(root: string): Promise<DiskFolder> {
    const open = await this.#disk.openFolder(root, "follow").catch(tolerate("ENOENT"));
    if (open === undefined) throw new Fault("INBOX_MISSING", { detail: root });
    try {
      this.#hasProc ||= (await this.#disk.kindOf(open.at("."))) === "folder";
      if (!this.#hasProc) throw new Fault("PROC_MISSING", { detail: open.at("") });
      return open;
    } catch (error) {
      open.close();
      throw error;
    }
  }

  /** `entry` is the path through the open folder above; `path` is the path for people. */
  async #openBelow(above: DiskFolder, entry: string, path: string, make?: MakeFolder): Promise<DiskFolder> {
    const opening = this.#openEntry(entry, path);
    if (make === undefined) return opening;
    const known = await opening.catch(tolerate("ENOENT"));
    if (known !== undefined && this.#durable.has(path)) return known;
    // Another process may create an entry of that name first.
    if (known === undefined) await make(entry).catch(tolerate(...TAKEN));
    const open = known ?? (await this.#openEntry(entry, path));
    try {
      // Its creator may not have synced it: a power cut would remove the delivery with it.
      await this.#syncs.syncOpen(above);
    } catch (error) {
      open.close();
      throw error;
    }
    if (this.#durable.size >= MAX_DURABLE) this.#durable.clear();
    this.#durable.add(path);
    return open;
  }

  async #openEntry(entry: string, path: string): Promise<DiskFolder> {
    return this.#disk.openFolder(entry).catch(async (error: unknown) => {
      tolerate("ENOTDIR", "ELOOP")(error);
      // Only for the text of the fault.
      const kind = await this.#disk.kindOf(entry).catch(() => undefined);
      const found = kind === undefined || kind === "folder" ? "link or a file" : kind;
      throw new Fault("TARGET_UNSAFE", { detail: `${path} is a ${found}`, cause: error });
    });
  }
}

/** The folder above a path, which is empty for an entry of the root, and the last name. */
export function splitPath(path: string): { readonly parent: string; readonly name: string } {
  const at = path.lastIndexOf("/");
  return { parent: path.slice(0, Math.max(at, 0)), name: path.slice(at + 1) };
}

/** Whether a text is the name of an entry, and not a path to another folder. */
export function isPlainName(name: string): boolean {
  return !["", ".", ".."].includes(name) && !/[/\0]/.test(name);
}

/** For people: replaces a path through `/proc/self/fd` with the path of the folder. */
function withPath(error: unknown, path: string): unknown {
  if (!(error instanceof Error && "path" in error)) return error;
  const { dest = error.path } = error as { readonly dest?: unknown };
  return String(dest).startsWith("/proc/self/fd/") ? Object.assign(error, { path, dest: path }) : error;
}

function entryOf(folder: DiskFolder, name: string): string {
  if (!isPlainName(name)) throw new Fault("TARGET_UNSAFE", { detail: JSON.stringify(name) });
  return folder.at(name);
}
