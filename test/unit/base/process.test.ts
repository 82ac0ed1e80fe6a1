/** Programs that cannot be started. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeStartFailure } from "../../../src/base/system-program.ts";
import { makeFolder } from "../../support/program.ts";

test.each([
  ["missing", "was not found"],
  ["/no/such/program", "was not found"],
  ["plain", "was not found in PATH, or may not be run by this user"],
  ["./plain", "may not be run by this user"],
])("%s %s", async (program, why) => {
  const folder = await makeFolder();
  await writeFile(join(folder, "plain"), "#!/bin/sh\n", { mode: 0o644 });
  const child = spawn(program, { cwd: folder, env: { PATH: folder } });
  const [error] = await once(child, "error");
  expect(describeStartFailure(error)).toBe(why);
});
