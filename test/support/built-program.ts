/**
 * Builds the program once for each run of the tests: as users install it, and the programs of tests on the same sources.
 * The folder belongs to this run alone, so another run never replaces it.
 */
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { buildPackage, buildPrograms } from "../../build.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Holds the installed program, and `children` with `child.ts`. */
    readonly builtProgram: string;
  }
}

/** Returns how to remove it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "inlet-program-"));
  // Some tests run it as another user.
  await chmod(folder, 0o755);
  await mkdir(join(folder, "run"));
  await chmod(join(folder, "run"), 0o1777);
  const build = async () => {
    await Promise.all([
      buildPackage(folder),
      buildPrograms(join(folder, "children"), { child: "test/support/child.ts" }),
    ]);
  };
  await build();
  project.onTestsRerun(build);
  project.provide("builtProgram", folder);
  return () => rm(folder, { recursive: true, force: true });
}
