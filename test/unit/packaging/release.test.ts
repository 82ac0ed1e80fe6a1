/** `npm run release`: what it commits, and when it refuses to. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import packageJson from "../../../package.json" with { type: "json" };
import { commitRelease, findObstacles, sectionOf } from "../../../packaging/release.ts";
import { makeFolder, runCommand } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

const DATE = "2026-03-01";

test("sets the version, closes the section of the changelog, and tags the commit", async () => {
  const root = await makeProject("1.2.0");
  expect(await findObstacles(root)).toEqual([]);
  await commitRelease(root, "1.10.0", DATE);
  for (const name of ["package.json", "package-lock.json"]) {
    expect(JSON.parse(await readFile(join(root, name), "utf8"))).toMatchObject({ version: "1.10.0" });
  }
  expect(await readFile(join(root, "CHANGELOG.md"), "utf8")).toBe(
    `# Changelog\n\n## Unreleased\n\n## 1.10.0 - ${DATE}\n\n- News.\n\n## 1.2.0 - 2026-01-01\n\n- Old.\n`,
  );
  expect(await git(root, "log", "-1", "--format=%s %D")).toBe("release: 1.10.0 HEAD -> main, tag: v1.10.0\n");
  expect(await git(root, "cat-file", "-t", "v1.10.0")).toBe("tag\n");
  expect(await git(root, "status", "--porcelain")).toBe("");
  // Nothing has changed since.
  await expect(commitRelease(root, "1.11.0", DATE)).rejects.toThrow("nothing under Unreleased");
});

test("refuses a version that is not new, but releases the first version as it is", async () => {
  const root = await makeProject("1.2.0");
  for (const version of ["1.2.0", "1.1.9", "1.3", "v1.3.0"]) {
    await expect(commitRelease(root, version, DATE)).rejects.toThrow("is no version after 1.2.0");
  }
  expect(await git(root, "status", "--porcelain")).toBe("");
  const first = await makeProject("1.3.0");
  await commitRelease(first, "1.3.0", DATE);
  expect(await git(first, "tag")).toBe("v1.3.0\n");
});

test("names changes that are not committed, and each placeholder that is left", async () => {
  const root = await makeProject("1.2.0");
  await writeFile(join(root, "package.json"), JSON.stringify({ homepage: "https://inlet.example/a" }));
  expect(await findObstacles(root)).toEqual([
    "package.json has a placeholder: https://inlet.example/a",
    "some changes are not committed",
  ]);
});

test("a dry run makes everything that needs no network, and leaves the checkout as it is", {
  tags: ["system"],
}, async () => {
  const folder = await makeFolder();
  const before = await git(ROOT, "status", "--porcelain");
  // Without a registry and without a cache.
  const env = { TMPDIR: folder, npm_config_offline: "true", npm_config_cache: join(folder, "cache") };
  const run = await runCommand("npm", ["run", "--silent", "release", "--", "--dry-run"], { cwd: ROOT, env });
  expect([run.exitCode, run.stderr]).toEqual([0, ""]);
  const [major, minor] = packageJson.version.split(".");
  const version = `${major}.${Number(minor) + 1}.0`;
  expect(run.stdout).toContain(`committed and tagged v${version} in a temporary clone`);
  for (const what of ["Debian package for amd64", "Debian package for arm64", "image"]) {
    expect(run.stdout).toContain(`not built: the ${what}`);
  }
  const [, built = ""] = /^built: (.*)\/SHA256SUMS$/m.exec(run.stdout) ?? [];
  expect((await readdir(built)).toSorted()).toEqual([
    "SHA256SUMS",
    `inletd-${version}.cdx.json`,
    `inletd-${version}.tgz`,
    "release-notes.md",
  ]);
  expect(await runCommand("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: built })).toMatchObject({
    exitCode: 0,
  });
  const changelog = await readFile(join(ROOT, "CHANGELOG.md"), "utf8");
  expect(await readFile(join(built, "release-notes.md"), "utf8")).toBe(
    `${sectionOf(changelog, "Unreleased")}\n`,
  );
  const tarball = join(built, `inletd-${version}.tgz`);
  const print = ["-xzOf", tarball, "package/config/compose.sidecar.yaml", "package/package.json"];
  const { stdout } = await runCommand("tar", print);
  expect(stdout).toContain(`image: inlet:${version}\n`);
  expect(stdout).toContain(`"version": "${version}"`);
  expect((await readdir(folder)).filter((name) => name.startsWith("inlet-clone-"))).toEqual([]);
  expect(await git(ROOT, "status", "--porcelain")).toBe(before);
});

test("the workflows pin their actions by hash, and give rights only to the job that needs them", async () => {
  const folder = join(ROOT, ".github/workflows");
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name), "utf8");
    const { permissions, jobs } = parse(text);
    expect([name, permissions]).toEqual([name, { contents: "read" }]);
    const all = Object.values<Job>(jobs).flatMap((job) => [job, ...(job.steps ?? [])]);
    const used = all.flatMap((it) => it.uses ?? []);
    // A tag can be moved. The comment names the version for people and for bots that update the hash.
    const isPinned = (it: string) =>
      /@[0-9a-f]{40}$/.test(it) && new RegExp(`${it} # v\\d+\\.\\d+\\.\\d+$`, "m").test(text);
    expect(used.filter((it) => !it.startsWith("./") && !isPinned(it))).toEqual([]);
    expect(used.length).toBeGreaterThan(0);
  }
});

interface Job {
  readonly uses?: string;
  readonly steps?: readonly { readonly uses?: string }[];
}

/** A committed project without generated pages, with a change since its version 1.2.0. */
async function makeProject(version: string): Promise<string> {
  const root = await makeFolder();
  const manifest = { name: "project", version, homepage: "https://project.org", scripts: { docs: "true" } };
  const lock = {
    name: "project",
    version,
    lockfileVersion: 3,
    packages: { "": { name: "project", version } },
  };
  const changelog = "# Changelog\n\n## Unreleased\n\n- News.\n\n## 1.2.0 - 2026-01-01\n\n- Old.\n";
  await writeFile(join(root, "package.json"), JSON.stringify(manifest));
  await writeFile(join(root, "package-lock.json"), JSON.stringify(lock));
  await writeFile(join(root, "CHANGELOG.md"), changelog);
  await git(root, "init", "--quiet", "--initial-branch=main");
  for (const [key, value] of [
    ["user.name", "anna"],
    ["user.email", "anna@project.org"],
    ["commit.gpgSign", "false"],
    ["tag.gpgSign", "false"],
  ] as const) {
    await git(root, "config", key, value);
  }
  await git(root, "add", "--all");
  await git(root, "commit", "--quiet", "--message", "first");
  return root;
}

async function git(root: string, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runCommand("git", args, { cwd: root });
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout;
}
