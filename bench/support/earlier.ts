/** Inlet as it was at an earlier commit, as one of the programs that it is measured beside. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT, installProgram } from "./processes.ts";

/** The last one before the records of the ledger were written once: each transfer had a receipt that was appended to. */
export const BEFORE_LEDGER = "96d1350";

/** Installs it into a folder, with the packages that it asked for. Returns what starts it. */
export function installEarlier(folder: string, commit: string): string {
  const source = join(folder, "source");
  mkdirSync(source, { recursive: true });
  const archive = execFileSync("git", ["archive", commit], { cwd: CHECKOUT, maxBuffer: 256 * 1024 ** 2 });
  execFileSync("tar", ["-x", "-C", source], { input: archive });
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: source,
    stdio: "ignore",
  });
  return installProgram(join(folder, "program"), source);
}
