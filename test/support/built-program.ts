/**
 * Builds the program once for each run of the tests: as users install it, and the programs of tests on the same sources.
 * The folder belongs to this run alone, so another run never replaces it.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { buildPackage, buildPrograms } from "../../build.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Holds the installed program, and `children` with the programs of tests. */
    readonly builtProgram: string;
  }
}

const CHILDREN = {
  "crash-child": "test/support/crash-child.ts",
  "daemon-child": "test/support/daemon-child.ts",
  "failing-disk-child": "test/support/failing-disk-child.ts",
  "pause-child": "test/support/pause-child.ts",
  "power-loss-driver": "test/support/power-loss-driver.ts",
};

export type ChildName = keyof typeof CHILDREN;

/** Returns how to remove it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "inlet-program-"));
  // Some tests run it as another user.
  await chmod(folder, 0o755);
  const build = async () => {
    await Promise.all([buildPackage(folder), buildPrograms(join(folder, "children"), CHILDREN)]);
  };
  await build();
  project.onTestsRerun(build);
  project.provide("builtProgram", folder);
  return () => rm(folder, { recursive: true, force: true });
}
