/** Reads receipts where they stand, and changes nothing. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../base/faults.ts";
import type { Receipt } from "../model/receipt.ts";
import { parseOpenReceipt, parseReceipt } from "./format.ts";
import { nameOf, type Places, spreadOf } from "./places.ts";
import type { ReceiptKey } from "./port.ts";

export async function findReceipt(places: Places, key: ReceiptKey): Promise<Receipt | undefined> {
  return findByName(places, nameOf(key));
}

/**
 * By the name of what belongs to it, for whoever does not know its mailbox. In this order: one that becomes final between
 * the two is found by the second, and never by neither.
 */
export async function findByName(places: Places, name: string): Promise<Receipt | undefined> {
  const open = await readHighest(join(places.openFolder, name));
  const done = await readReceipt(join(places.doneFolder, spreadOf(name), `${name}.json`));
  return done !== undefined && done.fence >= (open?.fence ?? 0) ? done : open;
}

export async function fencesIn(folder: string): Promise<number[]> {
  const names = await readdir(folder).catch(orIfMissing<string[]>(folder, []));
  return names.flatMap((name) => /^(\d+)\.json$/.exec(name)?.[1] ?? []).map(Number);
}

/** A claim may take lower ones away while one reads: then there is a higher one. */
export async function readHighest(folder: string): Promise<Receipt | undefined> {
  for (let last = -1; ; ) {
    const highest = Math.max(-1, ...(await fencesIn(folder)));
    if (highest < 0) return undefined;
    const receipt = await readOpenReceipt(join(folder, `${highest}.json`));
    if (receipt !== undefined || highest === last) return receipt;
    last = highest;
  }
}

/** A final one. */
export function readReceipt(path: string): Promise<Receipt | undefined> {
  return readWith(parseReceipt, path);
}

export function readOpenReceipt(path: string): Promise<Receipt | undefined> {
  return readWith(parseOpenReceipt, path);
}

async function readWith(parse: typeof parseReceipt, path: string): Promise<Receipt | undefined> {
  const text = await readFile(path, "utf8").catch(orIfMissing(path, undefined));
  return text === undefined ? undefined : parse(text, path);
}

export function orIfMissing<Value>(path: string, instead: Value): (cause: unknown) => Value {
  return (cause) => {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return instead;
    throw new Fault("RECEIPT_UNREADABLE", { detail: path, cause });
  };
}
