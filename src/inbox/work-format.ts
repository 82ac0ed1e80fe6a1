/** Of which form the files in the work folder are: a program that is too old for them leaves them alone. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { readVersion } from "../base/version.ts";

/** Grows where an older program could not understand, or would damage, what a newer one writes. */
const FORMAT = 2;

/** Throws `WORK_NEWER` or `WORK_OLDER`. To be called before anything in there is touched. */
export async function demandKnownFormat(work: string): Promise<void> {
  const { format, program } = await readFormat(work);
  if (format === FORMAT || format === 0) return;
  if (format < FORMAT) throw new Fault("WORK_OLDER", { detail: `${work} is of Inlet ${program}` });
  throw new Fault("WORK_NEWER", { detail: `${work} is of Inlet ${program}, and this is ${readVersion()}` });
}

/** `temporary`: a folder on the same file system that is cleared after crashes. */
export async function noteFormat(work: string, temporary: string): Promise<void> {
  if ((await readFormat(work)).format >= FORMAT) return;
  await replaceDurably(pathOf(work), `${FORMAT} ${readVersion()}\n`, 0o600, temporary);
}

/** 0 where nothing stands there yet. */
async function readFormat(work: string): Promise<{ readonly format: number; readonly program: string }> {
  const path = pathOf(work);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return "0";
    throw new Fault("DISK_UNREADABLE", { detail: `${path} (${error.code})`, cause: error });
  });
  const [format = "", program = "of another version"] = text.trim().split(" ");
  return { format: /^\d+$/.test(format) ? Number(format) : 0, program };
}

function pathOf(work: string): string {
  return join(work, "format");
}
