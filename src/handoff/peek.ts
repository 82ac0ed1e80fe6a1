/** Reads the outbox without changing it. Works without a daemon. */

import { join } from "node:path";
import { type Disk, systemDisk, tryRead } from "../base/disk.ts";
import { exists } from "../base/durable.ts";
import { opendir } from "../base/files.ts";
import { type HandoffStep, STEPS } from "../model/handoff.ts";
import { EMPTY_ENTRY, type Entry, type Kind, parseEntry, type StepState } from "./entry.ts";

/** File names read at once. */
const BATCH = 512;
const FILE = /^(.+~\d+)\.(json|wait|kept)$/;

export interface FoundEntry {
  readonly key: string;
  readonly kind: Kind;
}

export type PeekedStep = StepState & { readonly step: HandoffStep };

export function outboxIn(work: string): string {
  return join(work, "outbox");
}

/** The key of an entry: `NAME~R`. */
export function keyOf(name: string, round: number): string {
  return `${name}~${round}`;
}

export function parseKey(key: string): { readonly name: string; readonly round: number } {
  const at = key.lastIndexOf("~");
  return { name: key.slice(0, at), round: Number(key.slice(at + 1)) };
}

/** Every entry by its name; none is read. */
export async function* listEntries(work: string): AsyncGenerator<FoundEntry, void, undefined> {
  for await (const { name: file } of await opendir(outboxIn(work), { bufferSize: BATCH })) {
    const [, key, kind] = FILE.exec(file) ?? [];
    if (key !== undefined) yield { key, kind: kind as Kind };
  }
}

/** `undefined` if the file is missing. */
export async function readEntry(disk: Disk, path: string): Promise<Entry | "damaged" | undefined> {
  const text = await tryRead(disk, path);
  if (text === undefined) return undefined;
  return text === "" && path.endsWith(".wait") ? EMPTY_ENTRY : (parseEntry(text) ?? "damaged");
}

/** The entry, if it may have an open step; `undefined` otherwise. */
export async function peekEntry(work: string, key: string): Promise<Entry | undefined> {
  const entry = await readEntry(systemDisk, join(outboxIn(work), `${key}.json`));
  return entry === "damaged" ? undefined : entry;
}

/** The steps of a transfer's deliveries, from `fromRound` on. Reads only entries that may have an open step. */
export async function peekSteps(work: string, name: string, fromRound = 1): Promise<PeekedStep[]> {
  if (!(await exists(outboxIn(work)))) return [];
  const found = await Array.fromAsync(listEntries(work));
  const own = found.filter(({ key, kind }) => {
    const entry = parseKey(key);
    return kind === "json" && entry.name === name && entry.round >= fromRound;
  });
  const entries = await Promise.all(own.map(({ key }) => peekEntry(work, key)));
  return entries.flatMap((entry) =>
    STEPS.flatMap((step) => {
      const state = entry?.[step];
      return state === undefined ? [] : [{ step, ...state }];
    }),
  );
}

export async function hasOpenSteps(work: string, name: string): Promise<boolean> {
  return (await peekSteps(work, name)).some(({ state }) => state !== "done");
}
