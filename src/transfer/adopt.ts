/** Copies content that other attempts have downloaded. Their files are never moved, appended to or removed. */
import { constants } from "node:fs";
import { join } from "node:path";
import { faultOfDisk, onDisk, setFolderMode, syncFile } from "../base/durable.ts";
import { chmod, copyFile, readdir, rm, tryLstat } from "../base/files.ts";
import type { Quarantined, Stage } from "../ledger/port.ts";
import { filesIn } from "../model/manifest.ts";
import type { Plan } from "./plan.ts";
import type { TransferTools } from "./tools.ts";

/** Fails if the target exists, and shares blocks if the file system can. */
const COPY = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE;

/** Copies complete content, from the quarantine or from another attempt. */
export async function copyComplete(
  { folder, contents }: Pick<Quarantined, "folder" | "contents">,
  stage: Stage,
  fileMode: number,
  signal: AbortSignal,
): Promise<void> {
  // Also a new one: content of another attempt may have been copied before, and not proven.
  await clearStage(stage, () => false);
  for (const { name } of filesIn(contents)) {
    signal.throwIfAborted();
    const path = join(stage.folder, name);
    await onDisk(path, async () => {
      await copyFile(join(folder, name), path, COPY);
      // The copy of a checked file is read-only.
      await chmod(path, 0o600);
      await syncFile(path, fileMode);
    });
  }
}

/**
 * Prepares a stage for the files of a plan. Files that this process left there stay, files of other attempts are copied
 * if a checksum can prove them, and everything else is removed. Returns how many bytes are there.
 */
export async function adoptContent({ ledger }: TransferTools, stage: Stage, plan: Plan): Promise<number> {
  const { folder } = stage;
  const isByFile = plan.way === "files";
  const wanted = new Map(isByFile ? plan.files.map((file) => [file.name, file]) : []);
  if (!stage.isNew) await clearStage(stage, (name) => wanted.has(name));
  const others = isByFile ? await ledger.stages.otherContent(stage) : [];
  if (stage.isNew && others.length === 0) return 0;
  let presentBytes = 0;
  try {
    for (const [name, file] of wanted) {
      const path = join(folder, name);
      if (file.checksums.length > 0) await copyLongest(others, name, path, file.bytes);
      const found = await tryLstat(path);
      if (found === undefined) continue;
      // A finished file may have a mode that does not let us write.
      await chmod(path, 0o600);
      presentBytes += Math.min(found.size, file.bytes);
    }
  } catch (error) {
    throw faultOfDisk(error, folder);
  }
  return presentBytes;
}

/** An earlier attempt may have given the folder its final mode, which may not let us write. */
export async function clearStage({ folder }: Stage, isWanted: (name: string) => boolean): Promise<void> {
  await onDisk(folder, async () => {
    await setFolderMode(folder, 0o700);
    for (const name of await readdir(folder)) {
      if (!isWanted(name)) await rm(join(folder, name), { recursive: true, force: true });
    }
  });
}

/** Copies a file from the folder that has most of it. */
async function copyLongest(
  folders: readonly string[],
  name: string,
  path: string,
  bytes: number,
): Promise<void> {
  if (folders.length === 0 || (await tryLstat(path)) !== undefined) return;
  let best: { readonly from: string; readonly size: number } | undefined;
  for (const folder of folders) {
    const from = join(folder, name);
    const found = await tryLstat(from);
    const size = found?.isFile() ? found.size : 0;
    if (size > (best?.size ?? 0) && size <= bytes) best = { from, size };
  }
  // The other attempt may remove the file meanwhile.
  if (best !== undefined) await copyFile(best.from, path, COPY).catch(() => rm(path, { force: true }));
}
