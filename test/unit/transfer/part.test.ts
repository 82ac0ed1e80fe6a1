/** The content of one file: while it arrives, and where it is copied. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openFile } from "../../../src/base/files.ts";
import type { Stage } from "../../../src/ledger/port.ts";
import { checksumOf } from "../../../src/model/checksum.ts";
import type { Contents } from "../../../src/model/manifest.ts";
import { Part } from "../../../src/transfer/fetch.ts";
import { copyContents } from "../../../src/transfer/reuse.ts";
import type { Run } from "../../../src/transfer/run.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";

describe.each([100_000, 6_000_000])("a file of %i bytes", (bytes) => {
  const content = randomBytes(bytes);
  const sha256 = createHash("sha256").update(content).digest("hex");

  async function openPart(path: string, checksum: string) {
    const handle = await openFile(path, "a+");
    const checksums = [checksumOf(checksum, "SHA-256")];
    const part = new Part(handle, { id: "1", name: "a", originalName: "a", bytes, checksums });
    onTestFinished(async () => {
      await part[Symbol.asyncDispose]();
      await handle.close();
    });
    return part;
  }

  async function append(part: Part, from: number, to: number): Promise<void> {
    for (let at = from; at < to; at += 70_001) {
      await part.append(content.subarray(at, Math.min(at + 70_001, to)));
    }
  }

  test("is hashed and written while it arrives", async () => {
    const path = join(await makeFolder(), "a");
    const part = await openPart(path, sha256);
    await append(part, 0, bytes);
    expect(part.bytes).toBe(bytes);
    expect(await part.finish()).toBe(sha256);
    expect((await readFile(path)).equals(content)).toBe(true);
  });

  test("is resumed after an earlier run, or started over", async () => {
    const path = join(await makeFolder(), "a");
    const half = Math.floor(bytes / 2);
    await append(await openPart(path, sha256), 0, half);
    const part = await openPart(path, sha256);
    await part.resume(SIGNAL);
    expect(part.bytes).toBe(half);
    await part.startAgain();
    await append(part, 0, half);
    await append(part, half, bytes);
    expect(await part.finish()).toBe(sha256);
    expect((await readFile(path)).equals(content)).toBe(true);
  });
});

describe("a file that is larger than the distance between two flushes", () => {
  const MIB = 1024 ** 2;
  const chunk = new Uint8Array(8 * MIB);

  async function openPart() {
    const handle = await openFile(join(await makeFolder(), "a"), "a+");
    onTestFinished(() => handle.close());
    vi.spyOn(handle, "write").mockResolvedValue();
    const flushes: PromiseWithResolvers<void>[] = [];
    vi.spyOn(handle, "datasync").mockImplementation(() => {
      const flush = Promise.withResolvers<void>();
      flushes.push(flush);
      return flush.promise;
    });
    const file = { id: "1", name: "a", originalName: "a", bytes: 1024 * MIB, checksums: [] };
    return { part: new Part(handle, file), flushes };
  }

  test("is flushed while it grows, one flush at a time, and waits where the disk is slower", async () => {
    const { part, flushes } = await openPart();
    const growing = (async () => {
      while (part.bytes < 200 * MIB) await part.append(chunk);
    })();
    await expect.poll(() => part.bytes).toBe(128 * MIB);
    expect(flushes).toHaveLength(1);
    flushes[0]?.resolve();
    await expect.poll(() => flushes.length).toBe(2);
    flushes[1]?.resolve();
    await expect.poll(() => flushes.length).toBe(3);
    await growing;
    flushes[2]?.resolve();
    await part.finish();
  });

  test("keeps the error of a flush, which the disk reports only once, and grows no further", async () => {
    const { part, flushes } = await openPart();
    while (flushes.length === 0) await part.append(chunk);
    flushes[0]?.reject(new Error("input/output error"));
    await part.append(chunk);
    await expect(part.finish()).rejects.toThrow("input/output error");
    await expect(part.finish()).rejects.toThrow("input/output error");
    const growing = (async () => {
      while (part.bytes < 1024 * MIB) await part.append(chunk);
    })();
    await expect(growing).rejects.toThrow("input/output error");
    expect(part.bytes).toBe(128 * MIB);
    await part[Symbol.asyncDispose]();
  });
});

test("content of a second attempt replaces that of a first one, which could not be proven", async () => {
  const root = await makeFolder();
  const [first, second, folder] = ["first", "second", "stage"].map((name) => join(root, name));
  for (const path of [first, second, folder]) await mkdir(path ?? "");
  await writeFile(join(first ?? "", "a.txt"), "spoilt");
  await writeFile(join(second ?? "", "a.txt"), "Hello");
  const file = { name: "a.txt", originalName: "a.txt", size: 5, sha256: "", verified: true };
  const contents: Contents = { message: "none", files: [file] };
  const stage = { folder, isNew: true } as Stage;
  const inbox = { reserve: async () => ({ release() {} }) };
  const run = { tools: { inbox }, handoff: { fileMode: 0o640 }, signal: SIGNAL } as unknown as Run;
  for (const from of [first, second]) await copyContents(run, stage, { folder: from ?? "", contents });
  expect(await readdir(folder ?? "")).toEqual(["a.txt"]);
  expect(await readFile(join(folder ?? "", "a.txt"), "utf8")).toBe("Hello");
});
