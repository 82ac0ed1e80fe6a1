/**
 * `npm run check:audit`: fails if a package that the program contains has a known high or critical vulnerability. Others are
 * printed: they only build and test. A registry that cannot be reached, or offers no audits, is said, and is no failure.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildPrograms } from "../build.ts";

const run = promisify(execFile);

interface Report {
  /** By the name of the package. Missing if there was no audit. */
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity: string }>>;
  readonly message?: string;
}

// npm exits with 1 if it finds something, and prints the same report.
const finished = await run("npm", ["audit", "--json", "--fetch-retries=0"]).catch((error: unknown) => error);
const { vulnerabilities, message } = parseReport((finished as { readonly stdout?: string }).stdout);
if (vulnerabilities === undefined) print(`no audit: ${message}`);
else {
  const contained = await namesInProgram();
  const found = Object.entries(vulnerabilities).filter(([, it]) => /^(high|critical)$/.test(it.severity));
  for (const [name, { severity }] of found) {
    const isContained = contained.has(name);
    print(`${name}: ${severity}, ${isContained ? "in the program" : "only builds and tests"}`);
    if (isContained) process.exitCode = 1;
  }
  print(`${Object.keys(vulnerabilities).length} packages with known vulnerabilities`);
}

function parseReport(text: string | undefined): Report {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return { message: "npm printed no report" };
  }
}

async function namesInProgram(): Promise<Set<string>> {
  const folder = await mkdtemp(join(tmpdir(), "inlet-audit-"));
  try {
    await buildPrograms(folder);
    const { components } = JSON.parse(await readFile(join(folder, "sbom.cdx.json"), "utf8"));
    return new Set(components.map((it: { readonly name: string }) => it.name));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
