/**
 * Content of earlier attempts, staged or in quarantine, which is used without the service. Files of other attempts are copied:
 * they are never moved, appended to or removed.
 */
import { constants } from "node:fs";
import { join } from "node:path";
import { forEachLimit } from "../base/concurrency.ts";
import { setFolderMode, syncFile } from "../base/durable.ts";
import { unreadable } from "../base/faults.ts";
import { chmod, copyFile, readdir, rm, tryLstat } from "../base/files.ts";
import { RefusedRead } from "../base/foreign-files.ts";
import { sumFile } from "../base/sums.ts";
import type { Quarantined, Stage } from "../ledger/port.ts";
import {
  bytesOf,
  type Contents,
  digestOf,
  filesIn,
  manifestBound,
  type Proven,
  readManifest,
  withoutNames,
} from "../model/manifest.ts";
import type { Plan, PlannedFile } from "./open-transfer.ts";
import type { Run } from "./run.ts";
import { MANY_FILES } from "./turns.ts";

/** How many files are synced at once. */
const AT_ONCE = 4;
/** Fails if the target exists, and shares blocks if the file system can. */
const COPY = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE;

/**
 * Content that an earlier attempt has verified, and that the check has not accepted yet. It is proven once more, because
 * the check may have changed it. `undefined` if there is none.
 */
export async function takeComplete(run: Run): Promise<Proven | undefined> {
  const { tools, source, signal } = run;
  const { complete, attempts, files = 0 } = run.record;
  if (complete === undefined) return undefined;
  if (files > MANY_FILES) tools.large.take(source.service.id, run.key);
  run.enter("checking", { attempts: attempts + 1 });
  const { stages, placements } = tools.ledger;
  const stage = await run.openStage();
  const folders = [...(stage.isNew ? [] : [stage.folder]), ...(await stages.otherContent(stage))];
  for (const folder of folders) {
    // The manifest is among the files, or belongs to the placement.
    const contents =
      (await readContents(folder, complete)) ??
      (await readContents(placements.placementOf(folder), complete));
    if (contents === undefined) continue;
    const names = new Set(filesIn(contents).map(({ name }) => name));
    if (folder === stage.folder) await clearStage(stage, (name) => names.has(name));
    else await copyContents(run, stage, { folder, contents });
    const proven = await prove(stage.folder, contents, signal);
    if (proven === undefined) continue;
    await setFileModes(stage.folder, names, run.handoff.fileMode);
    await tools.ledger.reclaim(stage);
    run.contents = proven;
    return proven;
  }
  await run.closeStage();
  return undefined;
}

/**
 * Complete content in quarantine that an operator has released, or that only the check has refused: the check then follows. It
 * is proven once more, because it may have changed. `undefined` if there is none.
 */
export async function takeQuarantined(run: Run): Promise<Proven | undefined> {
  const found = await findQuarantined(run);
  if (found === undefined) return undefined;
  const stage = await run.openStage();
  await copyContents(run, stage, found);
  const proven = await prove(stage.folder, found.contents, run.signal);
  if (proven === undefined) await run.closeStage();
  run.contents = proven;
  return proven;
}

/** What `takeQuarantined` takes. The service is not needed for it. */
export async function findQuarantined({ record, tools }: Run): Promise<Quarantined | undefined> {
  if (record.round === 1) return undefined;
  const found = await tools.ledger.findInQuarantine(record);
  return record.released !== undefined || found?.code === "CHECK_REFUSED" ? found : undefined;
}

/**
 * Prepares a stage for the files of a plan. Files that this process left there stay, files of other attempts are copied
 * if a checksum can prove them, and everything else is removed. Returns how many bytes are there.
 */
export async function adoptContent({ tools }: Run, stage: Stage, { way, files }: Plan): Promise<number> {
  const isByFile = way === "files";
  const wanted = new Map(isByFile ? files.map((file) => [file.name, file]) : []);
  if (!stage.isNew) await clearStage(stage, (name) => wanted.has(name));
  const others = isByFile ? await tools.ledger.stages.otherContent(stage) : [];
  if (stage.isNew && others.length === 0) return 0;
  let presentBytes = 0;
  for (const [name, file] of wanted) {
    const path = join(stage.folder, name);
    if (file.checksums.length > 0) await copyLongest(others, file, path);
    const found = await tryLstat(path);
    if (found === undefined) continue;
    // Others could write to it under its other name.
    if (!found.isFile() || found.nlink > 1) {
      await rm(path, { recursive: true, force: true });
      continue;
    }
    // A finished file may have a mode that does not let us write.
    await chmod(path, 0o600);
    presentBytes += Math.min(found.size, file.bytes);
  }
  return presentBytes;
}

/** An earlier attempt may have given the folder its final mode, which may not let us write. */
export async function clearStage({ folder }: Stage, isWanted: (name: string) => boolean): Promise<void> {
  await setFolderMode(folder, 0o700);
  for (const name of await readdir(folder)) {
    if (!isWanted(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** Sets the mode of complete files that may be read-only, and syncs them. */
export async function setFileModes(folder: string, names: Iterable<string>, mode: number): Promise<void> {
  await forEachLimit(names, AT_ONCE, (name) => syncFile(join(folder, name), mode));
}

/** The contents, if every file is there with its SHA-256. */
async function prove(folder: string, contents: Contents, signal: AbortSignal): Promise<Proven | undefined> {
  for (const { name, sha256 } of filesIn(contents)) {
    if ((await sumFile(join(folder, name), signal)) !== sha256) return undefined;
  }
  return contents as Proven;
}

/** `undefined` if the folder has no manifest, or one of other contents. Throws if the disk does not answer. */
async function readContents(folder: string, digest: string): Promise<Contents | undefined> {
  const contents = await readManifest(folder, manifestBound()).catch((error: unknown) => {
    if (error instanceof RefusedRead) throw unreadable(folder, error.cause);
    return undefined;
  });
  return contents && (await digestOf(contents)) === digest ? withoutNames(contents) : undefined;
}

/** Copies complete content into a stage. */
export async function copyContents(
  { tools, key, handoff, signal }: Run,
  stage: Stage,
  { folder, contents }: Pick<Quarantined, "folder" | "contents">,
): Promise<void> {
  const reservation = await tools.inbox.reserve(key, bytesOf(contents), contents.files.length);
  try {
    // Also a new one: content of another attempt may have been copied before, and not proven.
    await clearStage(stage, () => false);
    for (const { name } of filesIn(contents)) {
      signal.throwIfAborted();
      const path = join(stage.folder, name);
      await copyFile(join(folder, name), path, COPY);
      // The copy of a checked file is read-only.
      await chmod(path, 0o600);
      await syncFile(path, handoff.fileMode);
    }
  } finally {
    reservation.release();
  }
}

/** Copies a file from the folder that has most of it. */
async function copyLongest(folders: readonly string[], file: PlannedFile, path: string): Promise<void> {
  if (folders.length === 0 || (await tryLstat(path)) !== undefined) return;
  let best: { readonly from: string; readonly size: number } | undefined;
  for (const folder of folders) {
    const from = join(folder, file.name);
    const found = await tryLstat(from);
    const size = found?.isFile() ? found.size : 0;
    if (size > (best?.size ?? 0) && size <= file.bytes) best = { from, size };
  }
  // The other attempt may remove the file meanwhile.
  if (best !== undefined) await copyFile(best.from, path, COPY).catch(() => rm(path, { force: true }));
}
