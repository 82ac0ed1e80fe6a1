/** Installation from a checkout, and from the packed tarball. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
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
      stderr:
        "inlet: Inlet needs Node 24 or newer, and this is Node 20.1.2. Get it: https://nodejs.org/en/download\n",
    });
  });

  test("the demo runs to its end and shows the delivered files", async () => {
    const checkout = join(ROOT, "bin/inlet.cjs");
    const { exitCode, stdout, stderr } = await runCommand(process.execPath, [checkout, "demo", "--exit"], {
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

describe("as a package", () => {
  test("it installs from its tarball and runs on plain Node, without the sources and without other packages", {
    tags: ["system"],
  }, async () => {
    const folder = await makeFolder();
    const prefix = await installPackage(folder);
    const home = join(prefix, "lib/node_modules/inletd");
    const packed = await readdir(home, { recursive: true, withFileTypes: true });
    const files = packed
      .filter((it) => it.isFile())
      .map((it) => relative(home, join(it.parentPath, it.name)));
    expect(files.filter((path) => !path.startsWith("dist/")).toSorted()).toEqual(await filesToPack());
    const built = files.filter((path) => !/^dist\/(packages|assets)\/|\.js$/.test(path));
    expect(built.filter((path) => path.startsWith("dist/")).toSorted()).toEqual([
      "dist/THIRD-PARTY-LICENSES",
      "dist/sbom.cdx.json",
    ]);
    expect(await readdir(dirname(home))).toEqual(["inletd"]);
    const licenses = await readFile(join(home, "dist/THIRD-PARTY-LICENSES"), "utf8");
    for (const name of ["bullmq", "undici", "@ioredis/commands"]) {
      expect(licenses).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(MIT\\)$`, "m"));
    }
    const env = { TMPDIR: folder, PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
    const inlet = join(prefix, "bin/inlet");
    expect((await runCommand(inlet, ["--version"], { env })).stdout.trim()).toBe(version);
    const config = join(folder, "inlet.yaml");
    const answers = ["--base-url", "https://a.example", "--mailbox", "a@b.example", "--inbox", folder];
    const init = await runCommand(inlet, ["init", "--yes", "--no-test", "--config", config, ...answers], {
      env,
    });
    expect([init.exitCode, await readFile(config, "utf8")]).toEqual([
      0,
      expect.stringContaining(join(home, "config/inlet.example.yaml")),
    ]);
    expect(await readdir(join(home, "config"))).toContain("inlet.example.yaml");
    expect(await runCommand(inlet, ["demo", "--exit"], { env })).toMatchObject({ exitCode: 0, stderr: "" });
  });
});

/** Files of the project that users need, in the order of their paths. */
async function filesToPack(): Promise<string[]> {
  const folders = ["bin", "config", "docs", "examples", "systemd"];
  const single = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "package.json"];
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...folders, ...single];
  const { stdout } = await runCommand("git", list, { cwd: ROOT });
  return stdout.trim().split("\n").toSorted();
}
