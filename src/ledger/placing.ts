/**
 * Places deliveries in the inboxes.
 *
 * Each part of a delivery claims a free name before the round ends. After that, it is moved to that name with one rename. A
 * delivery of several parts has a stored placement, which gives their order. A delivery of one folder needs none.
 *
 * A part that is no longer in the stage was placed. So any process may place a delivery again at any time, and no part is
 * placed twice. No part replaces a part of another delivery, because its name is claimed. A foreign entry with that name
 * stops the placing until it is moved away; only an entry that appears right before the rename is replaced. When the staged
 * folder and the folder beside it are gone, everything is placed.
 */
import { basename, dirname, join, relative } from "node:path";
import { type Disk, type FolderSyncs, tryRead } from "../base/disk.ts";
import { writeFinished } from "../base/durable.ts";
import { Fault, systemCode, tolerate } from "../base/faults.ts";
import { stat } from "../base/files.ts";
import { foldName } from "../base/fold-name.ts";
import { InboxDoor, type InboxFolder, splitPath, TAKEN } from "../base/inbox-door.ts";
import { formatJson, type LongText } from "../base/long-text.ts";
import { randomHex } from "../base/random.ts";
import { type Sum, sumFile, sumFolder } from "../base/sums.ts";
import { MANIFEST } from "../model/manifest.ts";
import { roundKey } from "../model/outbox.ts";
import {
  type Part,
  type Placement,
  parsePlacement,
  partsOf,
  pathOf,
  placementOfFolder,
} from "../model/placement.ts";
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
  readonly #syncs: FolderSyncs;
  readonly #door: InboxDoor;
  /** The tokens of stages that this process has hashed: until they are placed. */
  readonly #proven = new Set<string>();

  constructor(options: PlacingOptions, syncs: FolderSyncs) {
    this.claims = new Claims(options.disk, options.paths);
    this.#options = options;
    this.#syncs = syncs;
    this.#door = new InboxDoor(options.disk, syncs);
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
      const found = await Promise.all(paths.map((path) => this.#isThere(open.at(splitPath(path).name))));
      if (!found.includes(true)) return true;
      // Only the new claims: another attempt at this round may own the others, and may be placing its parts.
      await this.claims.release(roundKey(id), made);
      return false;
    });
  }

  /** Stores the placement of a stage, with a copy of its manifest, and syncs both. Must precede `seal`. */
  async write(id: StageId, placement: Placement, manifest: LongText): Promise<void> {
    const folder = this.#options.paths.placement(id);
    await this.#options.disk.makeFolder(folder, 0o700).catch(tolerate("EEXIST"));
    await writeFinished(join(folder, MANIFEST), manifest, 0o600);
    await writeFinished(join(folder, PLACEMENT), () => formatJson(placement), 0o600);
    await this.#syncs.sync(folder);
    await this.#syncs.sync(this.#options.paths.placements);
    const beside = this.#options.paths.beside(id);
    if (await this.#isThere(beside)) await this.#syncs.sync(beside);
  }

  /** The placement of a delivery; `undefined` without one, and after `forget`. Throws `RECORD_UNREADABLE`. */
  async find(end: EndRecord): Promise<Placement | undefined> {
    const id = placedStageOf(end);
    return id && this.#read(id);
  }

  /** The folder with a copy of the delivery's manifest, until `forget`; `undefined` without a placement. */
  folderOf(end: EndRecord): string | undefined {
    const id = placedStageOf(end);
    return id && this.#options.paths.placement(id);
  }

  /** The folder with the placement of a staged folder, and a copy of its manifest. It may be missing. */
  placementOf(folder: string): string {
    return join(this.#options.paths.placements, basename(folder));
  }

  /** Removes the placement of a delivery that was picked up. */
  async forget(end: EndRecord): Promise<void> {
    const folder = this.folderOf(end);
    if (folder !== undefined) await this.#options.disk.removeTree(folder);
  }

  async #read(id: StageId): Promise<Placement | undefined> {
    const path = join(this.#options.paths.placement(id), PLACEMENT);
    const text = await tryRead(this.#options.disk, path);
    const placement = text === undefined ? undefined : parsePlacement(text);
    if (text !== undefined && placement === undefined) throw new Fault("RECORD_UNREADABLE", { detail: path });
    return placement;
  }

  /** Whether a part may still have to be placed. */
  async isOpen(id: StageId): Promise<boolean> {
    const { paths } = this.#options;
    return (await this.#isThere(paths.staged(id))) || this.#isThere(paths.beside(id));
  }

  /**
   * Places all parts that are left. `root`: its inbox. `proof`: the sum of what this process has staged. Throws
   * `CONTENT_CHANGED` before anything is moved, `TARGET_TAKEN`, `INBOX_MISSING` and `INBOX_APART`.
   */
  async place(id: StageId, end: EndRecord, root: string, proof?: Sum): Promise<void> {
    const placement =
      end.placement === undefined ? placementOfFolder(end.folder ?? "") : await this.#read(id);
    // The delivery was placed and picked up, and a power cut has brought back its folders, perhaps with what a consumer took.
    if (placement === undefined) {
      await this.#options.disk.removeTree(this.#options.paths.staged(id));
      return this.drop(id);
    }
    const { parent, phases } = placement;
    if (proof !== undefined && proof === end.sum) this.#proven.add(id.token);
    const work = async (open: InboxFolder) => {
      if (!this.#proven.has(id.token)) await this.#prove(id, end, placement);
      this.#proven.add(id.token);
      for (const parts of phases) {
        for (const part of parts) await this.#placePart(id, part, open, pathOf(placement, part.as), root);
        // A process that placed these parts may have stopped before the sync, so it is done in any case.
        await open.sync();
      }
    };
    if (await this.#hasPart(id, placement)) await this.#inMadeFolder(root, parent, end, work);
    // A consumer may have taken everything, and removed the folder.
    else await this.#door.inFolder(root, parent, work);
    this.#proven.delete(id.token);
    if (end.placement !== undefined) await this.#removeStage(id);
    await this.claims.release(
      roundKey(id),
      partsOf(placement).map(({ as }) => this.#claimed(root, pathOf(placement, as))),
    );
  }

  /** Removes the placement of a stage, and the files beside it. */
  async drop(id: StageId): Promise<void> {
    await this.#options.disk.removeTree(this.#options.paths.placement(id));
    await this.#options.disk.removeTree(this.#options.paths.beside(id));
  }

  async #hasPart(id: StageId, placement: Placement): Promise<boolean> {
    for (const part of partsOf(placement)) {
      if (await this.#isThere(this.#source(id, part))) return true;
    }
    return false;
  }

  /** Hashes all parts that are left. Throws `CONTENT_CHANGED`. */
  async #prove(id: StageId, end: EndRecord, placement: Placement): Promise<void> {
    for (const part of partsOf(placement)) {
      const source = this.#source(id, part);
      const { from, sum = end.sum } = part;
      // An earlier version has left no sum.
      if (sum === undefined || !(await this.#isThere(source))) continue;
      const found = from === "folder" ? await sumFolder(source) : await sumFile(source);
      // Another process may have placed it meanwhile.
      if (found !== sum && (await this.#isThere(source)))
        throw new Fault("CONTENT_CHANGED", { detail: source });
    }
  }

  async #isThere(path: string): Promise<boolean> {
    return (await this.#options.disk.kindOf(path)) !== undefined;
  }

  /** Moves a part to its name, unless that was done before. `path`: of the name, from the inbox's root. */
  async #placePart(id: StageId, part: Part, open: InboxFolder, path: string, root: string): Promise<void> {
    const source = this.#source(id, part);
    const target = open.at(part.as);
    while (await this.#isThere(source)) {
      const isOurs = (await this.claims.take(roundKey(id), [this.#claimed(root, path)])) !== undefined;
      if (!isOurs || (await this.#isThere(target))) {
        // Another process may have placed the part meanwhile.
        if (!(await this.#isThere(source))) return;
        throw new Fault("TARGET_TAKEN", { detail: join(root, path) });
      }
      try {
        return await this.#options.disk.rename(source, target);
      } catch (error) {
        const code = systemCode(error);
        if (code === "EXDEV") throw new Fault("INBOX_APART", { detail: root, cause: error });
        // ENOENT: another process has placed the part, or a consumer has removed the target folder.
        const isPlaced = code === "ENOENT" && !(await this.#isThere(source));
        if (!isPlaced && !TAKEN.includes(code)) throw error;
      }
    }
  }

  #source(id: StageId, { from, name }: Part): string {
    if (from === "beside") return join(this.#options.paths.beside(id), name);
    return from === "folder" ? this.#options.paths.staged(id) : join(this.#options.paths.staged(id), name);
  }

  /** The name to claim: relative to the work folder, because other machines may mount inboxes elsewhere. */
  #claimed(root: string, path: string): string {
    return foldName(relative(this.#options.paths.work, join(root, path)));
  }

  /** Its folders are empty, because every part was moved. */
  async #removeStage(id: StageId): Promise<void> {
    for (const folder of [this.#options.paths.staged(id), this.#options.paths.beside(id)]) {
      await this.#options.disk.removeFolder(folder).catch(tolerate("ENOENT"));
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
    if (isInherited) return this.#options.disk.makeFolder(path, mode);
    const made = join(this.#options.paths.staging, `${randomHex(8)}${PARENT}`);
    await this.#options.disk.makeFolder(made, mode);
    try {
      if (gid !== undefined) await this.#options.disk.setGroup(made, gid);
      await this.#options.disk.rename(made, path);
    } catch (error) {
      // The next start removes it.
      await this.#options.disk.removeFolder(made).catch(() => {});
      throw systemCode(error) === "EXDEV" ? new Fault("INBOX_APART", { detail: path, cause: error }) : error;
    }
  }
}

function placedStageOf(end: EndRecord): StageId | undefined {
  return end.placement === undefined ? undefined : stageOf(end);
}
