import { createHash, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { startThreadHash } from "../../../src/base/hash-thread.ts";

const nothing = () => {};

describe("a hash on a thread of its own", () => {
  test("is the same as anywhere, for several at once and by several algorithms", async () => {
    const contents = Array.from({ length: 5 }, (_, at) =>
      Array.from({ length: 30 }, () => randomBytes(at * 1000 + 1)),
    );
    const digests = await Promise.all(
      contents.map(async (chunks) => {
        const hash = startThreadHash(["sha256", "md5"]);
        for (const chunk of chunks) await hash.update(chunk, nothing);
        return hash.finish();
      }),
    );
    contents.forEach((chunks, at) => {
      for (const algorithm of ["sha256", "md5"]) {
        const expected = createHash(algorithm).update(Buffer.concat(chunks)).digest("hex");
        expect(Buffer.from(digests[at]?.get(algorithm) ?? []).toString("hex")).toBe(expected);
      }
    });
  });

  test("says of each chunk when it was hashed, in their order", async () => {
    const hash = startThreadHash(["sha256"]);
    const said: number[] = [];
    for (let at = 0; at < 20; at++) await hash.update(randomBytes(10), () => void said.push(at));
    await hash.finish();
    expect(said).toEqual(Array.from({ length: 20 }, (_, at) => at));
  });

  test("has whoever brings more wait, where it cannot follow", async () => {
    const hash = startThreadHash(["sha512"]);
    let waiting = 0;
    let most = 0;
    for (let at = 0; at < 64; at++) {
      const chunk = new Uint8Array(new SharedArrayBuffer(1024 ** 2));
      waiting += chunk.byteLength;
      await hash.update(chunk, () => {
        waiting -= chunk.byteLength;
      });
      most = Math.max(most, waiting);
    }
    await hash.finish();
    expect(most).toBeLessThanOrEqual(2 * 1024 ** 2);
    expect(waiting).toBe(0);
  });

  test("fails where the thread does, and the next one has another", async () => {
    const doomed = startThreadHash(["no such algorithm"]);
    const fellow = startThreadHash(["sha256"]);
    await expect(doomed.finish()).rejects.toThrow();
    await expect(fellow.finish()).rejects.toThrow();
    const next = startThreadHash(["sha256"]);
    await next.update(Buffer.from("abc"), nothing);
    const digest = Buffer.from((await next.finish()).get("sha256") ?? []).toString("hex");
    expect(digest).toBe(createHash("sha256").update("abc").digest("hex"));
  });
});
