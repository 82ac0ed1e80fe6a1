/**
 * Creates files only if they do not exist yet, which is all that the ledger's safety rests on. Replaces files in one step,
 * so that readers see the old text or the new one.
 */
import { dirname, join } from "node:path";
import { type Disk, type DiskFile, type FolderSyncs, meansNoLinks, tryUnlink } from "./disk.ts";
import { temporaryName } from "./durable.ts";
import { tolerate } from "./faults.ts";

export class OnceFiles {
  readonly #disk: Disk;
  readonly #syncs: FolderSyncs;
  readonly #temporary: string;

  /** `temporary`: a folder on the same file system, for files that have no name yet. */
  constructor(disk: Disk, syncs: FolderSyncs, temporary: string) {
    this.#disk = disk;
    this.#syncs = syncs;
    this.#temporary = temporary;
  }

  /** False if the file exists. Its name is synced in either case, because the caller relies on it. */
  async create(target: string, text: string): Promise<boolean> {
    let isNew = true;
    await writeUnnamed(this.#disk, this.#temporary, text, true, async (unnamed) => {
      try {
        await this.#disk.link(unnamed, target);
      } catch (error) {
        if (!meansNoLinks(error)) tolerate("EEXIST")(error);
        isNew = meansNoLinks(error) && (await this.writeInPlace(target, text));
      }
      await this.#disk.unlink(unnamed);
    });
    await this.#syncs.sync(dirname(target));
    return isNew;
  }

  /** For file systems without hard links: only one process may work, and the next start removes a torn record. */
  async writeInPlace(target: string, text: string): Promise<boolean> {
    const file = await this.#disk.create(target, 0o600).catch(tolerate("EEXIST"));
    if (file === undefined) return false;
    await writeAndClose(file, text, true);
    await this.#syncs.sync(dirname(target));
    return true;
  }
}

async function writeAndClose(file: DiskFile, text: string, isSynced: boolean): Promise<void> {
  try {
    await file.write(text);
    if (isSynced) await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Writes a text to a new file in `folder`, which `place` links or renames to its final name on the same file system. Without
 * a sync, a power cut can leave the file empty. After a crash it may stay in `folder`; the next start removes it.
 */
export async function writeUnnamed(
  disk: Disk,
  folder: string,
  text: string,
  isSynced: boolean,
  place: (unnamed: string) => Promise<void>,
): Promise<void> {
  const unnamed = join(folder, temporaryName());
  try {
    await writeAndClose(await disk.create(unnamed, 0o600), text, isSynced);
    await place(unnamed);
  } catch (error) {
    // If this fails, the next start removes it.
    await tryUnlink(disk, unnamed).catch(() => {});
    throw error;
  }
}
