/**
 * Sums of bytes that this process has hashed itself. A delivery is proven by one that was made after the last moment at which
 * others had its bytes. A sum that was stored is a plain text, good only to be compared with.
 */
import { createHash, type Hash } from "node:crypto";
import { join } from "node:path";
import { tolerate } from "./faults.ts";
import { READ_PLAIN_FILE, readdir, withFile } from "./files.ts";
import { inTurns } from "./timers.ts";

declare const hashedHere: unique symbol;
/** A digest in hexadecimal digits. Only hashing makes one. */
export type Sum = string & { readonly [hashedHere]: true };

const READ_BYTES = 256 * 1024;

export function sumOf(hash: Hash): Sum {
  return hash.digest("hex") as Sum;
}

/** `undefined` unless it is a plain file without a second name, under which others could change it. */
export function sumFile(path: string, signal?: AbortSignal, algorithm = "sha256"): Promise<Sum | undefined> {
  return withFile(path, READ_PLAIN_FILE, async (file) => {
    const facts = await file.stat();
    if (!facts.isFile() || facts.nlink > 1) return undefined;
    const hash = createHash(algorithm);
    const buffer = new Uint8Array(READ_BYTES);
    for (let at = 0, count = -1; count !== 0; at += count) {
      signal?.throwIfAborted();
      count = await file.read(buffer, at);
      hash.update(buffer.subarray(0, count));
    }
    return sumOf(hash);
  }).catch(tolerate("ENOENT", "ELOOP"));
}

/** Of all files in a folder. `undefined` if it is missing, or one of them has no sum. */
export async function sumFolder(folder: string, signal?: AbortSignal): Promise<Sum | undefined> {
  const names = await readdir(folder).catch(tolerate("ENOENT"));
  const sums = new Map<string, Sum>();
  for (const name of names ?? []) {
    const sum = await sumFile(join(folder, name), signal);
    if (sum === undefined) return undefined;
    sums.set(name, sum);
  }
  return names && sumFiles(sums);
}

/** Of files, by their names: equal to that of a folder that holds exactly these. */
export async function sumFiles(sums: ReadonlyMap<string, Sum>): Promise<Sum> {
  const hash = createHash("sha256");
  for await (const name of inTurns([...sums.keys()].sort())) hash.update(`${sums.get(name)}  ${name}\n`);
  return sumOf(hash);
}
