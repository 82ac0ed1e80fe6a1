/** Tags all tests of a project `system`, for projects whose files have tests of another layer in other projects. */
import { type RunnerTestFile, TestRunner } from "vitest";

export default class SystemRunner extends TestRunner {
  override onCollectStart(file: RunnerTestFile): void {
    file.tags = [...(file.tags ?? []), "system"];
    super.onCollectStart(file);
  }
}
