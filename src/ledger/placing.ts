/**
 * Places deliveries in the inboxes.
 *
 * A delivery of one folder gets a free name, and one rename. A delivery of several parts has a placement, which names
 * each part before the round ends. After that, each part is moved to its name with one rename, in the order of the
 * placement.
 *
 * A part that is no longer in the stage was placed, so any process may do this, at any time and any number of times, and no
 * part is placed twice. No part replaces one of another delivery, because its name is claimed. A foreign entry of that name
 * stops the placing until it is moved away, unless it appears right before the rename, which replaces it. When the staged
 * folder and the folder beside it are gone, everything is placed.
 */
import { basename, dirname, join, relative } from "node:path";
import { type Disk, type FolderSyncs, tryRead } from "../base/disk.ts";
import { Fault, systemCode, tolerate } from "../base/faults.ts";
import { stat } from "../base/files.ts";
import { foldName } from "../base/fold-name.ts";
import { InboxDoor, type InboxFolder, splitPath, TAKEN } from "../base/inbox-door.ts";
import { blocksOf, formatJson, type LongText } from "../base/long-text.ts";
import { randomHex } from "../base/random.ts";
import { MANIFEST } from "../model/manifest.ts";
import { roundKey } from "../model/outbox.ts";
import { type Part, type Placement, parsePlacement, partsOf, pathOf } from "../model/placement.ts";
import type { Routed } from "../model/record.ts";
import { Claims } from "./claims.ts";
import { type EndRecord, stageOf } from "./format.ts";
import { type LedgerPaths, PLACEMENT, type StageId } from "./paths.ts";

export interface PlacingOptions {
  readonly disk: Disk;
  readonly paths: LedgerPaths;
  /** The common inbox. */
  readonly root: string;
  /** The mode of delivered folders, and of the folders above them that Inlet creates, as configured now. */
  folderMode(transfer: Routed): number;
  /** The group of the folders above them, as configured now; missing: left as it is. */
  folderGroup?(transfer: Routed): number | undefined;
}

/** The suffix of folders in staging that are about to become parents of deliveries. */
export const PARENT = ".parent";
const SET_GROUP_ID = 0o2000;

export class Placing {
  readonly claims: Claims;
  readonly #options: PlacingOptions;
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  readonly #syncs: FolderSyncs;
  readonly #door: InboxDoor;
  /** Paths of folders that are reserved for deliveries of this process. */
  readonly #taken = new Set<string>();

  constructor(options: PlacingOptions, syncs: FolderSyncs) {
    const { disk, paths } = options;
    this.claims = new Claims(disk, paths);
    this.#options = options;
    this.#disk = disk;
    this.#paths = paths;
    this.#syncs = syncs;
    this.#door = new InboxDoor(disk, syncs);
  }

  /**
   * Reserves a folder in an inbox, by default the common one, in this process until `giveBack`: `folder` itself, or the
   * first free one of `FOLDER-2`, `FOLDER-3` …. Creates the folders above it. Throws `TARGET_UNSAFE` if a folder on the
   * way is a link, and `INBOX_MISSING`.
   */
  takeFolder(folder: string, transfer: Routed, root = this.#options.root): Promise<string> {
    const { parent, name } = splitPath(folder);
    return this.#inMadeFolder(root, parent, transfer, async (open) => {
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
    return this.#inMadeFolder(root, parent, transfer, async (open) => {
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
   * Claims names for a delivery, all in one folder, as paths from the inbox's root. False, without a claim, if another
   * delivery or any file has one of them. Creates the folders above them. The names stay claimed until the delivery is
   * placed. Throws `TARGET_UNSAFE`.
   */
  async claim(
    id: Pick<StageId, "name" | "round">,
    paths: readonly string[],
    transfer: Routed,
    root = this.#options.root,
  ): Promise<boolean> {
    const { parent } = splitPath(paths[0] ?? "");
    const names = paths.map((path) => this.#claimed(root, path));
    return this.#inMadeFolder(root, parent, transfer, async (open) => {
      const made = await this.claims.take(roundKey(id), names);
      if (made === undefined) return false;
      const kinds = paths.map((path) => this.#disk.kindOf(open.at(splitPath(path).name)));
      if ((await Promise.all(kinds)).every((kind) => kind === undefined)) return true;
      // Another attempt at this round may have claimed the others, and may be placing them.
      await this.claims.release(roundKey(id), made);
      return false;
    });
  }

  /** Stores the placement of a stage, with a copy of its manifest, and syncs both. Must precede `seal`. */
  async write(id: StageId, placement: Placement, manifest: LongText): Promise<void> {
    const folder = this.#paths.placement(id);
    await this.#disk.makeFolder(folder, 0o700).catch(tolerate("EEXIST"));
    await this.#write(join(folder, MANIFEST), manifest);
    await this.#write(join(folder, PLACEMENT), () => formatJson(placement));
    await this.#syncs.sync(folder);
    await this.#syncs.sync(this.#paths.placements);
    if ((await this.#disk.kindOf(this.#paths.beside(id))) !== undefined) {
      await this.#syncs.sync(this.#paths.beside(id));
    }
  }

  /** The placement of a delivery; `undefined` without one, and after `forget`. Throws `RECORD_UNREADABLE`. */
  async find(end: EndRecord): Promise<Placement | undefined> {
    const id = placedStageOf(end);
    return id && this.#read(id);
  }

  /** The folder with a copy of the delivery's manifest, until `forget`; `undefined` without a placement. */
  folderOf(end: EndRecord): string | undefined {
    const id = placedStageOf(end);
    return id && this.#paths.placement(id);
  }

  /** The folder with the placement of a staged folder, and a copy of its manifest. It may be missing. */
  placementOf(folder: string): string {
    return join(this.#paths.placements, basename(folder));
  }

  /** Removes the placement of a delivery that was picked up. */
  async forget(end: EndRecord): Promise<void> {
    const folder = this.folderOf(end);
    if (folder !== undefined) await this.#disk.removeTree(folder);
  }

  async #read(id: StageId): Promise<Placement | undefined> {
    const path = join(this.#paths.placement(id), PLACEMENT);
    const text = await tryRead(this.#disk, path);
    const placement = text === undefined ? undefined : parsePlacement(text);
    if (text !== undefined && placement === undefined) throw new Fault("RECORD_UNREADABLE", { detail: path });
    return placement;
  }

  /** Whether a part may still have to be placed. */
  async isOpen(id: StageId): Promise<boolean> {
    const kinds = [this.#paths.staged(id), this.#paths.beside(id)].map((path) => this.#disk.kindOf(path));
    return (await Promise.all(kinds)).some((kind) => kind !== undefined);
  }

  /** Places all parts that are left. `root`: its inbox. Throws `TARGET_TAKEN`, and the system's errors. */
  async place(id: StageId, transfer: Routed, root: string): Promise<void> {
    const placement = await this.#read(id);
    // It was placed and picked up: a power cut has brought back the empty folders only.
    if (placement === undefined) return this.#removeStage(id);
    const { parent, phases } = placement;
    const work = async (open: InboxFolder) => {
      for (const parts of phases) {
        for (const part of parts) await this.#placePart(id, part, open, pathOf(placement, part.as), root);
        // A process that placed these parts may have stopped before the sync, so it is done in any case.
        await open.sync();
      }
    };
    if (await this.#hasPart(id, placement)) await this.#inMadeFolder(root, parent, transfer, work);
    // A consumer may have taken everything, and removed the folder.
    else await this.#door.inFolder(root, parent, work);
    await this.#removeStage(id);
    await this.claims.release(
      roundKey(id),
      partsOf(placement).map(({ as }) => this.#claimed(root, pathOf(placement, as))),
    );
  }

  /** Removes the placement of a stage, and the files beside it. */
  async drop(id: StageId): Promise<void> {
    await this.#disk.removeTree(this.#paths.placement(id));
    await this.#disk.removeTree(this.#paths.beside(id));
  }

  async #hasPart(id: StageId, placement: Placement): Promise<boolean> {
    for (const part of partsOf(placement)) {
      if ((await this.#disk.kindOf(this.#source(id, part))) !== undefined) return true;
    }
    return false;
  }

  /** `path`: from the inbox's root. */
  async #placePart(id: StageId, part: Part, open: InboxFolder, path: string, root: string): Promise<void> {
    const source = this.#source(id, part);
    const target = open.at(part.as);
    while ((await this.#disk.kindOf(source)) !== undefined) {
      const isOurs = (await this.claims.take(roundKey(id), [this.#claimed(root, path)])) !== undefined;
      const isTaken = !isOurs || (await this.#disk.kindOf(target)) !== undefined;
      if (isTaken) {
        // Another process may have placed the part meanwhile.
        if ((await this.#disk.kindOf(source)) === undefined) return;
        throw new Fault("TARGET_TAKEN", { detail: join(root, path) });
      }
      try {
        return await this.#disk.rename(source, target);
      } catch (error) {
        const code = systemCode(error);
        // The part may have been placed meanwhile. Without it, a consumer has removed the folder that it goes to.
        const isGone = code === "ENOENT" && (await this.#disk.kindOf(source)) === undefined;
        if (!isGone && !TAKEN.includes(code)) throw error;
      }
    }
  }

  #source(id: StageId, { from, name }: Part): string {
    if (from === "beside") return join(this.#paths.beside(id), name);
    return from === "folder" ? this.#paths.staged(id) : join(this.#paths.staged(id), name);
  }

  /** A name among all deliveries: from the work folder, because inboxes may be mounted elsewhere on other machines. */
  #claimed(root: string, path: string): string {
    return foldName(relative(this.#paths.work, join(root, path)));
  }

  /** Its folders are empty, because every part was moved. */
  async #removeStage(id: StageId): Promise<void> {
    for (const folder of [this.#paths.staged(id), this.#paths.beside(id)]) {
      await this.#disk.removeFolder(folder).catch(tolerate("ENOENT"));
    }
  }

  /** Replaces the file that an earlier attempt with this stage may have left. */
  async #write(path: string, text: LongText): Promise<void> {
    const created = await this.#disk.create(path, 0o600).catch(tolerate("EEXIST"));
    const file = created ?? (await this.#disk.truncate(path));
    try {
      for await (const block of blocksOf(text)) await file.write(block);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /**
   * Works in a folder of an inbox, and creates it if it is missing. Each new folder comes from staging by a rename, so that
   * none appears in the empty mount point of a disk. After a crash, recovery removes it in staging.
   */
  #inMadeFolder<Result>(
    root: string,
    folder: string,
    transfer: Routed,
    work: (open: InboxFolder) => Promise<Result>,
  ): Promise<Result> {
    return this.#door.inMadeFolder(root, folder, (path) => this.#make(path, transfer), work);
  }

  async #make(path: string, transfer: Routed): Promise<void> {
    const [mode, gid] = [this.#options.folderMode(transfer), this.#options.folderGroup?.(transfer)];
    // A folder in one with the set-group-id bit gets its group from there.
    const isInherited = gid === undefined && ((await stat(dirname(path))).mode & SET_GROUP_ID) !== 0;
    if (isInherited) return this.#disk.makeFolder(path, mode);
    const made = join(this.#paths.staging, `${randomHex(8)}${PARENT}`);
    await this.#disk.makeFolder(made, mode);
    try {
      if (gid !== undefined) await this.#disk.setGroup(made, gid);
      await this.#disk.rename(made, path);
    } catch (error) {
      // A start removes it.
      await this.#disk.removeFolder(made).catch(() => {});
      throw systemCode(error) === "EXDEV" ? new Fault("INBOX_APART", { detail: path, cause: error }) : error;
    }
  }
}

function placedStageOf(end: EndRecord): StageId | undefined {
  return end.placement === undefined ? undefined : stageOf(end);
}

/** `FOLDER`, then `FOLDER-2`, `FOLDER-3` … */
function numbered(folder: string, number: number): string {
  return number === 1 ? folder : `${folder}-${number}`;
}
