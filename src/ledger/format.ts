/** Records and notes as text: one line of JSON with the version of the format. */

import { relative, resolve, sep } from "node:path";
import * as v from "valibot";
import { type Disk, tryRead } from "../base/disk.ts";
import { Fault } from "../base/faults.ts";
import { parseJson } from "../base/json.ts";
import { RecordShape, type TransferRecord } from "../model/record.ts";
import { type LedgerPaths, nameOf, type StageId } from "./paths.ts";

/** Why a round begins. */
const OCCASIONS = ["retry", "release", "redeliver", "discard", "acknowledge", "listed again"] as const;

const BegunShape = v.object({ why: v.picklist(OCCASIONS), by: v.string(), at: v.string() });

const Shape = v.object({
  ...RecordShape.entries,
  token: v.optional(v.string()),
  begun: v.optional(BegunShape),
});

export type Occasion = (typeof OCCASIONS)[number];

/** Who began a round, when and why. */
export type Begun = Readonly<v.InferOutput<typeof BegunShape>>;

/** The end of a round. `token`: of the staged folder that it ended with; missing for a round without content. */
export type EndRecord = TransferRecord & { readonly token?: string | undefined };
/** The beginning of a round. */
export type BeginRecord = TransferRecord & { readonly begun?: Begun | undefined };

/** The stage that a round ended with; `undefined` for a round without content. */
export function stageOf({ token, ...end }: EndRecord): StageId | undefined {
  return token === undefined ? undefined : { name: nameOf(end), round: end.round, token };
}

export function formatRecord(record: EndRecord | BeginRecord): string {
  return `${JSON.stringify(record)}\n`;
}

/** Throws `RECORD_UNREADABLE` if the text is damaged or of another version. */
export function parseRecord(text: string, path: string): EndRecord & BeginRecord {
  const result = v.safeParse(Shape, parseJson(text));
  if (result.success) return result.output;
  const [issue] = result.issues;
  const key = issue?.path?.map((step) => String(step.key)).join(".") ?? "the file";
  throw new Fault("RECORD_UNREADABLE", { detail: `${path}: ${key} should be ${issue?.expected}` });
}

/** `undefined` if the file is missing. Throws `RECORD_UNREADABLE`. */
export async function readRecord(disk: Disk, path: string): Promise<(EndRecord & BeginRecord) | undefined> {
  const text = await tryRead(disk, path);
  return text === undefined ? undefined : parseRecord(text, path);
}

/** Passes on any error but that of a damaged record. */
export function ifReadable(error: unknown): undefined {
  if (!(error instanceof Fault && error.code === "RECORD_UNREADABLE")) throw error;
}

/**
 * The inbox that an end record names, so that a later change of the configuration neither moves nor loses a delivery.
 *
 * On the disk it is the path from the work folder. A delivery is a rename within one mount, so this path stays right
 * wherever that mount is: on another machine, in a container, or after a move to another disk. In memory it is an
 * absolute path, and missing for the common inbox.
 */
export class Inboxes {
  readonly #work: string;
  readonly #common: string;
  /** No delivery can be in these folders. Each ends with a separator. */
  readonly #ours: readonly string[];

  constructor(paths: LedgerPaths, common: string) {
    this.#work = paths.work;
    this.#common = common;
    this.#ours = [...paths.folders(), paths.outbox].map((folder) => `${folder}${sep}`);
  }

  /** The inbox of a delivery: an absolute path. */
  rootOf({ inbox }: Pick<EndRecord, "inbox">): string {
    return inbox ?? this.#common;
  }

  /** The record as its file holds it. */
  toStored(end: EndRecord): EndRecord {
    if (end.state !== "delivered") return end;
    return { ...end, inbox: relative(this.#work, this.rootOf(end)) };
  }

  /** `path`: of the record's file. Throws `RECORD_UNREADABLE` if the record names no possible inbox. */
  fromStored<Stored extends EndRecord>(stored: Stored, path: string): Stored {
    if (stored.inbox === undefined) return stored;
    const { inbox, ...others } = stored;
    const root = resolve(this.#work, inbox);
    const inRoot = `${root}${sep}`;
    const isOurs = this.#ours.some((folder) => inRoot.startsWith(folder));
    if (inbox.includes("\0") || root === this.#work || isOurs) {
      throw new Fault("RECORD_UNREADABLE", { detail: `${path}: inbox should be outside our own folders` });
    }
    return (root === this.#common ? others : { ...others, inbox: root }) as Stored;
  }
}
