/**
 * Finds a free folder in an inbox for each delivery, creates the folders above it, and moves the staged folder there.
 */

import { dirname, join } from "node:path";
import type { Disk, FolderSyncs } from "../base/disk.ts";
import { Fault, systemCode } from "../base/faults.ts";
import { stat } from "../base/files.ts";
import { InboxDoor, splitPath, TAKEN } from "../base/inbox-door.ts";
import { randomHex } from "../base/random.ts";
import type { Routed } from "../model/record.ts";
import type { LedgerPaths } from "./paths.ts";

export interface TargetsOptions {
  readonly disk: Disk;
  readonly paths: LedgerPaths;
  /** The common inbox. */
  readonly root: string;
  /** The mode of delivered folders, and of the folders above them that Inlet creates. */
  folderMode(transfer: Routed): number;
  /** The group of the folders above them; missing: left as it is. */
  folderGroup?(transfer: Routed): number | undefined;
}

/** The suffix of folders in staging that are about to become parents of deliveries. */
export const PARENT = ".parent";
const SET_GROUP_ID = 0o2000;

export class Targets {
  readonly #options: TargetsOptions;
  readonly #disk: Disk;
  readonly door: InboxDoor;
  /** Paths of folders that are reserved for deliveries of this process. */
  readonly #taken = new Set<string>();

  constructor(options: TargetsOptions, syncs: FolderSyncs) {
    this.#options = options;
    this.#disk = options.disk;
    this.door = new InboxDoor(options.disk, syncs);
  }

  /**
   * Reserves a folder in an inbox, by default the common one, in this process until `giveBack`: `folder` itself, or the
   * first free one of `FOLDER-2`, `FOLDER-3` …. Creates the folders above it. Throws `TARGET_UNSAFE` if a folder on the
   * way is a link, and `INBOX_MISSING`.
   */
  takeFolder(folder: string, transfer: Routed, root = this.#options.root): Promise<string> {
    const { parent, name } = splitPath(folder);
    return this.door.inMadeFolder(root, parent, this.makeFor(transfer), async (open) => {
      for (let number = 1; ; number++) {
        const path = join(root, numbered(folder, number));
        if (this.#taken.has(path)) continue;
        this.#taken.add(path);
        let isFree = false;
        try {
          isFree = await this.#isFree(open.at(numbered(name, number)));
        } finally {
          if (!isFree) this.#taken.delete(path);
        }
        if (isFree) return numbered(folder, number);
      }
    });
  }

  giveBack(folder: string, root = this.#options.root): void {
    this.#taken.delete(join(root, folder));
  }

  /**
   * Moves a staged folder to the wanted folder, or the first free one. `undefined` if the staged folder is gone. Throws
   * `TARGET_UNSAFE`, `INBOX_MISSING` and `INBOX_APART`.
   */
  move(staged: string, wanted: string, transfer: Routed, root: string): Promise<string | undefined> {
    const { parent, name } = splitPath(wanted);
    return this.door.inMadeFolder(root, parent, this.makeFor(transfer), async (open) => {
      // `takeFolder` has just checked a reserved folder: it is checked again only if the rename fails.
      for (let [number, isFree] = [1, this.#taken.has(join(root, wanted))]; ; isFree = false) {
        const target = open.at(numbered(name, number));
        if (!isFree && !(await this.#isFree(target))) {
          number++;
          continue;
        }
        const result = await this.#rename(staged, target, root);
        if (result === "gone") return undefined;
        if (result === "taken") continue;
        await open.sync();
        return numbered(wanted, number);
      }
    });
  }

  /** `taken`: another delivery has this name. `gone`: the staged folder was moved before. */
  async #rename(staged: string, target: string, root: string): Promise<"moved" | "taken" | "gone"> {
    try {
      await this.#disk.rename(staged, target);
      return "moved";
    } catch (error) {
      const code = systemCode(error);
      if (TAKEN.includes(code)) return "taken";
      if (code === "EXDEV") throw new Fault("INBOX_APART", { detail: root, cause: error });
      if (code === "ENOENT" && (await this.#isFree(staged))) return "gone";
      throw error;
    }
  }

  async #isFree(path: string): Promise<boolean> {
    return (await this.#disk.kindOf(path)) === undefined;
  }

  /**
   * Creates the folders above a delivery. Each comes from staging by a rename, so that none appears in the empty mount
   * point of a disk. After a crash, recovery removes it in staging.
   */
  readonly makeFor = (transfer: Routed) => async (path: string) => {
    const [mode, gid] = [this.#options.folderMode(transfer), this.#options.folderGroup?.(transfer)];
    // A folder in one with the set-group-id bit gets its group from there.
    const isInherited = gid === undefined && ((await stat(dirname(path))).mode & SET_GROUP_ID) !== 0;
    if (isInherited) return this.#disk.makeFolder(path, mode);
    const made = join(this.#options.paths.staging, `${randomHex(8)}${PARENT}`);
    await this.#disk.makeFolder(made, mode);
    try {
      if (gid !== undefined) await this.#disk.setGroup(made, gid);
      await this.#disk.rename(made, path);
    } catch (error) {
      // A start removes it.
      await this.#disk.removeFolder(made).catch(() => {});
      throw systemCode(error) === "EXDEV" ? new Fault("INBOX_APART", { detail: path, cause: error }) : error;
    }
  };
}

/** `FOLDER`, then `FOLDER-2`, `FOLDER-3` … */
function numbered(folder: string, number: number): string {
  return number === 1 ? folder : `${folder}-${number}`;
}
