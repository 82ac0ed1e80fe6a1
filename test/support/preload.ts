/** Libraries for `LD_PRELOAD`, which change system calls of a program under test. */
import { join } from "node:path";
import { installProgram } from "./debian.ts";
import { makeFolder, runCommand } from "./program.ts";
import { ROOT } from "./root.ts";

/**
 * Compiles a source in `test/support/preload`, and returns the environment that loads it. A missing compiler is installed
 * from Debian, which needs root.
 */
export async function compilePreload(name: "grant-locks" | "swap"): Promise<{ readonly LD_PRELOAD: string }> {
  const compiler = await installProgram("cc", "gcc");
  const source = join(ROOT, "test/support/preload", `${name}.c`);
  const library = join(await makeFolder(), `${name}.so`);
  const options = ["-shared", "-fPIC", "-nostdlib", "-Wall", "-Werror", "-O1"];
  const { exitCode, stderr } = await runCommand(compiler, [...options, "-o", library, source, "-lgcc"]);
  if (exitCode !== 0) throw new Error(`${compiler} cannot compile ${source}: ${stderr}`);
  return { LD_PRELOAD: library };
}
