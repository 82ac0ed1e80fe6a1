/** True checksums of simulated files, computed once, on first use, without blocking the event loop. */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { Content } from "./content.ts";

export type Algorithm = "MD5" | "SHA-1" | "SHA-256" | "SHA-512";

/** The bytes to hash before the event loop continues: a few milliseconds of work. */
const BYTES_PER_SLICE = 4 * 1024 * 1024;

export class Checksums {
  readonly #known = new Map<string, Promise<string>>();
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** In lower-case hexadecimal. Rejects only if the simulator is closed meanwhile. */
  of(content: Content, algorithm: Algorithm): Promise<string> {
    const key = `${algorithm} ${content.fingerprint}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const computing = computeChecksum(content, algorithm, this.#signal);
    this.#known.set(key, computing);
    return computing;
  }

  /** The checksum that the service reports: empty without an algorithm, `undefined` for a missing one. */
  async reported(
    content: Content,
    algorithm: Algorithm | "none",
    correctness: "right" | "wrong" | "missing" = "right",
  ): Promise<string | undefined> {
    if (correctness === "missing") return undefined;
    if (algorithm === "none") return "";
    const right = await this.of(content, algorithm);
    return correctness === "right" ? right : falsify(right);
  }
}

const HASHES: Readonly<Record<Algorithm, string>> = {
  MD5: "md5",
  "SHA-1": "sha1",
  "SHA-256": "sha256",
  "SHA-512": "sha512",
};

/** A wrong checksum of the same form. */
function falsify(right: string): string {
  return `${right.startsWith("0") ? "1" : "0"}${right.slice(1)}`;
}

async function computeChecksum(content: Content, algorithm: Algorithm, signal: AbortSignal): Promise<string> {
  const hash = createHash(HASHES[algorithm]);
  let sinceYield = 0;
  for (const chunk of content.read(0, content.bytes)) {
    hash.update(chunk);
    sinceYield += chunk.length;
    if (sinceYield < BYTES_PER_SLICE) continue;
    sinceYield = 0;
    await setImmediate(undefined, { signal });
  }
  return hash.digest("hex");
}
