import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openDescriptor } from "../../../src/base/descriptor.ts";
import { checksumOf } from "../../../src/model/checksum.ts";
import { Part } from "../../../src/transfer/part.ts";
import { makeFolder } from "../../support/program.ts";

const SIGNAL = new AbortController().signal;

/** The larger one is hashed on another thread. */
describe.each([100_000, 6_000_000])("a file of %i bytes", (bytes) => {
  const content = randomBytes(bytes);
  const sha256 = createHash("sha256").update(content).digest("hex");

  async function openPart(path: string, checksum: string) {
    const handle = await openDescriptor(path, "a+");
    const checksums = [checksumOf(checksum, "SHA-256")];
    const part = new Part(handle, { id: "1", name: "a", originalName: "a", bytes, checksums });
    onTestFinished(async () => {
      await part[Symbol.asyncDispose]();
      await handle.close();
    });
    return part;
  }

  async function append(part: Part, from: number, to: number): Promise<number> {
    let written = 0;
    for (let at = from; at < to; at += 70_001) {
      await part.append(content.subarray(at, Math.min(at + 70_001, to)), (count) => {
        written += count;
      });
    }
    await part.drain();
    return written;
  }

  test("is hashed and written while it arrives", async () => {
    const path = join(await makeFolder(), "a");
    const part = await openPart(path, sha256);
    expect(await append(part, 0, bytes)).toBe(bytes);
    expect(await part.finish()).toBe(sha256);
    expect((await readFile(path)).equals(content)).toBe(true);
  });

  test("is resumed after an earlier run, or started over", async () => {
    const path = join(await makeFolder(), "a");
    const half = Math.floor(bytes / 2);
    await append(await openPart(path, sha256), 0, half);
    const part = await openPart(path, sha256);
    await part.takeUp(SIGNAL);
    expect(part.bytes).toBe(half);
    await part.startAgain();
    await append(part, 0, half);
    await append(part, half, bytes);
    expect(await part.finish()).toBe(sha256);
    expect((await readFile(path)).equals(content)).toBe(true);
  });

  test("that does not match its checksum is refused", async () => {
    const part = await openPart(join(await makeFolder(), "a"), "0".repeat(64));
    await append(part, 0, bytes);
    await expect(part.finish()).rejects.toMatchObject({ code: "CHECKSUM_MISMATCH" });
  });
});
