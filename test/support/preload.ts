/** A library for `LD_PRELOAD`, which changes system calls of a program under test. */
import { join } from "node:path";
import { installProgram } from "./debian.ts";
import { makeFolder, runCommand } from "./program.ts";
import { ROOT } from "./root.ts";

/** Returns the library's path. A missing compiler is installed from Debian, which needs root. */
export async function compileSwap(): Promise<string> {
  const compiler = await installProgram("cc", "gcc");
  const source = join(ROOT, "test/support/preload/swap.c");
  const library = join(await makeFolder(), "swap.so");
  const options = ["-shared", "-fPIC", "-nostdlib", "-Wall", "-Werror", "-O1"];
  const { exitCode, stderr } = await runCommand(compiler, [...options, "-o", library, source, "-lgcc"]);
  if (exitCode !== 0) throw new Error(`${compiler} cannot compile ${source}: ${stderr}`);
  return library;
}
