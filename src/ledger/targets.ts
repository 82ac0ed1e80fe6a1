/**
 * Finds a free folder in the inbox for each delivery, creates the folders above it, and moves the staged folder there.
 */
import { dirname, join } from "node:path";
import type { Disk, EntryKind, FolderSyncs } from "../base/disk.ts";
import { Fault, systemCode } from "../base/faults.ts";

export interface TargetsOptions {
  readonly disk: Disk;
  readonly syncs: FolderSyncs;
  /** The inbox. */
  readonly root: string;
  /** Of the folders above deliveries that Inlet creates. */
  folderMode(mailbox: string): number;
}

/** Folders that are remembered as synced. Beyond that, all are forgotten. */
const MAX_DURABLE = 10_000;

export class Targets {
  readonly #options: TargetsOptions;
  readonly #disk: Disk;
  /** Folders that are reserved for deliveries of this process. */
  readonly #taken = new Set<string>();
  /** Folders above deliveries that this process has synced. */
  readonly #durable = new Set<string>();

  constructor(options: TargetsOptions) {
    this.#options = options;
    this.#disk = options.disk;
  }

  /**
   * Creates the folders above a target. Returns the target itself, or the first free one of `FOLDER-2`, `FOLDER-3` …,
   * and reserves it in this process until `giveBack`. Throws `TARGET_UNSAFE` if a folder on the way is a link.
   */
  async takeFolder(folder: string, mailbox: string): Promise<string> {
    await this.prepareParents(folder, mailbox);
    for (let number = 1; ; number++) {
      const candidate = numbered(folder, number);
      if (this.#taken.has(candidate)) continue;
      this.#taken.add(candidate);
      const kind = await this.#kindInInbox(candidate);
      if (kind === undefined) return candidate;
      this.#taken.delete(candidate);
    }
  }

  giveBack(folder: string): void {
    this.#taken.delete(folder);
  }

  /** Moves a staged folder to the wanted folder, or the first free one. `undefined` if the staged folder is gone. */
  async move(staged: string, wanted: string, mailbox: string): Promise<string | undefined> {
    const { root } = this.#options;
    // `takeFolder` has just checked a reserved folder: it is checked again only if the rename fails.
    for (let [number, isFree] = [1, this.#taken.has(wanted)]; ; isFree = false) {
      const folder = numbered(wanted, number);
      if (!isFree) {
        await this.prepareParents(folder, mailbox);
        if ((await this.#kindInInbox(folder)) !== undefined) {
          number++;
          continue;
        }
      }
      try {
        await this.#disk.rename(staged, join(root, folder));
      } catch (error) {
        const code = systemCode(error);
        // Another delivery may have taken this name, or a consumer may have removed the folder above it.
        if (["EEXIST", "ENOTEMPTY", "ENOTDIR"].includes(code)) continue;
        if (code !== "ENOENT") throw error;
        if ((await this.#disk.kindOf(staged)) === undefined) return undefined;
        continue;
      }
      await this.#options.syncs.sync(dirname(join(root, folder))).catch((error: unknown) => {
        // A consumer has already taken the delivery and removed the folder above it.
        if (systemCode(error) !== "ENOENT") throw error;
      });
      return folder;
    }
  }

  /** Creates each missing folder above the target, from the inbox's root on. Throws `TARGET_UNSAFE`. */
  async prepareParents(folder: string, mailbox: string): Promise<void> {
    const segments = folder.split("/").slice(0, -1);
    for (let depth = 1; depth <= segments.length; depth++) {
      const above = segments.slice(0, depth).join("/");
      const kind = await this.#kindInInbox(above);
      if (kind === "folder" && this.#durable.has(above)) continue;
      const path = join(this.#options.root, above);
      if (kind !== undefined && kind !== "folder") {
        throw new Fault("TARGET_UNSAFE", { detail: `${path} is a ${kind}` });
      }
      if (kind === undefined && !(await this.#tryMake(path, mailbox))) {
        // Another process has created an entry of that name: check it.
        depth--;
        continue;
      }
      // Its creator may not have synced it: a power cut would remove the delivery with it.
      await this.#options.syncs.sync(dirname(path));
      if (this.#durable.size >= MAX_DURABLE) this.#durable.clear();
      this.#durable.add(above);
    }
  }

  /** False if the name is taken. */
  async #tryMake(path: string, mailbox: string): Promise<boolean> {
    try {
      await this.#disk.makeFolder(path, this.#options.folderMode(mailbox));
      return true;
    } catch (error) {
      if (systemCode(error) !== "EEXIST") throw error;
      return false;
    }
  }

  #kindInInbox(folder: string): Promise<EntryKind | undefined> {
    return this.#disk.kindOf(join(this.#options.root, folder));
  }
}

/** `FOLDER`, then `FOLDER-2`, `FOLDER-3` … */
function numbered(folder: string, number: number): string {
  return number === 1 ? folder : `${folder}-${number}`;
}
