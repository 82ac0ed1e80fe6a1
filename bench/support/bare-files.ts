/** Fetches many files with curl, and optionally hashes and syncs them as Inlet does. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, runOthers } from "./bench.ts";
import type { Command, Spent } from "./timing.ts";

/** Files of one transfer that every contender fetches at once. */
export const FILES_AT_ONCE = 16;
export const PROVE_AND_SYNC = "`sha256sum` and `sync` of each file";

export interface BareFile {
  readonly id: string;
  readonly url: string;
}

/** Fetches into the folder `out`, each file under its id. */
export function runCurl(
  bench: Bench,
  files: readonly BareFile[],
  args: readonly string[],
  then: "nothing" | "prove and sync" = "nothing",
): Promise<Spent> {
  const { curl, sha256sum, sync, xargs } = bench.tools;
  const prepare = (folder: string): Command[] => {
    const lines = files.map(({ id, url }) => `url = "${url}"\noutput = "out/${id}"\n`);
    writeFileSync(join(folder, "list"), lines.join(""));
    writeFileSync(join(folder, "names"), files.map(({ id }) => `out/${id}\0`).join(""));
    const programs = then === "nothing" ? [] : [sha256sum, sync];
    return [
      { program: curl, args: ["-sS", "--fail", "--parallel", "--create-dirs", ...args, "-K", "list"] },
      ...programs.map((program) => ({ program: xargs, args: ["-0", "-a", "names", program] })),
    ];
  };
  return runOthers(bench, prepare, (folder) => demandFiles(folder, files.length));
}

/** Throws if files are missing. */
export function demandFiles(folder: string, count: number): void {
  const found = readdirSync(join(folder, "out")).length;
  if (found !== count) throw new Error(`${found} of ${count} files were fetched`);
}
