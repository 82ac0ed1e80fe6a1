import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// There are many processes: the first one compiles the test runner for the others.
process.env["NODE_COMPILE_CACHE"] = join(import.meta.dirname, "node_modules/.cache/compiled");

/**
 * Tests that build an image or install a system: after the other tests, which may install packages, because their machines
 * see this system's packages.
 */
const MACHINES = { testTimeout: 1_800_000, sequence: { groupOrder: 1 } };

/** `npm run test:system` need not load the many files without such a test. */
function findOrdinaryFiles(): string[] {
  if (!process.argv.includes("--tags-filter=system")) return [];
  const isTagged = (path: string) => /"system"|@module-tag system/.test(readFileSync(path, "utf8"));
  return globSync("test/**/*.test.ts", { cwd: import.meta.dirname }).filter((path) => !isTagged(path));
}

const exclude = findOrdinaryFiles();

/**
 * Files that share processes, which load and compile the program once: a third less work. A unit test has a process of its own
 * for each file, because some replace timers or modules.
 */
const SHARED = { isolate: false };

/** Begins with files that take long. In Vitest's own order, by names of projects, one of them would run alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ project, moduleId }: TestSpecification) =>
      project.name === REDIS || LONG.test(moduleId);
    return (await super.sort(files)).toSorted((a, b) => Number(isLong(b)) - Number(isLong(a)));
  }
}

const REDIS = "flows on redis";
/** Small files that take long. */
const LONG =
  /\/(answers|consumer-attacks|crash|faults|install|kills|redis-troubles|stops|upload-transfer|walks|worlds)\.test\.ts$/;

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    globalSetup: "test/support/built-program.ts",
    setupFiles: "test/support/layer.ts",
    // `npm test` excludes these, and `npm run test:system` runs only these.
    tags: [
      { name: "system", description: "needs root, a program that Debian packages, or Redis, or takes long" },
    ],
    // Most tests wait for processes, disks and timers: four at a time keep two cores busy.
    maxWorkers: Math.max(4, availableParallelism()),
    // Patience costs nothing where a test passes, and a busy machine may be ten times slower.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
    projects: [
      {
        extends: true,
        test: {
          name: REDIS,
          include: ["test/flows/{check,crash,give-way,mirror,passwords,polls}.test.ts"],
          ...SHARED,
          env: { INLET_TEST_QUEUE: "redis" },
          // Tags all tests.
          runner: "test/support/system-runner.ts",
        },
      },
      { extends: true, test: { name: "architecture", include: ["test/architecture.test.ts"] } },
      { extends: true, test: { name: "unit", include: ["test/unit/**/*.test.ts"], exclude } },
      {
        extends: true,
        test: { name: "contracts", include: ["test/contracts/**/*.test.ts"], exclude, ...SHARED },
      },
      { extends: true, test: { name: "flows", include: ["test/flows/**/*.test.ts"], exclude, ...SHARED } },
      { extends: true, test: { name: "image", include: ["test/image/**/*.test.ts"], ...MACHINES } },
      { extends: true, test: { name: "systemd", include: ["test/systemd/**/*.test.ts"], ...MACHINES } },
    ],
  },
});
