/**
 * Claims of names in the inbox. A rename replaces a file that has the target's name, so before a delivery is placed file
 * by file, or with files beside its folder, each of its names is claimed: `names/DIGEST` is a folder with one empty file,
 * `NAME~R`. A rename creates it, and fails if another claim is there. All attempts at one round share their claims, because
 * only one of them is placed.
 *
 * The path of a claim names its owner. So a process that was paused cannot remove the claim that another delivery has made
 * meanwhile: `unlink` finds no file of its own, and `rmdir` refuses a folder that is not empty.
 *
 * Claims are not synced: a placing claims its names once more. A power cut may leave an empty folder, which claims nothing.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import { type Disk, tryUnlink } from "../base/disk.ts";
import { temporaryName } from "../base/durable.ts";
import { systemCode, tolerate } from "../base/faults.ts";
import { TAKEN } from "../base/inbox-door.ts";
import type { LedgerPaths } from "./paths.ts";

export class Claims {
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;

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
    for (const name of names) await this.#remove(this.#pathOf(name), owner);
  }

  /** Removes the claims of deliveries that are over, and folders that claim nothing. */
  async clear(isOver: (owner: string) => Promise<boolean>): Promise<void> {
    for (const entry of await this.#disk.list(this.#paths.names)) {
      const path = join(this.#paths.names, entry);
      const owner = await this.#ownerOf(path);
      if (owner === undefined || (await isOver(owner))) await this.#remove(path, owner);
    }
  }

  async #takeOne(owner: string, name: string): Promise<"new" | "own" | "taken"> {
    const path = this.#pathOf(name);
    const known = await this.#ownerOf(path);
    if (known !== undefined) return known === owner ? "own" : "taken";
    const temporary = join(this.#paths.temporary, temporaryName());
    await this.#disk.makeFolder(temporary, 0o700);
    try {
      const file = await this.#disk.create(join(temporary, owner), 0o600);
      await file.close();
      await this.#disk.rename(temporary, path);
      return "new";
    } catch (error) {
      await this.#disk.removeTree(temporary);
      if (!TAKEN.includes(systemCode(error))) throw error;
      return (await this.#ownerOf(path)) === owner ? "own" : "taken";
    }
  }

  async #ownerOf(path: string): Promise<string | undefined> {
    const owners = await this.#disk.list(path).catch(tolerate("ENOENT", "ENOTDIR"));
    return owners?.[0];
  }

  async #remove(path: string, owner: string | undefined): Promise<void> {
    if (owner !== undefined) await tryUnlink(this.#disk, join(path, owner));
    await this.#disk.removeFolder(path).catch(tolerate("ENOENT", ...TAKEN));
  }

  #pathOf(name: string): string {
    return join(this.#paths.names, hash("sha256", name, "hex").slice(0, 40));
  }
}
