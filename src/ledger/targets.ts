/**
 * Finds a free folder in an inbox for each delivery, creates the folders above it, and moves the staged folder there.
 */

import { dirname, join } from "node:path";
import type { Disk, FolderSyncs } from "../base/disk.ts";
import { Fault, systemCode } from "../base/faults.ts";
import { randomHex } from "../base/random.ts";
import type { Routed } from "../model/record.ts";

export interface TargetsOptions {
  readonly disk: Disk;
  readonly syncs: FolderSyncs;
  /** The common inbox. */
  readonly root: string;
  /** For folders that get their name only when they are complete. */
  readonly staging: string;
  /** Of the folders above deliveries that Inlet creates. */
  folderMode(transfer: Routed): number;
  /** Their group; missing: left as it is. */
  folderGroup?(transfer: Routed): number | undefined;
}

/** Folders that are remembered as synced. Beyond that, all are forgotten. */
const MAX_DURABLE = 10_000;

/** The suffix of folders in staging that are about to become parents of deliveries. */
export const PARENT = ".parent";
/** Why a folder cannot get a name. */
const TAKEN: ReadonlySet<string> = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR"]);

export class Targets {
  readonly #options: TargetsOptions;
  readonly #disk: Disk;
  /** Paths of folders that are reserved for deliveries of this process. */
  readonly #taken = new Set<string>();
  /** Paths of folders above deliveries that this process has synced. */
  readonly #durable = new Set<string>();

  constructor(options: TargetsOptions) {
    this.#options = options;
    this.#disk = options.disk;
  }

  /**
   * Creates the folders above a target. Returns the target itself, or the first free one of `FOLDER-2`, `FOLDER-3` …,
   * and reserves it in this process until `giveBack`. Throws `TARGET_UNSAFE` if a folder on the way is a link, and
   * `INBOX_MISSING`.
   */
  async takeFolder(folder: string, transfer: Routed, root = this.#options.root): Promise<string> {
    await this.prepareParents(root, folder, transfer);
    for (let number = 1; ; number++) {
      const candidate = numbered(folder, number);
      const path = join(root, candidate);
      if (this.#taken.has(path)) continue;
      this.#taken.add(path);
      const kind = await this.#disk.kindOf(path);
      if (kind === undefined) return candidate;
      this.#taken.delete(path);
    }
  }

  giveBack(folder: string, root = this.#options.root): void {
    this.#taken.delete(join(root, folder));
  }

  /**
   * Moves a staged folder to the wanted folder, or the first free one. `undefined` if the staged folder is gone. Throws
   * `TARGET_UNSAFE`, `INBOX_MISSING` and `INBOX_APART`.
   */
  async move(staged: string, wanted: string, transfer: Routed, root: string): Promise<string | undefined> {
    // `takeFolder` has just checked a reserved folder: it is checked again only if the rename fails.
    for (let [number, isFree] = [1, this.#taken.has(join(root, wanted))]; ; isFree = false) {
      const folder = numbered(wanted, number);
      if (!isFree) {
        await this.prepareParents(root, folder, transfer);
        if ((await this.#disk.kindOf(join(root, folder))) !== undefined) {
          number++;
          continue;
        }
      }
      try {
        await this.#disk.rename(staged, join(root, folder));
      } catch (error) {
        if (await this.#isGone(staged, root, error)) return undefined;
        continue;
      }
      await this.#options.syncs.sync(dirname(join(root, folder))).catch((error: unknown) => {
        // A consumer has already taken the delivery and removed the folder above it.
        if (systemCode(error) !== "ENOENT") throw error;
      });
      return folder;
    }
  }

  /** After a refused rename: whether the staged folder is gone. False if another rename may succeed. */
  async #isGone(staged: string, root: string, error: unknown): Promise<boolean> {
    const code = systemCode(error);
    // Another delivery may have taken this name, or a consumer may have removed the folder above it.
    if (TAKEN.has(code)) return false;
    if (code === "EXDEV") throw new Fault("INBOX_APART", { detail: root, cause: error });
    if (code !== "ENOENT") throw error;
    if ((await this.#disk.kindOf(staged)) === undefined) return true;
    await this.#demandRoot(root);
    return false;
  }

  /** Creates each missing folder above the target, from the inbox's root on. The root itself must exist. Throws `TARGET_UNSAFE`. */
  async prepareParents(root: string, folder: string, transfer: Routed): Promise<void> {
    const segments = folder.split("/").slice(0, -1);
    for (let depth = 1; depth <= segments.length; depth++) {
      const path = join(root, ...segments.slice(0, depth));
      const kind = await this.#disk.kindOf(path);
      if (kind === "folder" && this.#durable.has(path)) continue;
      if (kind !== undefined && kind !== "folder") {
        throw new Fault("TARGET_UNSAFE", { detail: `${path} is a ${kind}` });
      }
      if (kind === undefined && !(await this.#tryMake(path, transfer, root))) {
        // Another process has created an entry of that name: check it.
        depth--;
        continue;
      }
      // Its creator may not have synced it: a power cut would remove the delivery with it.
      await this.#options.syncs.sync(dirname(path));
      if (this.#durable.size >= MAX_DURABLE) this.#durable.clear();
      this.#durable.add(path);
    }
  }

  /** False if the name is taken, or the attempt has to be repeated. */
  async #tryMake(path: string, transfer: Routed, root: string): Promise<boolean> {
    const [mode, gid] = [this.#options.folderMode(transfer), this.#options.folderGroup?.(transfer)];
    try {
      if (gid === undefined) await this.#disk.makeFolder(path, mode);
      else await this.#makeForGroup(path, mode, gid);
      return true;
    } catch (error) {
      const code = systemCode(error);
      if (TAKEN.has(code)) return false;
      if (code !== "ENOENT") throw error;
      await this.#demandRoot(root);
      // Recovery, perhaps in another process, may have removed the folder before it got its name.
      if (gid === undefined || (await this.#disk.kindOf(dirname(path))) === undefined) throw error;
      return false;
    }
  }

  /** The folder appears with its group, by a rename. After a crash, recovery removes the folder in staging. */
  async #makeForGroup(path: string, mode: number, gid: number): Promise<void> {
    const made = join(this.#options.staging, `${randomHex(8)}${PARENT}`);
    await this.#disk.makeFolder(made, mode);
    try {
      await this.#disk.setGroup(made, gid);
      await this.#disk.rename(made, path);
    } catch (error) {
      await this.#disk.removeFolder(made).catch(() => {});
      throw error;
    }
  }

  /** A missing inbox is never created here: its disk may not be mounted. */
  async #demandRoot(root: string): Promise<void> {
    if ((await this.#disk.kindOf(root)) === undefined) throw new Fault("INBOX_MISSING", { detail: root });
  }
}

/** `FOLDER`, then `FOLDER-2`, `FOLDER-3` … */
function numbered(folder: string, number: number): string {
  return number === 1 ? folder : `${folder}-${number}`;
}
