/**
 * Places a delivery of several parts, after its round has ended: moves each part to its name with one rename,
 * in the order of its placement.
 *
 * A part that is no longer in the stage was placed, so any process may do this, at any time and any number of times, and no
 * part is placed twice. No part replaces one of another delivery, because its name is claimed. A foreign entry of that name
 * stops the placing until it is moved away, unless it appears right before the rename, which replaces it. When the staged
 * folder and the folder beside it are gone, everything is placed.
 */
import { basename, join, relative } from "node:path";
import { type Disk, type FolderSyncs, tryRead } from "../base/disk.ts";
import { Fault, systemCode, tolerate } from "../base/faults.ts";
import { foldName } from "../base/fold-name.ts";
import { type InboxFolder, splitPath, TAKEN } from "../base/inbox-door.ts";
import { blocksOf, formatJson, type LongText } from "../base/long-text.ts";
import { MANIFEST } from "../model/manifest.ts";
import { roundKey } from "../model/outbox.ts";
import { type Part, type Placement, parsePlacement, partsOf, pathOf } from "../model/placement.ts";
import type { Routed } from "../model/record.ts";
import { Claims } from "./claims.ts";
import { type EndRecord, stageOf } from "./format.ts";
import { type LedgerPaths, PLACEMENT, type StageId } from "./paths.ts";
import type { Targets, TargetsOptions } from "./targets.ts";

export class Placing {
  readonly claims: Claims;
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  /** The common inbox. */
  readonly #root: string;
  readonly #syncs: FolderSyncs;
  readonly #targets: Targets;

  constructor({ disk, paths, root }: TargetsOptions, syncs: FolderSyncs, targets: Targets) {
    this.claims = new Claims(disk, paths);
    this.#disk = disk;
    this.#paths = paths;
    this.#root = root;
    this.#syncs = syncs;
    this.#targets = targets;
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
    root = this.#root,
  ): Promise<boolean> {
    const { parent } = splitPath(paths[0] ?? "");
    const names = paths.map((path) => this.#claimed(root, path));
    const { door, makeFor } = this.#targets;
    return door.inMadeFolder(root, parent, makeFor(transfer), async (open) => {
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
    const { door, makeFor } = this.#targets;
    if (await this.#hasPart(id, placement)) await door.inMadeFolder(root, parent, makeFor(transfer), work);
    // A consumer may have taken everything, and removed the folder.
    else await door.inFolder(root, parent, work);
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
}

function placedStageOf(end: EndRecord): StageId | undefined {
  return end.placement === undefined ? undefined : stageOf(end);
}
