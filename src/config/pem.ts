/** The certificates and keys that connections use, read from their PEM files. */
import { readFile } from "node:fs/promises";
import type { Draft } from "./draft.ts";
import { codeOf, formatPath, type Given } from "./problems.ts";
import { describeReaders } from "./readers.ts";

type PemKey = "ca" | "cert" | "key";

/** PEM texts; problems go to the draft. */
export async function readPemFiles(
  given: Readonly<Record<PemKey, Given<string> | undefined>>,
  draft: Draft,
): Promise<Record<PemKey, string | undefined>> {
  const { cert, key } = given;
  if (cert !== undefined && key === undefined) {
    draft.problems.add(cert.path, "needs its private key too: give key");
  }
  if (key !== undefined && cert === undefined) {
    draft.problems.add(key.path, "needs its certificate too: give cert");
  }
  if (key !== undefined) {
    const readers = await describeReaders(draft.resolvePath(key.path, key.value));
    if (readers !== undefined) draft.warnings.push(`${formatPath(key.path)}: ${readers}`);
  }
  return {
    ca: await readPem(given.ca, draft),
    cert: await readPem(cert, draft),
    key: await readPem(key, draft),
  };
}

/** A PEM text; problems go to the draft. */
export async function readPem(given: Given<string> | undefined, draft: Draft): Promise<string | undefined> {
  if (given === undefined) return undefined;
  const file = draft.resolvePath(given.path, given.value);
  try {
    const text = await readFile(file, "utf8");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(text)) return text;
    draft.problems.add(given.path, `${file} is no PEM file: it must hold a line -----BEGIN …-----`);
  } catch (error) {
    draft.problems.add(given.path, `${file} cannot be read (${codeOf(error)})`);
  }
  return undefined;
}
