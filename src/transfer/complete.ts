/** Complete content of earlier attempts: staged for the check, or in quarantine. It is used without the service. */

import { join } from "node:path";
import { forEachLimit } from "../base/concurrency.ts";
import { finishFile } from "../base/durable.ts";
import { unreadable } from "../base/faults.ts";
import { tryLstat, withFile } from "../base/files.ts";
import type { Quarantined, Stage } from "../ledger/port.ts";
import {
  bytesOf,
  type Contents,
  digestOf,
  filesIn,
  RefusedRead,
  readManifest,
  withoutNames,
} from "../model/manifest.ts";
import { clearStage, copyComplete } from "./adopt.ts";
import { hashFile } from "./fetch.ts";
import { MANY_FILES } from "./large.ts";
import type { Run } from "./run.ts";

/** How many files are synced at once. */
const AT_ONCE = 4;

/**
 * Content that an earlier attempt has verified, and that the check has not accepted yet. It is proven once more, because
 * the check may have changed it. `undefined` if there is none.
 */
export async function takeComplete(run: Run): Promise<Contents | undefined> {
  const { tools, source, signal } = run;
  const { complete, attempts, files = 0 } = run.record;
  if (complete === undefined) return undefined;
  if (files > MANY_FILES) tools.large.take(source.service.id, run.key);
  run.enter("checking", { attempts: attempts + 1 });
  const { stages } = tools.ledger;
  const stage = await run.openStage();
  const folders = [...(stage.isNew ? [] : [stage.folder]), ...(await stages.otherContent(stage))];
  for (const folder of folders) {
    const contents =
      (await readContents(folder, complete)) ?? (await readContents(stages.placementOf(folder), complete));
    if (contents === undefined) continue;
    const names = new Set(filesIn(contents).map(({ name }) => name));
    if (folder === stage.folder) await clearStage(stage, (name) => names.has(name));
    else await copyInto(run, stage, { folder, contents });
    if (!(await isProven(stage.folder, contents, signal))) continue;
    await setFileModes(stage.folder, names, run.handoff.fileMode);
    await stages.reclaim(stage);
    run.contents = contents;
    return contents;
  }
  await run.closeStage();
  return undefined;
}

/**
 * Complete content in quarantine that an operator has released, or that only the check has refused. The latter is proven
 * once more, and the check follows. `undefined` if there is none.
 */
export async function takeQuarantined(run: Run): Promise<Contents | undefined> {
  const found = await findQuarantined(run);
  if (found === undefined) return undefined;
  const isReleased = run.record.released !== undefined;
  const stage = await run.openStage();
  await copyInto(run, stage, found);
  if (!isReleased && !(await isProven(stage.folder, found.contents, run.signal))) {
    await run.closeStage();
    return undefined;
  }
  run.contents = found.contents;
  return found.contents;
}

/** What `takeQuarantined` takes. The service is not needed for it. */
export async function findQuarantined({ record, tools }: Run): Promise<Quarantined | undefined> {
  if (record.round === 1) return undefined;
  const found = await tools.ledger.findInQuarantine(record);
  return record.released !== undefined || found?.code === "CHECK_REFUSED" ? found : undefined;
}

/** Sets the mode of complete files that may be read-only, and syncs them. */
export async function setFileModes(folder: string, names: Iterable<string>, mode: number): Promise<void> {
  await forEachLimit(names, AT_ONCE, (name) =>
    withFile(join(folder, name), "r", (file) => finishFile(file, mode)),
  );
}

/** Whether every file is there, with its size and its SHA-256. */
export async function isProven(folder: string, contents: Contents, signal: AbortSignal): Promise<boolean> {
  for (const { name, size, sha256 } of filesIn(contents)) {
    const path = join(folder, name);
    const found = await tryLstat(path).catch((error: unknown) => {
      throw unreadable(path, error);
    });
    if (!found?.isFile() || found.size !== size) return false;
    if ((await hashFile(path, signal)) !== sha256) return false;
  }
  return true;
}

/** `undefined` if the folder has no manifest, or one of other contents. Throws if the disk does not answer. */
async function readContents(folder: string, digest: string): Promise<Contents | undefined> {
  const contents = await readManifest(folder).catch((error: unknown) => {
    if (error instanceof RefusedRead) throw unreadable(folder, error.cause);
    return undefined;
  });
  return contents !== undefined && digestOf(contents) === digest ? withoutNames(contents) : undefined;
}

async function copyInto(
  run: Run,
  stage: Stage,
  found: { readonly folder: string; readonly contents: Contents },
): Promise<void> {
  const { contents } = found;
  const reservation = await run.tools.inbox.reserve(run.key, bytesOf(contents), contents.files.length);
  try {
    await copyComplete(found, stage, run.handoff.fileMode, run.signal);
  } finally {
    reservation.release();
  }
}
