/**
 * Builds the program: JavaScript with all packages in it, so that it starts fast and an installation needs nothing but
 * Node. It is not minified: stack traces name functions, and people can read it.
 */
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build, type Plugin } from "rolldown";
import { describeBundle } from "./packaging/sbom.ts";

const ROOT = import.meta.dirname;
/** The files that are started as programs. The page's assets lie beside them. */
const PROGRAMS = { main: "src/main.ts", "lock-trial": "src/inbox/lock-trial.ts" };
const ASSETS = "src/console/assets";
const LICENSES = "THIRD-PARTY-LICENSES";
const SBOM = "sbom.cdx.json";

/** The packed files that the program uses. */
const PACKAGE = ["package.json", "bin", "config"];

/** Importing it as a module reads every export, also those that load Node's WebSocket and fetch, for 50 ms. */
const lazyHttp: Plugin = {
  name: "lazy-http",
  resolveId: { filter: { id: /^(node:)?http$/ }, handler: () => "\0lazy-http" },
  load: {
    filter: { id: /^\0lazy-http$/ },
    handler: () => 'module.exports = process.getBuiltinModule("node:http");',
  },
};

if (import.meta.main) await buildPrograms(join(ROOT, "dist"));

/** The program in a folder, laid out like an installed package. Returns its launcher. */
export async function buildPackage(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  await buildPrograms(join(folder, "dist"));
  for (const part of PACKAGE) await cp(join(ROOT, part), join(folder, part), { recursive: true });
  return join(folder, "bin/inlet.cjs");
}

/** Replaces the folder. `more`: other programs on the same sources, by name. */
export async function buildPrograms(
  folder: string,
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { output } = await build({
    cwd: ROOT,
    input: { ...PROGRAMS, ...more },
    platform: "node",
    plugins: [lazyHttp],
    preserveEntrySignatures: false,
    // The native part of msgpackr is optional, and cannot be bundled.
    external: ["msgpackr-extract"],
    transform: { define: { "process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED": '"true"' } },
    output: {
      dir: folder,
      cleanDir: true,
      format: "esm",
      chunkFileNames: "[name].js",
      codeSplitting: {
        includeDependenciesRecursively: false,
        groups: [{ debugName: "packages", name: chunkOf, test: /\/node_modules\// }],
      },
    },
    logLevel: "warn",
  });
  await cp(join(ROOT, ASSETS), join(folder, "assets"), { recursive: true });
  const chunks = output.filter((it) => it.type === "chunk");
  refuseCircles(new Map(chunks.map(({ fileName, imports }) => [fileName, imports])));
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  const folders = new Set(modules.flatMap((module) => packageOf(module)?.folder ?? []));
  await writeFile(join(folder, LICENSES), await describeLicenses(folders));
  await writeFile(join(folder, SBOM), await describeBundle(ROOT, folders));
}

/** Each package has a file of its own. */
function chunkOf(module: string): string | null {
  const name = packageOf(module)?.name.replace(/^@(.+)\//, "$1-");
  return name === undefined ? null : `packages/${name}`;
}

/** In a circle of files, one would run before its imports are there. */
function refuseCircles(imports: ReadonlyMap<string, readonly string[]>): void {
  let left = [...imports.keys()];
  for (;;) {
    const waiting = left.filter((file) => imports.get(file)?.some((target) => left.includes(target)));
    if (waiting.length === 0) return;
    if (waiting.length === left.length) throw new Error(`a circle of imports: ${waiting.join(", ")}`);
    left = waiting;
  }
}

function packageOf(module: string): { name: string; folder: string } | undefined {
  const [, folder = "", name] = /^([^\0]*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(module) ?? [];
  return name === undefined ? undefined : { name, folder };
}

/** Throws where a bundled package has no text of its license. */
async function describeLicenses(folders: ReadonlySet<string>): Promise<string> {
  const entries = await Promise.all([...folders].map(describeLicense));
  return `Inlet contains these packages.\n\n${entries.toSorted().join("\n")}`;
}

async function describeLicense(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice)/i.test(file));
  if (files.length === 0) throw new Error(`${name} has no license file`);
  const texts = await Promise.all(files.toSorted().map((file) => readFile(join(folder, file), "utf8")));
  const title = `${name} ${version} (${license})`;
  return `${title}\n${"-".repeat(title.length)}\n\n${texts.map((text) => text.trim()).join("\n\n")}\n`;
}
