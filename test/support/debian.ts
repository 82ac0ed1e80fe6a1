/**
 * Programs that tests need besides Node: the machine's own, else from Debian's packages, unpacked into this checkout's
 * cache. No test is skipped for a missing program: it fails and says what to install.
 */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { arch } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "./root.ts";

const run = promisify(execFile);
const CACHE = join(ROOT, "node_modules/.cache/debian");
const TRIPLETS: Readonly<Record<string, string>> = { arm64: "aarch64-linux-gnu", x64: "x86_64-linux-gnu" };
const SYSTEM_FOLDERS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

export interface DebianProgram {
  readonly path: string;
  /** Added to the environment of the program. */
  readonly env: Readonly<Record<string, string>>;
}

/** A program that every Debian system has. */
export function essentialProgram(name: string): string {
  const path = findIn(SYSTEM_FOLDERS, name);
  if (path === undefined) throw new Error(`${name} is missing`);
  return path;
}

/** `packages`: first the program's own, then libraries that a small system lacks. */
export async function findProgram(name: string, packages: readonly string[]): Promise<DebianProgram> {
  requireSystemLayer(name);
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...SYSTEM_FOLDERS];
  const path = findIn(folders, name);
  if (path !== undefined) return { path, env: {} };
  const root = await unpack(packages).catch((cause: unknown) => {
    throw new Error(`${name} is missing: install Debian's package ${packages[0]}`, { cause });
  });
  const unpacked = findIn(
    SYSTEM_FOLDERS.map((folder) => join(root, folder)),
    name,
  );
  if (unpacked === undefined) throw new Error(`no ${name} in Debian's packages ${packages.join(", ")}`);
  return { path: unpacked, env: { LD_LIBRARY_PATH: librariesIn(root).join(":") } };
}

/** The folder with the content of Debian's packages, for a program that must not be the machine's own. */
export async function unpackPackages(
  packages: readonly string[],
): Promise<{ root: string; libraries: string[] }> {
  requireSystemLayer(packages.join(", "));
  const root = await unpack(packages).catch((cause: unknown) => {
    throw new Error(`Debian's packages ${packages.join(", ")} cannot be downloaded`, { cause });
  });
  return { root, libraries: librariesIn(root) };
}

function librariesIn(root: string): string[] {
  return ["usr/lib", "lib"].map((folder) => join(root, folder, TRIPLETS[arch()] ?? ""));
}

/** For a program with many libraries: installs its package, which needs root. */
export function installProgram(name: string, packageName: string): Promise<string> {
  const find = () => findIn([...(process.env["PATH"] ?? "").split(delimiter), ...SYSTEM_FOLDERS], name);
  return install(name, packageName, find);
}

/** Installs a Python module, which needs root. Returns Debian's Python: another one does not have the module. */
export async function installModule(name: string): Promise<string> {
  const find = () => findIn(["/usr/lib/python3/dist-packages"], name);
  await install(`Python's module ${name}`, `python3-${name}`, find);
  return "/usr/bin/python3";
}

async function install(name: string, packageName: string, find: () => string | undefined): Promise<string> {
  requireSystemLayer(name);
  const path = find();
  if (path !== undefined) return path;
  const wait = ["-o", "DPkg::Lock::Timeout=300"];
  const args = [...wait, "install", "-y", "--no-install-recommends", packageName];
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  try {
    await run("apt-get", args, { env }).catch(async () => {
      await run("apt-get", [...wait, "update"]);
      await run("apt-get", args, { env });
    });
  } catch (cause) {
    throw new Error(`${name} is missing: install Debian's package ${packageName}`, { cause });
  }
  const installed = find();
  if (installed === undefined) throw new Error(`no ${name} in Debian's package ${packageName}`);
  return installed;
}

/** Also where the program is installed: `npm test` must pass on machines without it. */
function requireSystemLayer(wanted: string): void {
  if (process.env["INLET_TEST_LAYER"] !== "ordinary") return;
  throw new Error(`this test needs ${wanted}: tag it "system", so that npm run test:system runs it`);
}

function findIn(folders: readonly string[], name: string): string | undefined {
  return folders
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Several tests may call this at once: each unpacks, and the first one's folder stays. */
async function unpack(packages: readonly string[]): Promise<string> {
  const target = join(CACHE, packages.join("+"));
  if ((await readdir(target).catch(() => [])).length > 0) return target;
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, "new-"));
  try {
    const downloads = join(folder, "downloads");
    const root = join(folder, "root");
    for (const made of [downloads, root]) await mkdir(made);
    await download(packages, downloads);
    for (const file of await readdir(downloads)) await run("dpkg", ["-x", join(downloads, file), root]);
    await rename(root, target).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "ENOTEMPTY")) throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return target;
}

/** A fresh machine may have no package lists yet. */
async function download(packages: readonly string[], cwd: string): Promise<void> {
  const args = ["-o", "APT::Sandbox::User=root", "download", ...packages];
  try {
    await run("apt-get", args, { cwd });
  } catch {
    await run("apt-get", ["update"]);
    await run("apt-get", args, { cwd });
  }
}
