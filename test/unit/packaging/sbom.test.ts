/** The bill of materials names every package in the built program, with its version, hash and license. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { packagesInLicenses, packagesInSbom } from "../../support/package.ts";
import { LAUNCHER } from "../../support/program.ts";
import { ROOT } from "../../support/root.ts";

const dist = join(dirname(LAUNCHER), "../dist");
const text = readFileSync(join(dist, "sbom.cdx.json"), "utf8");
const bom = JSON.parse(text);

test("names the packages that are in the program, and no others", () => {
  expect(packagesInSbom(text)).toEqual(
    packagesInLicenses(readFileSync(join(dist, "THIRD-PARTY-LICENSES"), "utf8")),
  );
  expect(bom.components.length).toBeGreaterThan(30);
  expect(bom.metadata.component).toMatchObject({ name: packageJson.name, version: packageJson.version });
});

test("names every package that the sources import", () => {
  const versions: Readonly<Record<string, string>> = packageJson.devDependencies;
  const imported = ["src", "simulator"]
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((path) =>
        join(ROOT, folder, path),
      ),
    )
    .filter((path) => path.endsWith(".ts"))
    .flatMap((path) => [
      ...readFileSync(path, "utf8").matchAll(/^import (?!type )[^;]*?from "([^".][^"]*)"/gm),
    ])
    .map(([, specifier = ""]) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "")
    .filter((name) => !name.startsWith("node:"));
  expect(new Set(imported).size).toBeGreaterThan(8);
  const named = packagesInSbom(text);
  for (const name of new Set(imported)) expect(named).toContain(`${name} ${versions[name]}`);
});

test("gives each package the hash of the lock file, its license, and a reference of its own", () => {
  const lock = readFileSync(join(ROOT, "package-lock.json"), "utf8");
  const references = bom.components.map((component: { "bom-ref": string }) => component["bom-ref"]);
  expect(new Set(references).size).toBe(references.length);
  for (const { name, version, purl, hashes, licenses } of bom.components) {
    expect(purl).toBe(`pkg:npm/${name.replace("@", "%40")}@${version}`);
    expect(hashes).toEqual([{ alg: "SHA-512", content: expect.stringMatching(/^[0-9a-f]{128}$/) }]);
    expect(lock).toContain(`"sha512-${Buffer.from(hashes[0].content, "hex").toString("base64")}"`);
    expect(licenses).toEqual([{ expression: expect.stringMatching(/^[\w.-]+$/) }]);
  }
  const known = new Set([bom.metadata.component["bom-ref"], ...references]);
  for (const { ref, dependsOn } of bom.dependencies) {
    expect([ref, ...dependsOn].filter((name: string) => !known.has(name))).toEqual([]);
  }
  expect(bom.dependencies).toContainEqual({
    ref: expect.stringMatching(/^pkg:npm\/yauzl@/),
    dependsOn: [expect.stringMatching(/^pkg:npm\/pend@/)],
  });
});
