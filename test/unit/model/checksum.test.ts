import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Checksum, nodeAlgorithm, startVerification } from "../../../src/model/checksum.ts";

test.each([
  ["SHA-256", "sha256"],
  ["SHA256", "sha256"],
  ["sha_256", "sha256"],
  ["SHA2-256", "sha256"],
  ["SHA-1", "sha1"],
  ["SHA", undefined],
  ["MD5", "md5"],
  ["Sha-512", "sha512"],
  ["SHA-512/256", "sha512-256"],
  ["SHA3-256", "sha3-256"],
  ["CRC32", undefined],
  ["", undefined],
])("algorithms are recognized in any spelling %j is %j", (spelling, algorithm) => {
  expect(nodeAlgorithm(spelling)).toBe(algorithm);
});

describe("a verification", () => {
  const digest = createHash("sha256").update("hello").digest();

  test("accepts hex of either case, base64, several checksums, and none", () => {
    for (const value of [
      digest.toString("hex"),
      ` ${digest.toString("hex").toUpperCase()}`,
      digest.toString("base64"),
    ]) {
      expect(() => verify([{ value, algorithm: "SHA-256" }])).not.toThrow();
    }
    const md5 = createHash("md5").update("hello").digest("hex");
    const both = [
      { value: md5, algorithm: "MD5" },
      { value: digest.toString("hex"), algorithm: "sha256" },
    ];
    expect(() => verify(both)).not.toThrow();
    expect(() => verify([])).not.toThrow();
  });

  test("refuses content if one of several checksums is wrong, cut or empty", () => {
    const right = { value: digest.toString("hex"), algorithm: "SHA-256" };
    for (const value of ["0".repeat(64), digest.toString("hex").slice(0, 40), ""]) {
      expect(() => verify([right, { value, algorithm: "SHA256" }])).toThrow("checksum: a file (SHA256)");
    }
  });

  test("refuses an unknown algorithm before the first byte", () => {
    expect(() => startVerification([{ value: "1c291ca3", algorithm: "CRC32" }])).toThrow("CRC32");
  });
});

function verify(checksums: readonly Checksum[]): void {
  const verification = startVerification(checksums);
  verification.update(Buffer.from("hel"));
  verification.update(Buffer.from("lo"));
  verification.finish("a file");
}
