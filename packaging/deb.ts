/**
 * Builds the Debian package, with the Node that the project is tested with: `npm run package:deb` for the architecture of
 * this machine, or `npm run package:deb -- --arch arm64` (or `all`). Any machine with dpkg can build for any architecture.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { parseArgs, promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { buildPackage } from "../build.ts";
import packageJson from "../package.json" with { type: "json" };
import { describeInMan } from "./man.ts";
import { ARCHITECTURES, type Architecture, NODE_VERSION, placeNode } from "./node.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "..");
const DEBIAN = join(import.meta.dirname, "debian");
/** Of the package, with Debian's revision. A tilde sorts 1.0.0~rc.1 before 1.0.0. */
const VERSION = `${packageJson.version.replace("-", "~")}-1`;
const SCRIPTS = ["postinst", "prerm", "postrm"];
const CONFFILE = "/etc/inlet/inlet.example.yaml";

/** Where the program is. */
const PROGRAM = "usr/lib/inlet";
const COMMAND = "usr/bin/inlet";
/** The files that are executable. */
const PROGRAMS = [COMMAND, `${PROGRAM}/bin/node`, ...SCRIPTS.map((name) => `DEBIAN/${name}`)];
const DOCUMENTS = "usr/share/doc/inlet";

const CONTAINED = `Inlet contains Node ${NODE_VERSION}, whose license is in /${PROGRAM}/NODE-LICENSE, and packages whose
licenses are in /${PROGRAM}/dist/THIRD-PARTY-LICENSES.
`;

/** Level 4 of xz takes two thirds of the time of the default one, and two percent more space. */
const COMPRESSION = { xz: ["-Zxz", "-z4"], gzip: ["-Zgzip", "-z1"] };

/** Completion scripts by shell. */
const COMPLETIONS = {
  bash: "usr/share/bash-completion/completions/inlet",
  zsh: "usr/share/zsh/vendor-completions/_inlet",
  fish: "usr/share/fish/vendor_completions.d/inlet.fish",
};

export interface DebOptions {
  readonly architecture: Architecture;
  /** Where the package is written. */
  readonly folder: string;
  /** A test needs no small package, and compression takes long. */
  readonly compression?: "xz" | "gzip";
  /** Called before each step, with what it does. */
  readonly onStep?: (step: string) => void;
}

/** Returns the path of the package. The same sources make the same bytes, with the time of the last commit. */
export async function buildDeb(options: DebOptions): Promise<string> {
  const { architecture, folder, compression = "xz", onStep = () => {} } = options;
  const epoch = await readEpoch();
  const root = await mkdtemp(join(tmpdir(), "inlet-deb-"));
  try {
    onStep(`fetching Node ${NODE_VERSION} for ${architecture}`);
    const program = join(root, PROGRAM);
    await placeNode(architecture, join(program, "bin/node"), join(program, "NODE-LICENSE"));
    onStep("building the program");
    await placeProgram(root);
    onStep("adding units, configuration, documents and completions");
    await placeUnits(root);
    await placeConfiguration(root);
    await placeDocuments(root, epoch);
    await placeCompletions(root);
    await writeControl(root, architecture);
    await normaliseModes(root);
    const deb = join(folder, `inlet_${VERSION}_${architecture}.deb`);
    onStep(`compressing ${deb} with ${compression}, which may take a minute`);
    await run("dpkg-deb", ["--root-owner-group", ...COMPRESSION[compression], "--build", root, deb], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
    });
    return deb;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** Seconds: given, or the time of the last commit. */
async function readEpoch(): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"];
  if (given !== undefined) return Number(given);
  return Number((await run("git", ["log", "-1", "--format=%ct"], { cwd: ROOT })).stdout);
}

/** The program without its Node, and the command. */
async function placeProgram(root: string): Promise<void> {
  const folder = join(root, PROGRAM);
  const launcher = await buildPackage(folder);
  // A trial of the examples may have left secrets in the checkout.
  await rm(join(folder, "config/secrets"), { recursive: true, force: true });
  await writeFile(launcher, (await readFile(launcher, "utf8")).replace(/^#!.*\n/, ""));
  await place(root, COMMAND, `#!/bin/sh\nexec /${PROGRAM}/bin/node /${PROGRAM}/bin/inlet.cjs "$@"\n`);
}

/** The units of systemd/, with the paths of this package. */
async function placeUnits(root: string): Promise<void> {
  const source = join(ROOT, "systemd");
  for (const name of ["inlet.service", "inlet-once.service", "inlet-once.timer"]) {
    await place(
      root,
      `usr/lib/systemd/system/${name}`,
      adaptUnit(await readFile(join(source, name), "utf8")),
    );
  }
  for (const kind of ["sysusers", "tmpfiles"]) {
    await place(root, `usr/lib/${kind}.d/inlet.conf`, await readFile(join(source, `inlet.${kind}`), "utf8"));
  }
}

/** It is enabled at the installation, and must not fail before it is configured. */
function adaptUnit(unit: string): string {
  return unit
    .replace(/^# Inlet as a service.*$/m, "# Inlet as a service. Change it with `systemctl edit inlet`.")
    .replace(
      /^Documentation=.*$/m,
      `Documentation=man:inlet(1) file:/${DOCUMENTS}/operating.md\nConditionPathExists=/etc/inlet/inlet.yaml`,
    )
    .replace("=/opt/inlet/bin/inlet ", "=/usr/bin/inlet ");
}

async function placeConfiguration(root: string): Promise<void> {
  const example = await readFile(join(ROOT, "config/inlet.example.yaml"), "utf8");
  const schema = `/${PROGRAM}/config/inlet.schema.json`;
  await place(root, CONFFILE, example.replace(/(?<=\$schema=)\S+/, schema));
}

async function placeDocuments(root: string, epoch: number): Promise<void> {
  const date = new Date(epoch * 1_000);
  const pages = await describeInMan({ version: packageJson.version, date: date.toISOString().slice(0, 10) });
  for (const [name, text] of Object.entries(pages)) {
    await placeZipped(root, `usr/share/man/man${name.at(-1)}/${name}.gz`, text);
  }
  await cp(join(ROOT, "docs"), join(root, DOCUMENTS), { recursive: true });
  await cp(join(ROOT, "examples"), join(root, DOCUMENTS, "examples"), { recursive: true });
  await symlink("../../../../lib/inlet/config", join(root, DOCUMENTS, "examples/config"));
  await placeZipped(root, `${DOCUMENTS}/changelog.gz`, await readFile(join(ROOT, "CHANGELOG.md"), "utf8"));
  const rfcDate = date.toUTCString().replace("GMT", "+0000");
  await placeZipped(
    root,
    `${DOCUMENTS}/changelog.Debian.gz`,
    `inlet (${VERSION}) unstable; urgency=medium\n\n  * changelog.gz lists the changes.\n\n -- ${maintainer()}  ${rfcDate}\n`,
  );
  const license = await readFile(join(ROOT, "LICENSE"), "utf8");
  await place(root, `${DOCUMENTS}/copyright`, `${license}\n${CONTAINED}`);
  await place(
    root,
    "usr/share/lintian/overrides/inlet",
    await readFile(join(DEBIAN, "lintian-overrides"), "utf8"),
  );
}

/** The program itself prints them. */
async function placeCompletions(root: string): Promise<void> {
  const launcher = join(root, PROGRAM, "bin/inlet.cjs");
  for (const [shell, path] of Object.entries(COMPLETIONS)) {
    const { stdout } = await run(process.execPath, [launcher, "completion", shell]);
    await place(root, path, stdout);
  }
}

async function writeControl(root: string, architecture: Architecture): Promise<void> {
  const files = (await filesBelow(root)).toSorted();
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(root, file))).size));
  const kibibytes = sizes.reduce((sum, size) => sum + Math.ceil(size / 1_024), 0);
  const control = (await readFile(join(DEBIAN, "control"), "utf8"))
    .replace("VERSION", VERSION)
    .replace("ARCHITECTURE", architecture)
    .replace("MAINTAINER", maintainer())
    .replace("HOMEPAGE", packageJson.homepage)
    .replace("SIZE", String(kibibytes));
  await place(root, "DEBIAN/control", control);
  await place(root, "DEBIAN/conffiles", `${CONFFILE}\n`);
  const sums = await Promise.all(
    files
      .filter((file) => `/${file}` !== CONFFILE)
      .map(async (file) => {
        const sum = createHash("md5").update(await readFile(join(root, file)));
        return `${sum.digest("hex")}  ${file}\n`;
      }),
  );
  await place(root, "DEBIAN/md5sums", sums.join(""));
  for (const script of SCRIPTS) {
    await place(root, `DEBIAN/${script}`, await readFile(join(DEBIAN, script), "utf8"));
  }
}

/** The author, or the person who builds the package, by the variables of Debian's own tools. */
function maintainer(): string {
  const { DEBFULLNAME, DEBEMAIL } = process.env;
  return DEBFULLNAME && DEBEMAIL ? `${DEBFULLNAME} <${DEBEMAIL}>` : packageJson.author;
}

async function place(root: string, path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
}

/** Node writes no time into the header. */
async function placeZipped(root: string, path: string, content: string): Promise<void> {
  await place(root, path, gzipSync(content, { level: 9 }));
}

/** Plain files, by their path from the folder. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((it) => it.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
}

/** The modes do not depend on the umask of the builder. */
async function normaliseModes(root: string): Promise<void> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  await chmod(root, 0o755);
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const isProgram = PROGRAMS.includes(relative(root, path));
    if (!entry.isSymbolicLink()) await chmod(path, entry.isDirectory() || isProgram ? 0o755 : 0o644);
  }
}

/** Those that `--arch` names; by default, that of this machine. Throws if it is unknown. */
export function chooseArchitectures(args: readonly string[], machine: string = process.arch): Architecture[] {
  const { values } = parseArgs({ args: [...args], options: { arch: { type: "string" } } });
  const { arch = machine === "x64" ? "amd64" : machine } = values;
  const chosen = ARCHITECTURES.filter((it) => arch === "all" || it === arch);
  if (chosen.length > 0) return chosen;
  throw new Error(`no package for ${arch}: add --arch with ${ARCHITECTURES.join(", ")} or all`);
}

if (import.meta.main) {
  const onStep = (step: string) => void process.stderr.write(`${step}\n`);
  for (const architecture of chooseArchitectures(process.argv.slice(2)))
    process.stdout.write(`${await buildDeb({ architecture, folder: process.cwd(), onStep })}\n`);
}
