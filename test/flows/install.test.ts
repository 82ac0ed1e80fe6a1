/** Installation from a checkout, and from the packed tarball. */
import { readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { installPackage } from "../support/package.ts";
import { LAUNCHER, makeFolder, runCommand, runNpm, runProgram } from "../support/program.ts";
import { ROOT } from "../support/root.ts";

const { version } = (await import("../../package.json", { with: { type: "json" } })).default;

describe("in a checkout", () => {
  test("npx inlet runs it", async () => {
    const { exitCode, stdout } = await runNpm(["exec", "--", "inlet", "--version"], ROOT);
    expect([exitCode, stdout.trim()]).toEqual([0, version]);
  });

  test("a Node that is too old fails with one sentence", async () => {
    const folder = await makeFolder();
    const preload = join(folder, "old.cjs");
    await writeFile(preload, 'Object.defineProperty(process.versions, "node", { value: "20.1.2" });');
    const result = await runCommand(process.execPath, ["--require", preload, LAUNCHER, "--version"]);
    expect(result).toEqual({
      exitCode: 2,
      stdout: "",
      stderr: "inlet: Inlet needs Node 24 or newer, and this is Node 20.1.2.\n",
    });
  });

  test("every command has its help", async () => {
    const { stdout } = await runProgram(["--help"]);
    const names = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name ?? "");
    expect(names).toContain("api");
    for (const name of names) {
      const help = await runProgram([name, "--help"]);
      expect(help).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`Usage: inlet ${name}`) });
      expect((await runProgram(["help", name])).stdout).toBe(help.stdout);
    }
  });

  test("the demo runs to its end and shows the delivered files", async () => {
    const { exitCode, stdout, stderr } = await runProgram(["demo", "--exit"], {
      env: { TMPDIR: await makeFolder() },
    });
    expect([exitCode, stderr]).toEqual([0, ""]);
    for (const word of [
      "delivered to",
      "waiting",
      "quarantined",
      "the sender revoked it",
      "confirmation.txt",
    ]) {
      expect(stdout).toContain(word);
    }
  });
});

describe("as a package", () => {
  test("it installs from its tarball and runs on plain Node, compiled, without the sources", async () => {
    const folder = await makeFolder();
    const prefix = await installPackage(folder);
    const home = join(prefix, "lib/node_modules/inletd");
    expect((await readdir(home)).filter((name) => ["src", "simulator", "test"].includes(name))).toEqual([]);
    const env = { TMPDIR: folder, PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
    const inlet = join(prefix, "bin/inlet");
    expect((await runCommand(inlet, ["--version"], { env })).stdout.trim()).toBe(version);
    expect(await runCommand(inlet, ["demo", "--exit"], { env })).toMatchObject({ exitCode: 0, stderr: "" });
    // Compiling and installing take long on a busy machine.
  }, 240_000);
});
