/** Pseudo-random text and bytes from a seed, so that a scenario is reproducible. */
import { createHash } from "node:crypto";

const LETTERS_AND_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Different labels give different bytes. */
export function deriveBytes(seed: number, label: string, length: number): Buffer {
  return createHash("shake256", { outputLength: length }).update(`${seed}/${label}`).digest();
}

export function deriveText(
  seed: number,
  label: string,
  length: number,
  alphabet = LETTERS_AND_DIGITS,
): string {
  const bytes = deriveBytes(seed, label, length);
  return Array.from(bytes, (byte) => alphabet.charAt(byte % alphabet.length)).join("");
}
