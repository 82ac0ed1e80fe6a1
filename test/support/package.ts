/** The package as users get it: packed from this checkout and installed in a folder, and the lists of what it contains. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { runNpm } from "./program.ts";
import { ROOT } from "./root.ts";

/** `folder` must be empty. Returns the prefix that holds `bin/inlet`. */
export async function installPackage(folder: string): Promise<string> {
  expect(await runNpm(["pack", "--pack-destination", folder], ROOT)).toMatchObject({ exitCode: 0 });
  const [tarball = ""] = await readdir(folder);
  const prefix = join(folder, "prefix");
  const install = ["install", "--global", "--prefix", prefix, "--no-audit", "--no-fund"];
  expect(await runNpm([...install, join(folder, tarball)], folder)).toMatchObject({ exitCode: 0 });
  return prefix;
}

/** `NAME VERSION` of each package in the bill of materials. */
export function packagesInSbom(text: string): string[] {
  const { components } = JSON.parse(text) as { components: { name: string; version: string }[] };
  return components.map(({ name, version }) => `${name} ${version}`).toSorted();
}

/** `NAME VERSION` of each package in THIRD-PARTY-LICENSES, which reads them from the packages themselves. */
export function packagesInLicenses(text: string): string[] {
  return [...text.matchAll(/^(\S+ \S+) \(.*\)\n-+$/gm)].map(([, title = ""]) => title).toSorted();
}
