/** True checksums of simulated files: computed once each, when first asked for, without stopping everything else. */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { Content } from "./content.ts";

export type Algorithm = "MD5" | "SHA-1" | "SHA-256" | "SHA-512";

/** How much is hashed before others get their turn: a few milliseconds' worth. */
const BYTES_PER_TURN = 4 * 1024 * 1024;

export class Checksums {
  readonly #known = new Map<string, Promise<string>>();
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** In lower-case hexadecimal. Rejects only when the simulator is closed meanwhile. */
  of(content: Content, algorithm: Algorithm): Promise<string> {
    const key = `${algorithm} ${content.fingerprint}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const computing = computeChecksum(content, algorithm, this.#signal);
    this.#known.set(key, computing);
    return computing;
  }

  /** What the service states: empty where checksums are switched off, `undefined` where it is to state nothing. */
  async stated(
    content: Content,
    algorithm: Algorithm | "none",
    honesty: "right" | "wrong" | "missing" = "right",
  ): Promise<string | undefined> {
    if (honesty === "missing") return undefined;
    if (algorithm === "none") return "";
    const right = await this.of(content, algorithm);
    return honesty === "right" ? right : spoil(right);
  }
}

const HASHES: Readonly<Record<Algorithm, string>> = {
  MD5: "md5",
  "SHA-1": "sha1",
  "SHA-256": "sha256",
  "SHA-512": "sha512",
};

/** A checksum that does not fit, of the same form as the right one. */
function spoil(right: string): string {
  return `${right.startsWith("0") ? "1" : "0"}${right.slice(1)}`;
}

async function computeChecksum(content: Content, algorithm: Algorithm, signal: AbortSignal): Promise<string> {
  const hash = createHash(HASHES[algorithm]);
  let sinceTurn = 0;
  for (const chunk of content.read(0, content.bytes)) {
    hash.update(chunk);
    sinceTurn += chunk.length;
    if (sinceTurn < BYTES_PER_TURN) continue;
    sinceTurn = 0;
    await setImmediate(undefined, { signal });
  }
  return hash.digest("hex");
}
