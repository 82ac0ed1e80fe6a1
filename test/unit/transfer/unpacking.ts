/** A folder to unpack archives into, which detects writes outside of it. */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { unpackZip } from "../../../src/transfer/unpack.ts";
import type { MatchOptions, WantedEntry } from "../../../src/transfer/unpack-directory.ts";
import { makeFolder } from "../../support/program.ts";

export class Unpacking {
  readonly root: string;
  readonly folder: string;
  readonly zipPath: string;
  readonly digests = new Map<string, string>();

  private constructor(root: string) {
    this.root = root;
    this.folder = join(root, "a", "b", "folder");
    this.zipPath = join(root, "a", "b", "archive.zip");
  }

  /** The test fails if anything outside of the folder has changed, or a file is still open. */
  static async open(): Promise<Unpacking> {
    const unpacking = new Unpacking(await makeFolder());
    await mkdir(unpacking.folder, { recursive: true });
    onTestFinished(async () => {
      expect(await unpacking.surroundings()).toEqual(UNTOUCHED);
      expect(await unpacking.openFiles()).toEqual([]);
    });
    return unpacking;
  }

  async unpack(
    zip: Buffer,
    wanted: readonly WantedEntry[],
    options: MatchOptions = {},
    signal = new AbortController().signal,
  ): Promise<void> {
    await writeFile(this.zipPath, zip);
    const all = { fileMode: 0o600, ...options };
    const digests = await unpackZip(this.zipPath, wanted, this.folder, all, signal);
    for (const [{ name }, sha256] of digests) this.digests.set(name, sha256);
  }

  /** The unpacked files by name, or the fault's code. Throws other errors. */
  async outcome(...args: Parameters<Unpacking["unpack"]>): Promise<Record<string, string> | string> {
    try {
      await this.unpack(...args);
      return await this.contents();
    } catch (error) {
      if (error instanceof Fault) return error.code;
      throw error;
    }
  }

  async contents(): Promise<Record<string, string>> {
    const names = (await readdir(this.folder)).toSorted();
    const texts = names.map(
      async (name) => [name, await readFile(join(this.folder, name), "latin1")] as const,
    );
    return Object.fromEntries(await Promise.all(texts));
  }

  /** Files below the root that this process still has open. */
  async openFiles(): Promise<string[]> {
    const links = (await readdir("/proc/self/fd")).map((fd) =>
      readlink(`/proc/self/fd/${fd}`).catch(() => ""),
    );
    return (await Promise.all(links)).filter((path) => path.startsWith(this.root));
  }

  /** Every path besides the folder's content, which must never change. */
  async surroundings(): Promise<string[]> {
    const all = await readdir(this.root, { recursive: true });
    return all.filter((path) => !path.startsWith("a/b/folder/")).toSorted();
  }
}

export const UNTOUCHED = ["a", "a/b", "a/b/archive.zip", "a/b/folder"];

/** A file of the list, with its SHA-256. */
export function wish(originalName: string, content: string | Buffer, name = "f0"): WantedEntry {
  const bytes = Buffer.from(content);
  return {
    originalName,
    name,
    bytes: bytes.length,
    checksums: [{ algorithm: "SHA-256", value: sha256(bytes) }],
  };
}

export function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
