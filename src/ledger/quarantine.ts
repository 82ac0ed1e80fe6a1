/**
 * The quarantine: content that Inlet does not vouch for, in a folder per round (`quarantine/NAME~R`). `reason.json` in
 * it says why. If the content is complete, it also lists the files, so that `release` can deliver them without the
 * service.
 */

import { join } from "node:path";
import * as v from "valibot";
import { type Disk, FolderSyncs, systemDisk, tryRead } from "../base/disk.ts";
import { syncFile, writeFinished } from "../base/durable.ts";
import { tolerate, unreadable } from "../base/faults.ts";
import { readdir, tryLstat } from "../base/files.ts";
import { parseJson } from "../base/json.ts";
import { formatJson } from "../base/long-text.ts";
import { nextTurn } from "../base/timers.ts";
import { type Contents, ContentsShape, filesIn, REASON } from "../model/manifest.ts";

const ReasonShape = v.object({
  at: v.string(),
  mailbox: v.string(),
  trackingId: v.string(),
  sender: v.string(),
  /** A fault's code, and what it says to people. */
  code: v.string(),
  message: v.string(),
  advice: v.string(),
  /** Missing if the content is not complete. */
  contents: v.optional(ContentsShape),
});

export type QuarantineReason = Readonly<v.InferOutput<typeof ReasonShape>>;

/** Complete content of a round. */
export interface Quarantined {
  readonly folder: string;
  readonly contents: Contents;
  /** Why it is in quarantine: a fault's code. */
  readonly code: string;
}

const ENTRY = /^(.+)~(\d+)$/;

export class Quarantine {
  readonly folder: string;
  readonly #disk: Disk;
  readonly #syncs: FolderSyncs;

  constructor(work: string, disk: Disk = systemDisk, syncs: FolderSyncs = new FolderSyncs(disk)) {
    this.folder = join(work, "quarantine");
    this.#disk = disk;
    this.#syncs = syncs;
  }

  folderOf(name: string, round: number): string {
    return join(this.folder, `${name}~${round}`);
  }

  /** The rounds whose content is here. */
  async list() {
    const entries = await this.#disk.list(this.folder).catch(tolerate("ENOENT"));
    return (entries ?? []).flatMap((entry) => {
      const [, name, round] = ENTRY.exec(entry) ?? [];
      return name === undefined ? [] : [{ name, round: Number(round), folder: join(this.folder, entry) }];
    });
  }

  /** Adds the reason to a staged folder, and syncs every file: they may be all that is left of the transfer. */
  async prepare(staged: string, reason: QuarantineReason): Promise<void> {
    for (const name of await readdir(staged)) await syncFile(join(staged, name), 0o600);
    await writeFinished(join(staged, REASON), () => formatJson(reason), 0o600);
  }

  /** Moves a staged folder in, unless it was moved before. */
  async moveIn(staged: string, name: string, round: number): Promise<void> {
    await this.#disk.rename(staged, this.folderOf(name, round)).catch(tolerate("ENOENT"));
    await this.#syncs.sync(this.folder);
  }

  /** `undefined` if the content of the round is not complete, or not here. Throws if the disk does not answer. */
  findComplete(name: string, round: number): Promise<Quarantined | undefined> {
    const folder = this.folderOf(name, round);
    return this.#readComplete(folder).catch((error: unknown) => {
      throw unreadable(folder, error);
    });
  }

  async #readComplete(folder: string): Promise<Quarantined | undefined> {
    const { contents, code } = (await this.readReason(folder)) ?? {};
    if (contents === undefined || code === undefined) return undefined;
    for (const file of filesIn(contents)) {
      const found = await tryLstat(join(folder, file.name));
      if (!found?.isFile() || found.size !== file.size) return undefined;
    }
    return { folder, contents, code };
  }

  /** `undefined` if it is missing or damaged. Throws the system's errors. */
  async readReason(folder: string): Promise<QuarantineReason | undefined> {
    const json = parseJson(await tryRead(this.#disk, join(folder, REASON)));
    // The files may be many.
    await nextTurn();
    const reason = v.safeParse(ReasonShape, json);
    return reason.success ? reason.output : undefined;
  }

  /** Removes the content of a transfer, of all rounds before `round`. A late process must not remove that of later ones. */
  async clear(name: string, round = Number.POSITIVE_INFINITY): Promise<void> {
    const found = (await this.list()).filter((it) => it.name === name && it.round < round);
    for (const { folder } of found) await this.#disk.removeTree(folder);
    // A power cut must not bring it back.
    if (found.length > 0) await this.#syncs.sync(this.folder);
  }
}
