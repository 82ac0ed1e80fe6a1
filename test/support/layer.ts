/** Sets the layer of each test. `debian.ts` refuses to find programs for a test without the tag `system`. */
import { beforeEach } from "vitest";

beforeEach(({ task }) => {
  process.env["INLET_TEST_LAYER"] = task.tags?.includes("system") ? "system" : "ordinary";
});
