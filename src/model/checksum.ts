/** Checksums: names of algorithms, and comparison with computed digests. */
import { createHash, getHashes } from "node:crypto";
import { Fault } from "../base/faults.ts";
import type { Sum } from "../base/sums.ts";

export interface Checksum {
  readonly value: string;
  /** As the service spells it. */
  readonly algorithm: string;
}

/** By plain name, such as `sha256`, without the signature schemes that OpenSSL also lists. */
const ALGORITHMS: ReadonlyMap<string, string> = new Map(
  getHashes()
    .filter((name) => !/rsa|with|shake|ssl3/i.test(name))
    .map((name) => [plain(name), name]),
);

/** `SHA-256`, `sha256`, `SHA_256`, `SHA2-256` → `sha256`; `undefined` for an algorithm that Node cannot compute. */
export function nodeAlgorithm(spelling: string): string | undefined {
  const wanted = plain(spelling);
  return ALGORITHMS.get(wanted) ?? ALGORITHMS.get(wanted.replace(/^sha2/, "sha"));
}

/** Without a name from the service, the number of digits identifies the usual algorithms. */
export function checksumOf(value: string, algorithm: string | undefined): Checksum {
  const usual: Readonly<Record<number, string>> = { 32: "MD5", 40: "SHA-1", 64: "SHA-256", 128: "SHA-512" };
  return { value, algorithm: algorithm ?? usual[value.length] ?? `unknown, ${value.length} digits` };
}

/** Hashes once per algorithm, not per checksum. Throws `ALGORITHM_UNKNOWN`. */
export function startVerification(checksums: readonly Checksum[]) {
  const wanted = checksums.map(({ value, algorithm }) => {
    const name = nodeAlgorithm(algorithm);
    if (name === undefined) throw new Fault("ALGORITHM_UNKNOWN", { detail: algorithm });
    return { value, algorithm, name };
  });
  const names = new Set(["sha256", ...wanted.map(({ name }) => name)]);
  const hashes = [...names].map((name) => ({ name, hash: createHash(name) }));
  return {
    update(chunk: Uint8Array): void {
      for (const { hash } of hashes) hash.update(chunk);
    },
    /** Returns the SHA-256 of all bytes in hex. Throws `CHECKSUM_MISMATCH`, naming `what`, unless every checksum matches. */
    finish(what: string): Sum {
      const digests = new Map(hashes.map(({ name, hash }) => [name, hash.digest()]));
      for (const { value, algorithm, name } of wanted) {
        const digest = digests.get(name);
        if (digest === undefined || !matchesChecksum(digest, value))
          throw new Fault("CHECKSUM_MISMATCH", { detail: `${what} (${algorithm})` });
      }
      return (digests.get("sha256") as Buffer).toString("hex") as Sum;
    },
  };
}

/** `checksum` is in hex of either case, or in base64. */
export function matchesChecksum(digest: Uint8Array, checksum: string): boolean {
  const bytes = Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength);
  const text = checksum.trim();
  return text.toLowerCase() === bytes.toString("hex") || text === bytes.toString("base64");
}

function plain(spelling: string): string {
  return spelling.toLowerCase().replace(/[^a-z0-9]/g, "");
}
