import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openDescriptor } from "../../../src/base/descriptor.ts";
import { WriteBehind } from "../../../src/base/write-behind.ts";
import { makeFolder } from "../../support/program.ts";

/** A disk that does what it is told when it is told. */
function slowDisk(answer: (bytes: number) => number | Error = (bytes) => bytes) {
  const calls: { readonly chunks: readonly Uint8Array[]; go(): void }[] = [];
  const syncs: { go(error?: Error): void }[] = [];
  const written: Uint8Array[] = [];
  const handle = {
    async writev(chunks: readonly Uint8Array[]) {
      await new Promise<void>((go) => calls.push({ chunks, go }));
      const taken = answer(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
      if (taken instanceof Error) throw taken;
      written.push(Buffer.concat(chunks).subarray(0, taken));
      return taken;
    },
    datasync: () =>
      new Promise<void>((resolve, reject) =>
        syncs.push({ go: (error) => (error === undefined ? resolve() : reject(error)) }),
      ),
  };
  return { handle, calls, syncs, content: () => Buffer.concat(written).toString() };
}

const nothing = () => {};
const MIB = 1024 ** 2;

describe("what is written behind", () => {
  test("is in the file as it was given, whatever the sizes", async () => {
    const path = join(await makeFolder(), "file");
    const handle = await openDescriptor(path, "a+");
    onTestFinished(() => handle.close());
    const writer = new WriteBehind(handle);
    const chunks = Array.from({ length: 400 }, (_, at) => randomBytes((at * 7919) % 70_000));
    let written = 0;
    for (const chunk of chunks) {
      await writer.write(chunk, () => {
        written += chunk.length;
      });
    }
    await writer.drain();
    const whole = Buffer.concat(chunks);
    expect(written).toBe(whole.length);
    expect((await readFile(path)).equals(whole)).toBe(true);
  });

  test("goes in one write at a time, of all that came meanwhile", async () => {
    const disk = slowDisk();
    const writer = new WriteBehind(disk.handle);
    for (const text of ["a", "b", "c"]) await writer.write(Buffer.from(text), nothing);
    expect(disk.calls.map(({ chunks }) => chunks.length)).toEqual([1]);
    disk.calls[0]?.go();
    await expect.poll(() => disk.calls.map(({ chunks }) => chunks.length)).toEqual([1, 2]);
    disk.calls[1]?.go();
    await writer.drain();
    expect(disk.content()).toBe("abc");
  });

  test("is written on where the disk takes less than all", async () => {
    const disk = slowDisk((bytes) => Math.min(bytes, 3));
    const writer = new WriteBehind(disk.handle);
    let written = 0;
    const count = () => {
      written++;
    };
    void writer.write(Buffer.from("ab"), count);
    void writer.write(Buffer.from("cdefg"), count);
    const drained = writer.drain();
    for (let call = 0; call < 3; call++) {
      await expect.poll(() => disk.calls.length).toBe(call + 1);
      disk.calls[call]?.go();
    }
    await drained;
    expect([disk.content(), written]).toEqual(["abcdefg", 2]);
  });

  test("is bounded: whoever brings more waits for the disk", async () => {
    const disk = slowDisk();
    const writer = new WriteBehind(disk.handle);
    let given = 0;
    const giving = (async () => {
      for (; given < 8; given++) await writer.write(new Uint8Array(MIB), nothing);
      await writer.drain();
    })();
    await expect.poll(() => given).toBe(3);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(given).toBe(3);
    for (let call = 0; given < 8 || call < disk.calls.length; call++) {
      await expect.poll(() => disk.calls.length).toBeGreaterThan(call);
      disk.calls[call]?.go();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await giving;
  });

  test("and cannot be written is told to whoever brings more, and to whoever waits for the end", async () => {
    const disk = slowDisk(() => new Error("no space"));
    const writer = new WriteBehind(disk.handle);
    let written = 0;
    await writer.write(Buffer.from("a"), () => {
      written++;
    });
    disk.calls[0]?.go();
    await expect(writer.drain()).rejects.toThrow("no space");
    await expect(writer.write(Buffer.from("b"), nothing)).rejects.toThrow("no space");
    await expect(writer.drain()).rejects.toThrow("no space");
    expect(written).toBe(0);
  });

  test("is sent to the disk as it grows, and what that finds wrong is not lost", async () => {
    const disk = slowDisk();
    const writer = new WriteBehind(disk.handle);
    const giving = (async () => {
      for (let part = 0; part < 80; part++) await writer.write(new Uint8Array(MIB), nothing);
    })();
    for (let call = 0; disk.syncs.length === 0; call++) {
      await expect.poll(() => disk.calls.length > call || disk.syncs.length > 0).toBe(true);
      disk.calls[call]?.go();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    disk.syncs[0]?.go(new Error("input/output error"));
    for (const { go } of disk.calls) go();
    await expect(giving.then(() => writer.drain())).rejects.toThrow("input/output error");
    await expect(writer.drain()).rejects.toThrow("input/output error");
  });
});
