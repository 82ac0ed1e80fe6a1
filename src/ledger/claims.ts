/**
 * Claims of names in the inboxes. Each name of a delivery is claimed before the round ends, because no other end record may
 * have it, and because a rename would replace another delivery's file. A claim is an empty folder, `names/DIGEST/NAME~R`. It
 * is made elsewhere, and the rename to `names/DIGEST` fails if another claim is there. All attempts at one round share their
 * claims, because only one of them is placed.
 *
 * The path of a claim names its owner. So a process that was paused cannot remove the claim that another delivery has made
 * meanwhile: `rmdir` finds no folder of its own, and refuses `names/DIGEST`, which is not empty.
 *
 * Claims are not synced: a placing claims its names once more. A power cut may leave an empty `names/DIGEST`, which claims
 * nothing.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import type { Disk } from "../base/disk.ts";
import { temporaryName } from "../base/durable.ts";
import { systemCode, tolerate } from "../base/faults.ts";
import { TAKEN } from "../base/inbox-door.ts";
import type { LedgerPaths } from "./paths.ts";

export class Claims {
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  /**
   * Paths of claims that this process has made, so that it need not look for them. Other processes remove such a claim only
   * after its round has ended and was placed. Then nothing is left that this process could place under the name.
   */
  readonly #made = new Set<string>();

  constructor(disk: Disk, paths: LedgerPaths) {
    this.#disk = disk;
    this.#paths = paths;
  }

  /**
   * Claims all of these names, as `foldName` gives them, or none. `owner`: `NAME~R`. Returns the names that nobody had
   * claimed before; `undefined` if another delivery has one.
   */
  async take(owner: string, names: readonly string[]): Promise<string[] | undefined> {
    const made: string[] = [];
    for (const name of names) {
      const result = await this.#takeOne(owner, name);
      if (result === "new") made.push(name);
      if (result !== "taken") continue;
      await this.release(owner, made);
      return undefined;
    }
    return made;
  }

  /** Gives back the names that this delivery has claimed. */
  async release(owner: string, names: readonly string[]): Promise<void> {
    for (const name of names) await this.#remove(this.#folderOf(name), owner);
  }

  /** Removes the claims of deliveries that are over, and folders that claim nothing. */
  async clear(isOver: (owner: string) => Promise<boolean>): Promise<void> {
    // Other processes may have placed some of these rounds: the memory must not grow.
    this.#made.clear();
    for (const entry of await this.#disk.list(this.#paths.names)) {
      const folder = join(this.#paths.names, entry);
      const owner = await this.#ownerOf(folder);
      if (owner === undefined || (await isOver(owner))) await this.#remove(folder, owner);
    }
  }

  async #takeOne(owner: string, name: string): Promise<"new" | "own" | "taken"> {
    const folder = this.#folderOf(name);
    if (this.#made.has(join(folder, owner))) return "own";
    const temporary = join(this.#paths.temporary, temporaryName());
    try {
      await this.#disk.makeFolder(temporary, 0o700);
      await this.#disk.makeFolder(join(temporary, owner), 0o700);
      await this.#disk.rename(temporary, folder);
    } catch (error) {
      await this.#remove(temporary, owner);
      // On a full disk, where no claim can be made, those that were made before still count.
      const known = await this.#ownerOf(folder);
      if (known === undefined && !TAKEN.includes(systemCode(error))) throw error;
      return known === owner ? "own" : "taken";
    }
    this.#made.add(join(folder, owner));
    return "new";
  }

  async #ownerOf(folder: string): Promise<string | undefined> {
    const owners = await this.#disk.list(folder).catch(tolerate("ENOENT", "ENOTDIR"));
    return owners?.[0];
  }

  async #remove(folder: string, owner: string | undefined): Promise<void> {
    if (owner !== undefined) {
      const claim = join(folder, owner);
      this.#made.delete(claim);
      await this.#disk.removeFolder(claim).catch(tolerate("ENOENT"));
    }
    await this.#disk.removeFolder(folder).catch(tolerate("ENOENT", ...TAKEN));
  }

  #folderOf(name: string): string {
    return join(this.#paths.names, hash("sha256", name, "hex").slice(0, 40));
  }
}
