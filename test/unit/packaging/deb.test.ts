/** `npm run package:deb`: which architectures it builds, and what it prints. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chooseArchitectures } from "../../../packaging/deb.ts";
import { makeFolder, runCommand } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

test("builds for the machine's own architecture, unless --arch names another or all", () => {
  expect(chooseArchitectures([], "x64")).toEqual(["amd64"]);
  expect(chooseArchitectures([], "arm64")).toEqual(["arm64"]);
  expect(chooseArchitectures(["--arch", "arm64"], "x64")).toEqual(["arm64"]);
  expect(chooseArchitectures(["--arch=all"], "x64")).toEqual(["amd64", "arm64"]);
  expect(() => chooseArchitectures(["--arch", "mips"], "x64")).toThrow(
    "no package for mips: add --arch with",
  );
  expect(() => chooseArchitectures([], "riscv64")).toThrow("amd64, arm64 or all");
  expect(() => chooseArchitectures(["arm64"], "x64")).toThrow();
});

test("prints each step before it begins", async () => {
  const folder = await makeFolder();
  // Without a registry: the step that fetches Node fails.
  await mkdir(join(folder, "bin"));
  await writeFile(join(folder, "bin/npm"), "#!/bin/sh\nexit 7\n", { mode: 0o755 });
  const { exitCode, stderr, stdout } = await runCommand(
    process.execPath,
    [join(ROOT, "packaging/deb.ts"), "--arch", "arm64"],
    { cwd: folder, env: { PATH: `${folder}/bin:${process.env["PATH"]}` } },
  );
  expect([exitCode, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^fetching Node [\d.]+ for arm64\n/);
});
