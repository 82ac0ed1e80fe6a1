/**
 * Sets the layer of each test. `debian.ts` refuses to find programs for a test without the tag `system`. Daemons have their sockets in a
 * folder of these tests, where every user may make one.
 */
import { join } from "node:path";
import { beforeEach, inject } from "vitest";

process.env["RUNTIME_DIRECTORY"] = join(inject("builtProgram"), "run");

beforeEach(({ task }) => {
  process.env["INLET_TEST_LAYER"] = task.tags?.includes("system") ? "system" : "ordinary";
});
