/**
 * Makes a release: `npm run release -- VERSION` sets the version, closes the section of the changelog, commits and tags. It
 * pushes nothing. `--dry-run` does the same in a temporary clone and builds the artifacts there; the version defaults to the
 * next minor one. The release workflow builds its artifacts with `--artifacts FOLDER`.
 */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { buildDeb } from "./deb.ts";
import { ARCHITECTURES } from "./node.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "..");
const UNRELEASED = "Unreleased";

/** Why this checkout cannot be released. A dry run prints it and continues. */
export async function findObstacles(root: string): Promise<string[]> {
  const placeholders = (await read(root, "package.json")).match(/[^"\s<]+\.example\b[^">]*/g) ?? [];
  const obstacles = placeholders.map((it) => `package.json has a placeholder: ${it}`);
  if ((await git(root, "status", "--porcelain")) !== "") obstacles.push("some changes are not committed");
  return obstacles;
}

/** `root` must be clean. `date`: 2026-03-01. Throws if the version is not a new one, or nothing has changed. */
export async function commitRelease(root: string, version: string, date: string): Promise<void> {
  const changelog = await read(root, "CHANGELOG.md");
  const current = await readVersion(root);
  // The first version is in package.json before it is released.
  const isReleased = sectionOf(changelog, current) !== undefined;
  const order = version.localeCompare(current, "en", { numeric: true });
  if (!/^\d+\.\d+\.\d+$/.test(version) || order < (isReleased ? 1 : 0)) {
    throw new Error(`${version} is no version after ${current}`);
  }
  if (!sectionOf(changelog, UNRELEASED)) throw new Error(`CHANGELOG.md has nothing under ${UNRELEASED}`);
  const heading = `## ${UNRELEASED}\n`;
  await writeFile(
    join(root, "CHANGELOG.md"),
    changelog.replace(heading, `${heading}\n## ${version} - ${date}\n`),
  );
  await run("npm", ["version", version, "--no-git-tag-version", "--allow-same-version"], { cwd: root });
  // Pages name the version too.
  await run("npm", ["run", "docs"], { cwd: root });
  await git(root, "commit", "--quiet", "--all", "--message", `release: ${version}`);
  // Git signs commit and tag where commit.gpgSign and tag.gpgSign are set.
  await git(root, "tag", "--annotate", "--message", `Inlet ${version}`, `v${version}`);
}

/** The text under the heading of a version. */
export function sectionOf(changelog: string, version: string): string | undefined {
  const section = changelog.split(/^## /m).find((it) => it.split(/\s/, 1)[0] === version);
  return section?.slice(section.indexOf("\n")).trim();
}

async function release(version: string | undefined): Promise<void> {
  if (version === undefined) throw new Error("name the version: npm run release -- VERSION");
  const obstacles = await findObstacles(ROOT);
  if (obstacles.length > 0) throw new Error(obstacles.join("\n"));
  await commitRelease(ROOT, version, today());
  print(`Check the commit. Then push it with its tag:\n  git push --atomic origin HEAD v${version}`);
}

async function rehearse(given: string | undefined): Promise<void> {
  for (const obstacle of await findObstacles(ROOT)) print(`a release would stop: ${obstacle}`);
  const clone = await mkdtemp(join(tmpdir(), "inlet-clone-"));
  try {
    await copyCheckout(clone);
    const [major, minor] = (await readVersion(ROOT)).split(".");
    const version = given ?? `${major}.${Number(minor) + 1}.0`;
    await commitRelease(clone, version, today());
    print(`committed and tagged v${version} in a temporary clone`);
    const folder = await mkdtemp(join(tmpdir(), `inlet-${version}-`));
    const script = join(clone, "packaging/release.ts");
    const args = [script, "--artifacts", folder, "--dry-run"];
    const [code] = await once(spawn(process.execPath, args, { stdio: "inherit" }), "exit");
    if (code !== 0) throw new Error("the artifacts were not built");
    print("not built: the image and the signatures, which the release workflow makes");
  } finally {
    await rm(clone, { recursive: true, force: true });
  }
}

/** Also changes that are not committed, so that they can be tried. */
async function copyCheckout(clone: string): Promise<void> {
  await run("git", ["clone", "--quiet", ROOT, clone]);
  const files = await git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z");
  for (const path of files.split("\0").filter(Boolean)) {
    if (existsSync(join(ROOT, path))) await cp(join(ROOT, path), join(clone, path));
    else await rm(join(clone, path));
  }
  await symlink(join(ROOT, "node_modules"), join(clone, "node_modules"));
  const settings = { "user.name": "dry run", "user.email": "dry-run", "commit.gpgSign": "false" };
  for (const [key, value] of Object.entries({ ...settings, "tag.gpgSign": "false" })) {
    await git(clone, "config", key, value);
  }
  await git(clone, "add", "--all");
  await git(clone, "commit", "--quiet", "--allow-empty", "--message", "the checkout");
}

/** Of this checkout, whose changelog has a section for its version. A dry run leaves out packages without their Node. */
async function buildArtifacts(folder: string, isDryRun: boolean): Promise<void> {
  const version = await readVersion(ROOT);
  const notes = sectionOf(await read(ROOT, "CHANGELOG.md"), version);
  if (!notes) throw new Error(`CHANGELOG.md has no section for ${version}`);
  await mkdir(folder, { recursive: true });
  print("packing the npm package");
  await run("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: ROOT });
  await cp(join(ROOT, "dist/sbom.cdx.json"), join(folder, `inletd-${version}.cdx.json`));
  await writeFile(join(folder, "release-notes.md"), `${notes}\n`);
  for (const architecture of ARCHITECTURES) {
    try {
      await buildDeb({ architecture, folder, onStep: print });
    } catch (error) {
      if (!isDryRun) throw error;
      print(`not built: the Debian package for ${architecture}: ${messageOf(error)}`);
    }
  }
  const names = (await readdir(folder)).toSorted();
  const sums = await Promise.all(
    names.map(async (name) => {
      const sum = createHash("sha256").update(await readFile(join(folder, name)));
      return `${sum.digest("hex")}  ${name}\n`;
    }),
  );
  await writeFile(join(folder, "SHA256SUMS"), sums.join(""));
  for (const name of [...names, "SHA256SUMS"]) print(`built: ${join(folder, name)}`);
}

async function git(root: string, ...args: readonly string[]): Promise<string> {
  return (await run("git", [...args], { cwd: root })).stdout;
}

function read(root: string, path: string): Promise<string> {
  return readFile(join(root, path), "utf8");
}

async function readVersion(root: string): Promise<string> {
  return JSON.parse(await read(root, "package.json")).version;
}

function today(): string {
  return new Date().toISOString().slice(0, 10);
}

/** Commands that failed have their output on the lines after the first one. */
function messageOf(error: unknown): string {
  return error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

if (import.meta.main) {
  const options = { "dry-run": { type: "boolean", default: false }, artifacts: { type: "string" } } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [version] = positionals;
  if (values.artifacts !== undefined) await buildArtifacts(values.artifacts, values["dry-run"]);
  else await (values["dry-run"] ? rehearse(version) : release(version));
}
