/**
 * The inbox that an end record names, so that a later change of the configuration neither moves nor loses a delivery.
 *
 * On the disk it is the path from the work folder. A delivery is a rename within one mount, so this path stays right
 * wherever that mount is: on another machine, in a container, or after a move to another disk. In memory it is an
 * absolute path, and missing for the common inbox.
 */
import { relative, resolve, sep } from "node:path";
import { Fault } from "../base/faults.ts";
import type { EndRecord } from "./format.ts";
import type { LedgerPaths } from "./paths.ts";

export class Inboxes {
  readonly #work: string;
  readonly #common: string;
  /** No delivery can be in these folders. */
  readonly #ours: readonly string[];

  constructor(paths: LedgerPaths, common: string) {
    this.#work = paths.work;
    this.#common = common;
    this.#ours = [...paths.folders(), paths.outbox];
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
    const isOurs = this.#ours.some((folder) => `${root}${sep}`.startsWith(`${folder}${sep}`));
    if (inbox.includes("\0") || root === this.#work || isOurs) {
      throw new Fault("RECORD_UNREADABLE", { detail: `${path}: inbox should be outside our own folders` });
    }
    return (root === this.#common ? others : { ...others, inbox: root }) as Stored;
  }
}
