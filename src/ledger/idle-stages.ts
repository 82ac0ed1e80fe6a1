/** Removes what no attempt seems to use any longer. Safe even if one still uses it. */

import { join } from "node:path";
import { tryUnlink } from "../base/disk.ts";
import { temporaryName } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import { stat, tryLstat } from "../base/files.ts";
import { parseEntryFile, parseRoundKey } from "../model/outbox.ts";
import { parseStaged, type StageId } from "./paths.ts";
import type { Rounds } from "./rounds.ts";

/** After this time without a change, the attempt of a stage is probably over. */
const IDLE_MS = 10 * 60_000;
/** After this time, a stage of a transfer without a note is left over. */
const ORPHANED_MS = 60 * 60_000;

/** Removes the stages of other attempts at the same round, if those seem to be over. */
export async function reclaimIdle(rounds: Rounds, stage: StageId): Promise<void> {
  await revokeOld(rounds, await rounds.otherStages(stage), IDLE_MS);
}

/**
 * Removes stages of open rounds that have no note: a power cut has taken or emptied it, and the service may no longer
 * list the transfer. For the same reason, removes outbox entries and claims of open rounds that have neither a note nor a
 * stage: an attempt makes its stage before them, and cannot end the round without it.
 */
export async function removeOrphans(
  rounds: Rounds,
  hasNote: (name: string) => Promise<boolean>,
): Promise<void> {
  const { disk, paths } = rounds;
  const isOpenWithoutNote = async (name: string, round: number) =>
    !(await hasNote(name)) && (await rounds.readEnd(name, round)) === undefined;
  // No stage has the token "", so these are all stages of the round.
  const hasStage = async (name: string, round: number) =>
    (await rounds.otherStages({ name, round, token: "" })).length > 0;
  const orphans: StageId[] = [];
  for (const id of (await disk.list(paths.staging)).map(parseStaged)) {
    // Without a suffix: the staged folder itself.
    if (id?.suffix === "" && (await isOpenWithoutNote(id.name, id.round))) orphans.push(id);
  }
  await revokeOld(rounds, orphans, ORPHANED_MS);
  for (const file of (await disk.list(paths.outbox).catch(tolerate("ENOENT"))) ?? []) {
    const { key, kind } = parseEntryFile(file) ?? {};
    if (key === undefined || kind === "kept") continue;
    const { name, round } = parseRoundKey(key);
    if (!(await isOpenWithoutNote(name, round))) continue;
    const changedMs = (await tryLstat(join(paths.outbox, file)))?.mtimeMs;
    if (changedMs === undefined || (await readDiskClock(rounds)) - changedMs <= ORPHANED_MS) continue;
    if (!(await hasStage(name, round))) await tryUnlink(disk, join(paths.outbox, file));
  }
  await rounds.placing.claims.clear(async (owner) => {
    const { name, round } = parseRoundKey(owner);
    return (await isOpenWithoutNote(name, round)) && !(await hasStage(name, round));
  });
}

async function revokeOld(rounds: Rounds, stages: readonly StageId[], afterMs: number): Promise<void> {
  if (stages.length === 0) return;
  const nowMs = await readDiskClock(rounds);
  for (const id of stages) {
    if (nowMs - (await lastChange(rounds, id)) > afterMs) await rounds.revoke(id);
  }
}

/** The file system's own time, from a new file: the ticket that this attempt has made may be old. */
async function readDiskClock({ disk, paths }: Rounds): Promise<number> {
  const path = join(paths.temporary, temporaryName());
  const file = await disk.create(path, 0o600);
  try {
    return (await stat(path)).mtimeMs;
  } finally {
    await file.close();
    await tryUnlink(disk, path);
  }
}

async function lastChange({ disk, paths }: Rounds, id: StageId): Promise<number> {
  const folder = paths.staged(id);
  const names = (await disk.list(folder).catch(tolerate("ENOENT"))) ?? [];
  const files = [folder, paths.zip(id), ...names.map((name) => join(folder, name))];
  const found = await Promise.all(files.map(tryLstat));
  return Math.max(...found.map((facts) => facts?.mtimeMs ?? 0));
}
