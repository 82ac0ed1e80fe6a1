/** Stages that no attempt seems to use: removed safely, whether or not that is true. */

import { join } from "node:path";
import { type Disk, tryUnlink } from "../base/disk.ts";
import { temporaryName } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import { stat, tryLstat } from "../base/files.ts";
import { type LedgerPaths, parseStaged, type StageId } from "./paths.ts";
import type { Rounds } from "./rounds.ts";

/** After this time without a change, the attempt of a stage is probably over. */
const IDLE_MS = 10 * 60_000;
/** After this time, a stage of a transfer without a note is left over. */
const ORPHANED_MS = 60 * 60_000;

const OUTBOX_ENTRY = /^(.+)~(\d+)\.(?:wait|json)$/;

export class IdleStages {
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  readonly #rounds: Rounds;

  constructor(disk: Disk, paths: LedgerPaths, rounds: Rounds) {
    this.#disk = disk;
    this.#paths = paths;
    this.#rounds = rounds;
  }

  /** Removes the stages of other attempts at the round of this one. */
  async reclaim(stage: StageId): Promise<void> {
    const others = await this.#rounds.otherStages(stage);
    if (others.length === 0) return;
    const nowMs = await this.#readDiskClock();
    for (const id of others) {
      if (nowMs - (await this.#lastChange(id)) > IDLE_MS) await this.#rounds.revoke(id);
    }
  }

  /**
   * Removes stages of open rounds that have no note: a power cut has taken or emptied it, and the service may no longer
   * list the transfer.
   */
  async revokeOrphans(hasNote: (name: string) => Promise<boolean>): Promise<void> {
    const orphans: StageId[] = [];
    for (const id of (await this.#disk.list(this.#paths.staging)).map(parseStaged)) {
      if (id?.suffix === "" && !(await hasNote(id.name))) orphans.push(id);
    }
    if (orphans.length === 0) return;
    const nowMs = await this.#readDiskClock();
    for (const id of orphans) {
      if ((await this.#rounds.readEnd(id.name, id.round)) !== undefined) continue;
      if (nowMs - (await this.#lastChange(id)) > ORPHANED_MS) await this.#rounds.revoke(id);
    }
  }

  /**
   * Removes outbox entries of open rounds that have neither a note nor a stage, for the same reason. An attempt makes its
   * stage before its entry.
   */
  async dropOrphanedEntries(hasNote: (name: string) => Promise<boolean>): Promise<void> {
    const { outbox } = this.#paths;
    const entries = ((await this.#disk.list(outbox).catch(tolerate("ENOENT"))) ?? []).flatMap((file) => {
      const [, name = "", round = ""] = OUTBOX_ENTRY.exec(file) ?? [];
      return name === "" ? [] : [{ path: join(outbox, file), name, round: Number(round) }];
    });
    for (const { path, name, round } of entries) {
      if (await hasNote(name)) continue;
      if ((await this.#rounds.readEnd(name, round)) !== undefined) continue;
      const changedMs = (await tryLstat(path))?.mtimeMs;
      if (changedMs === undefined || (await this.#readDiskClock()) - changedMs <= ORPHANED_MS) continue;
      if ((await this.#rounds.otherStages({ name, round, token: "" })).length > 0) continue;
      await tryUnlink(this.#disk, path);
    }
  }

  /** The file system's own time, from a new file. The ticket of this attempt may be old. */
  async #readDiskClock(): Promise<number> {
    const path = join(this.#paths.temporary, temporaryName());
    const file = await this.#disk.create(path, 0o600);
    try {
      return (await stat(path)).mtimeMs;
    } finally {
      await file.close();
      await tryUnlink(this.#disk, path);
    }
  }

  async #lastChange(id: StageId): Promise<number> {
    const folder = this.#paths.staged(id);
    const names = (await this.#disk.list(folder).catch(tolerate("ENOENT"))) ?? [];
    const paths = [folder, this.#paths.zip(id), ...names.map((name) => join(folder, name))];
    const found = await Promise.all(paths.map(tryLstat));
    return Math.max(...found.map((facts) => facts?.mtimeMs ?? 0));
  }
}
