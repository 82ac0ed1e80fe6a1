/** Libraries that the system puts before the C library of a program, so that a test can change what its calls do. */
import { join } from "node:path";
import { installProgram } from "./debian.ts";
import { makeFolder, runCommand } from "./program.ts";
import { ROOT } from "./root.ts";

/**
 * Compiles one of `test/support/preload` for this machine. Returns the environment of programs that are to have it. Where
 * there is no compiler, Debian's is installed, which needs root; where that fails too, the error says what to install.
 */
export async function compilePreload(
  name: "grant-locks" | "pause",
): Promise<{ readonly LD_PRELOAD: string }> {
  const compiler = await installProgram("cc", "gcc");
  const source = join(ROOT, "test/support/preload", `${name}.c`);
  const library = join(await makeFolder(), `${name}.so`);
  const options = ["-shared", "-fPIC", "-nostdlib", "-Wall", "-Werror", "-O1"];
  const { exitCode, stderr } = await runCommand(compiler, [...options, "-o", library, source, "-lgcc"]);
  if (exitCode !== 0) throw new Error(`${compiler} cannot compile ${source}: ${stderr}`);
  return { LD_PRELOAD: library };
}
