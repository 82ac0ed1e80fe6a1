/** Text and bytes that look random and are the same for the same seed, so that a scenario can be told again. */
import { createHash } from "node:crypto";

const LETTERS_AND_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** The label says what the bytes are for: another label gives other bytes. */
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
