/**
 * The software bill of materials of the built program: the packages that it contains, as CycloneDX. `npm sbom` lists the
 * packages of the checkout, most of which only build and test. The same sources make the same bytes.
 */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** An entry of package-lock.json, by its path such as `node_modules/ioredis`. */
interface Locked {
  readonly version: string;
  readonly license: string;
  readonly integrity: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** `folders`: absolute paths of the packages in the bundle. Throws if the lock file does not name one of them. */
export async function describeBundle(root: string, folders: ReadonlySet<string>): Promise<string> {
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  const bundled = new Map<string, Locked>();
  for (const folder of [...folders].toSorted()) {
    const path = folder.slice(folder.indexOf("node_modules/"));
    const locked: Locked | undefined = lock.packages[path];
    if (locked?.integrity === undefined) throw new Error(`package-lock.json has no integrity for ${path}`);
    bundled.set(path, locked);
  }
  // Two folders may contain the same version of a package.
  const packages = new Map([...bundled].map((entry) => [purlOf(nameOf(entry[0]), entry[1].version), entry]));
  const program = await readProgram(root);
  const bom = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { lifecycles: [{ phase: "build" }], component: program },
    components: [...packages].map(([purl, [path, locked]]) => describePackage(purl, nameOf(path), locked)),
    dependencies: [
      { ref: program.purl, dependsOn: [...packages.keys()] },
      ...[...packages].map(([ref, [path, locked]]) => ({
        ref,
        dependsOn: dependenciesOf(path, locked, bundled),
      })),
    ],
  };
  return `${JSON.stringify(bom, undefined, 2)}\n`;
}

async function readProgram(root: string) {
  const text = await readFile(join(root, "package.json"), "utf8");
  const { name, version, description, license } = JSON.parse(text);
  const purl = purlOf(name, version);
  const licenses = [{ expression: license }];
  return { type: "application", "bom-ref": purl, name, version, description, licenses, purl };
}

function describePackage(purl: string, name: string, { version, license, integrity }: Locked) {
  const [algorithm = "", hash = ""] = integrity.split("-");
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    scope: "required",
    hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(hash, "base64").toString("hex") }],
    licenses: [{ expression: license }],
    purl,
  };
}

/** Packages that are not in the bundle are left out: the program does not use them. */
function dependenciesOf(
  path: string,
  { dependencies, optionalDependencies }: Locked,
  bundled: ReadonlyMap<string, Locked>,
): string[] {
  const names = Object.keys({ ...dependencies, ...optionalDependencies }).toSorted();
  return names.flatMap((name) => {
    const found = resolvePackage(path, name, bundled);
    return found === undefined ? [] : purlOf(name, found.version);
  });
}

/** As Node finds it: in the package's own node_modules, else in those of the folders above. */
function resolvePackage(
  from: string,
  name: string,
  bundled: ReadonlyMap<string, Locked>,
): Locked | undefined {
  for (let folder = from; folder !== "."; folder = dirname(folder)) {
    const found = bundled.get(join(folder, "node_modules", name));
    if (found !== undefined) return found;
  }
  return bundled.get(join("node_modules", name));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** A package URL: `pkg:npm/%40ioredis/commands@2.0.0`. */
function purlOf(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}
