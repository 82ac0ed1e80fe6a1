/**
 * Claims of names in the inbox. A rename replaces a file that has the target's name, so before a delivery is placed file
 * by file, or with files beside its folder, each of its names is claimed: `names/DIGEST` is a file that must not exist
 * yet, and holds `NAME~R`. All attempts at one round share their claims, because only one of them is placed.
 *
 * Claims are not synced: a placing claims its names once more, and recovery removes the claims that a power cut has emptied.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import { type Disk, meansNoLinks, tryRead, tryUnlink } from "../base/disk.ts";
import { temporaryName } from "../base/durable.ts";
import { systemCode } from "../base/faults.ts";
import type { LedgerPaths } from "./paths.ts";

/** The name of a transfer ends with a digest. */
const OWNER = /^.*\.[0-9a-f]{32}~\d+$/;

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
    for (const name of names) {
      const path = this.#pathOf(name);
      if ((await tryRead(this.#disk, path)) === owner) await tryUnlink(this.#disk, path);
    }
  }

  /** Removes the claims of deliveries that are over, and those that a power cut has emptied or torn. */
  async clear(isOver: (owner: string) => Promise<boolean>): Promise<void> {
    for (const entry of await this.#disk.list(this.#paths.names)) {
      const path = join(this.#paths.names, entry);
      const owner = await tryRead(this.#disk, path);
      const isTorn = owner !== undefined && !OWNER.test(owner);
      if (isTorn || (owner !== undefined && (await isOver(owner)))) await tryUnlink(this.#disk, path);
    }
  }

  async #takeOne(owner: string, name: string): Promise<"new" | "own" | "taken"> {
    const path = this.#pathOf(name);
    const known = await tryRead(this.#disk, path);
    if (known !== undefined) return known === owner ? "own" : "taken";
    const temporary = join(this.#paths.temporary, temporaryName());
    const file = await this.#disk.create(temporary, 0o600);
    try {
      await file.write(owner).finally(() => file.close());
      await this.#disk.link(temporary, path);
      return "new";
    } catch (error) {
      if (systemCode(error) === "EEXIST") {
        return (await tryRead(this.#disk, path)) === owner ? "own" : "taken";
      }
      if (!meansNoLinks(error)) throw error;
      // Without hard links only one process works here.
      await this.#disk.rename(temporary, path);
      return "new";
    } finally {
      await tryUnlink(this.#disk, temporary);
    }
  }

  #pathOf(name: string): string {
    return join(this.#paths.names, hash("sha256", name, "hex").slice(0, 40));
  }
}
