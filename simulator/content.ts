/** The bytes of simulated files: literal, or generated, of any size, without holding them in memory. */
import { createCipheriv, createHash } from "node:crypto";
import type { FilePlan } from "./scenario.ts";
import { deriveBytes } from "./seeded.ts";

export interface Content {
  readonly bytes: number;
  /** Equal for equal bytes only. */
  readonly fingerprint: string;
  /** Whether it is worth compressing. */
  readonly isText: boolean;
  /** The bytes from `start` to `end`, exclusive; each chunk but the last has `chunkBytes`. */
  read(start: number, end: number, chunkBytes?: number): Iterable<Buffer>;
}

/** The content of a planned file; `defaultSeed` is for generated content without its own seed. */
export function contentOf(plan: FilePlan, defaultSeed: number): Content {
  if (plan.text !== undefined) return literalContent(Buffer.from(plan.text), true);
  if (plan.base64 !== undefined) return literalContent(Buffer.from(plan.base64, "base64"), false);
  const { bytes = 0, seed = defaultSeed } = plan.generate ?? {};
  return generatedContent(bytes, seed);
}

export function literalContent(bytes: Buffer, isText: boolean): Content {
  return {
    bytes: bytes.length,
    fingerprint: fingerprintOf(bytes),
    isText,
    *read(start, end, chunkBytes = CHUNK_BYTES) {
      for (let at = start; at < end; at += chunkBytes)
        yield bytes.subarray(at, Math.min(at + chunkBytes, end));
    },
  };
}

const CHUNK_BYTES = 256 * 1024;
const BLOCK_BYTES = 16;

/** Zeros, encrypted by AES in counter mode: fast, incompressible, and seekable. */
function generatedContent(bytes: number, seed: number): Content {
  const key = deriveBytes(seed, "content key", 16);
  return {
    bytes,
    fingerprint: fingerprintOf(`generated ${seed} ${bytes}`),
    isText: false,
    *read(start, end, chunkBytes = CHUNK_BYTES) {
      const counter = Buffer.alloc(BLOCK_BYTES);
      counter.writeBigUInt64BE(BigInt(Math.floor(start / BLOCK_BYTES)), BLOCK_BYTES - 8);
      const cipher = createCipheriv("aes-128-ctr", key, counter);
      // Skips the bytes before `start` in its block.
      cipher.update(Buffer.alloc(start % BLOCK_BYTES));
      const zeros = Buffer.alloc(Math.min(chunkBytes, Math.max(end - start, 0)));
      for (let at = start; at < end; at += chunkBytes) {
        yield cipher.update(end - at < chunkBytes ? zeros.subarray(0, end - at) : zeros);
      }
    },
  };
}

function fingerprintOf(bytes: Buffer | string): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}
