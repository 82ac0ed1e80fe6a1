/** A folder to unpack archives into, which detects writes outside of it. */
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault } from "../../../src/base/faults.ts";
import { type UnpackLimits, unpackZip } from "../../../src/transfer/unpack.ts";
import type { WantedEntry } from "../../../src/transfer/unpack-directory.ts";

const PLENTY: UnpackLimits = { maxEntries: 1_000, maxBytes: 2 ** 40, deadlineMs: 30_000, fileMode: 0o600 };

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

  static async open(): Promise<Unpacking> {
    const unpacking = new Unpacking(await mkdtemp(join(tmpdir(), "inlet-unpack-")));
    await mkdir(unpacking.folder, { recursive: true });
    return unpacking;
  }

  close(): Promise<void> {
    return rm(this.root, { recursive: true });
  }

  async unpack(
    zip: Buffer,
    wanted: readonly WantedEntry[],
    limits: Partial<UnpackLimits> = {},
    signal = new AbortController().signal,
  ): Promise<void> {
    await writeFile(this.zipPath, zip);
    const noted = wanted.map((wish) => ({
      ...wish,
      onDigest: (sha256: string) => void this.digests.set(wish.target, sha256),
    }));
    await unpackZip(this.zipPath, noted, this.folder, { ...PLENTY, ...limits }, signal);
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
export function wish(originalName: string, content: string | Buffer, target = "f0"): WantedEntry {
  const bytes = Buffer.from(content);
  return {
    originalName,
    target,
    bytes: bytes.length,
    checksums: [{ algorithm: "SHA-256", value: sha256(bytes) }],
  };
}

export function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
