/** The outbox on the disk: one entry `outbox/NAME~R.KIND` for each delivery whose hand-off or pick-up is not complete. */

import { join } from "node:path";
import * as v from "valibot";
import { parseAs } from "../base/json.ts";

const ENTRY_VERSION = 1;

const Text = v.optional(v.string());
const Flag = v.optional(v.boolean(), false);

const Step = v.object({
  /** `failed`: given up. */
  state: v.picklist(["pending", "done", "failed"]),
  attempts: v.number(),
  /** Time of the first failed attempt. */
  since: Text,
  /** The next attempt is due then. */
  nextAt: Text,
  /** Why the last attempt failed. */
  error: Text,
  /** The last output of the command in that attempt. */
  output: Text,
});

const Shape = v.object({
  version: v.literal(ENTRY_VERSION),
  command: v.optional(Step),
  webhook: v.optional(Step),
  /** The folder was reported as overdue. */
  reported: Flag,
  pickedUpAt: Text,
  how: v.optional(v.picklist(["taken", "acknowledged"])),
  /** The folder is not ours to remove: it was changed, or we removed it before. */
  isForeign: Flag,
  /**
   * From when the folder is kept, if the clock was wrong at its delivery or pick-up: the first look with a right clock. Empty
   * until then.
   */
  keptFrom: Text,
  /** When the folder was first found to be kept long enough. */
  foundOld: v.optional(v.object({ atMs: v.number(), uptimeMs: v.number() })),
  /** We are removing a folder that was not picked up. If it is missing later, we removed it: no consumer took it. */
  isRemoving: Flag,
  removedAt: Text,
  /** Why the manifest in the folder is not the one that was delivered. */
  problem: Text,
});

export type Entry = Readonly<v.InferOutput<typeof Shape>>;
export type StepState = Readonly<v.InferOutput<typeof Step>>;

/** Without steps, before any event. An empty file means this. */
export const EMPTY_ENTRY: Entry = {
  version: ENTRY_VERSION,
  reported: false,
  isForeign: false,
  isRemoving: false,
};

/**
 * How an entry's file name ends, so that entries can be counted by name. `json`: it has an open step, or is
 * overdue, or its folder was changed. `wait`: it only waits to be picked up. `kept`: it was picked up, and its folder is to be removed later.
 */
export const KINDS = ["kept", "wait", "json"] as const;
export type Kind = (typeof KINDS)[number];

/** An entry as its file holds it. */
export interface Stored {
  readonly entry: Entry;
  readonly kind: Kind;
}

const FILE = /^(.+~\d+)\.(json|wait|kept)$/;

export function outboxIn(work: string): string {
  return join(work, "outbox");
}

/** `key`: `NAME~R`, as `roundKey` gives it. */
export function entryPath(work: string, key: string, kind: Kind): string {
  return `${outboxIn(work)}/${entryFile(key, kind)}`;
}

export function entryFile(key: string, kind: Kind): string {
  return `${key}.${kind}`;
}

/** `undefined` for another file. */
export function parseEntryFile(file: string): { readonly key: string; readonly kind: Kind } | undefined {
  const [, key, kind] = FILE.exec(file) ?? [];
  return key === undefined ? undefined : { key, kind: kind as Kind };
}

/** Names a round in the files of the work folder. `name`: of the transfer, as the ledger gives it. */
export function roundKey({ name, round }: { readonly name: string; readonly round: number }): string {
  return `${name}~${round}`;
}

export function parseRoundKey(key: string): { readonly name: string; readonly round: number } {
  const at = key.lastIndexOf("~");
  return { name: key.slice(0, at), round: Number(key.slice(at + 1)) };
}

export function formatEntry(entry: Entry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** `undefined` if the text is damaged or of another version. */
export function parseEntry(text: string, kind: Kind): Entry | undefined {
  return text === "" && kind === "wait" ? EMPTY_ENTRY : parseAs(Shape, text);
}
