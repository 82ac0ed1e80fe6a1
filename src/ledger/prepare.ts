/** Prepares the folders of the ledger at a start. */

import { join } from "node:path";
import { meansNoLinks, systemDisk, tryUnlink } from "../base/disk.ts";
import { clearTemporaries, makeFolderDurably, temporaryName } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { mkdir } from "../base/files.ts";
import { type LedgerPaths, parseNotes, parseRecordFile, SPREAD } from "./paths.ts";

/** Creates what is missing, and removes what a crash has left. Throws `LINKS_MISSING`. */
export async function prepareFolders(paths: LedgerPaths, isAlone: boolean, nowMs: number): Promise<void> {
  for (const folder of paths.folders()) await makeFolderDurably(folder, 0o700);
  await makeSpread(paths);
  // Left by a crash. Beside other processes, only files that are too old to be in use.
  await clearTemporaries(paths.temporary, isAlone ? Number.POSITIVE_INFINITY : nowMs);
  if (await hasHardLinks(paths)) return;
  if (!isAlone) throw new Fault("LINKS_MISSING", { detail: paths.work });
  await removeTorn(paths);
}

/** Creates all folders of records now, so that no folder has to be created and synced together with a record. */
async function makeSpread({ ledger }: LedgerPaths): Promise<void> {
  const known = new Set(await systemDisk.list(ledger));
  const missing = SPREAD.filter((name) => !known.has(name));
  for (const name of missing) await mkdir(join(ledger, name), { recursive: true, mode: 0o700 });
  // Another process may have created some without a sync.
  await systemDisk.syncFolder(ledger);
}

async function hasHardLinks({ temporary }: LedgerPaths): Promise<boolean> {
  const names = [1, 2].map(() => join(temporary, temporaryName()));
  const [from = "", to = ""] = names;
  try {
    await (await systemDisk.create(from, 0o600)).close();
    await systemDisk.link(from, to);
    return true;
  } catch (error) {
    if (meansNoLinks(error)) return false;
    throw error;
  } finally {
    for (const name of names) await tryUnlink(systemDisk, name);
  }
}

/** Without hard links, records are written in place: a record without its line end was never completed. */
async function removeTorn({ notes, ledger, starts }: LedgerPaths): Promise<void> {
  const noted = new Set(parseNotes(await systemDisk.list(notes)));
  const paths = (await systemDisk.list(starts)).map((file) => join(starts, file));
  for (const folder of SPREAD.map((name) => join(ledger, name))) {
    for (const file of await systemDisk.list(folder)) {
      const { name = "", kind } = parseRecordFile(file) ?? {};
      // The record of a hand-off is not synced, and counts without its text.
      if (noted.has(name) && kind !== "handoff") paths.push(join(folder, file));
    }
  }
  for (const path of paths) {
    if (!(await systemDisk.read(path)).endsWith("\n")) await systemDisk.unlink(path);
  }
}
