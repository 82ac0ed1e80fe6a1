/** The paths of everything that the ledger stores below the work folder. */
import { hash } from "node:crypto";
import { join } from "node:path";
import { entryPath, type Kind, outboxIn, roundKey } from "../model/outbox.ts";
import type { TransferKey } from "../model/record.ts";
import { canonicalAddress } from "../model/transfer.ts";

/** Identifies a staged folder. */
export interface StageId {
  /** Of the transfer. */
  readonly name: string;
  readonly round: number;
  /** Random: one attempt at one round. */
  readonly token: string;
}

/** The content of one attempt at a round, in a folder that only this attempt writes to. */
export interface Stage extends StageId {
  readonly folder: string;
  /** The path for a ZIP until it is unpacked. */
  readonly zip: string;
  /** The folder for files that are placed beside the delivered folder. Created by the attempt if it is needed. */
  readonly beside: string;
  /** The folder for the placement, and a copy of the manifest. */
  readonly placement: string;
  /** The folder is still empty. */
  readonly isNew: boolean;
}

/** The file of one record: the beginning or the end of a round, or the end of a delivery's hand-off. */
export interface RecordFile {
  readonly name: string;
  readonly kind: "begin" | "end" | "handoff";
  readonly round: number;
}

/** The file in the folder of a placement that holds it. A copy of the manifest is beside it. */
export const PLACEMENT = "placement.json";

const STAGED = /^(.+)~(\d+)~([0-9a-f]{16})(\.ticket|\.zip|\.beside)?$/;
const RECORD = /^(.+)\.(end|begin|handoff)-(\d+)\.json$/;
const NOTE = /^(.+)\.json$/;

export class LedgerPaths {
  readonly work: string;
  readonly ledger: string;
  readonly attempts: string;
  readonly staging: string;
  readonly notes: string;
  readonly journal: string;
  readonly starts: string;
  /** The hand-offs write it. */
  readonly outbox: string;
  /** For files that have no name yet. */
  readonly temporary: string;
  /** The placements of deliveries that are not picked up yet. */
  readonly placements: string;
  /** Names in the inbox that deliveries have claimed. */
  readonly names: string;
  readonly quarantine: string;

  constructor(work: string) {
    this.work = work;
    this.ledger = join(work, "ledger");
    this.attempts = join(work, "attempts");
    this.staging = join(work, "staging");
    this.notes = join(work, "notes");
    this.journal = join(work, "journal");
    this.starts = join(work, "starts");
    this.outbox = outboxIn(work);
    this.temporary = join(work, "new");
    this.placements = join(work, "placements");
    this.names = join(work, "names");
    this.quarantine = join(work, "quarantine");
  }

  /** Created by the ledger. */
  folders(): readonly string[] {
    const { ledger, attempts, staging, notes, journal, starts, temporary, placements, names, quarantine } =
      this;
    return [ledger, attempts, staging, notes, journal, starts, temporary, placements, names, quarantine];
  }

  // Names in the work folder need no `join`, which would take a third of the time that a list of many transfers takes.

  ledgerFolder(name: string): string {
    return `${this.ledger}/${digitsOf(name, 1)}`;
  }

  end(name: string, round: number): string {
    return this.#record({ name, kind: "end", round });
  }

  begin(name: string, round: number): string {
    return this.#record({ name, kind: "begin", round });
  }

  /** The record of a finished hand-off. */
  handoff(name: string, round: number): string {
    return this.#record({ name, kind: "handoff", round });
  }

  #record(record: RecordFile): string {
    return `${this.ledgerFolder(record.name)}/${recordFile(record)}`;
  }

  note(name: string): string {
    return `${this.notes}/${name}.json`;
  }

  staged(id: StageId): string {
    return this.inStaging(stagedEntry(id));
  }

  inStaging(entry: string): string {
    return `${this.staging}/${entry}`;
  }

  ticket(id: StageId): string {
    return `${this.staged(id)}.ticket`;
  }

  zip(id: StageId): string {
    return `${this.staged(id)}.zip`;
  }

  /** Files that are placed beside the delivered folder, or after the delivered files. */
  beside(id: StageId): string {
    return `${this.staged(id)}.beside`;
  }

  /** The folder of a stage's placement, with a copy of its manifest. */
  placement(id: StageId): string {
    return `${this.placements}/${stagedEntry(id)}`;
  }

  outboxEntry(name: string, round: number, kind: Kind): string {
    return entryPath(this.work, roundKey({ name, round }), kind);
  }
}

export function recordFile({ name, kind, round }: RecordFile): string {
  return `${name}.${kind}-${round}.json`;
}

export function stagedEntry(id: StageId): string {
  return `${roundKey(id)}~${id.token}`;
}

/** The folders over which the records of all transfers are spread. */
export const SPREAD = Array.from("0123456789abcdef");

/** The first digits of a name's digest. */
export function digitsOf(name: string, count: number): string {
  return name.slice(name.lastIndexOf(".") + 1).slice(0, count);
}

/** The name of a transfer in the ledger: its tracking-id in safe characters, and a digest that makes it unique. */
export function nameOf({ mailbox, trackingId }: TransferKey): string {
  const key = `${canonicalAddress(mailbox)}\0${trackingId}`;
  return `${startOfName(trackingId)}${hash("sha256", key, "hex").slice(0, 32)}`;
}

/** The part of a name that does not depend on the mailbox. */
export function startOfName(trackingId: string): string {
  return `${trackingId.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 60)}.`;
}

/** Names the password attempts of a transfer: all mailboxes of one service share them. */
export function attemptsKey(serviceId: string, trackingId: string): string {
  return hash("sha256", `${serviceId}\0${trackingId}`, "hex").slice(0, 32);
}

export function parseRecordFile(file: string): RecordFile | undefined {
  const [, name, kind, round] = RECORD.exec(file) ?? [];
  return name === undefined ? undefined : { name, kind: kind as RecordFile["kind"], round: Number(round) };
}

/** The names of the transfers that have a note. */
export function parseNotes(files: readonly string[]): string[] {
  return files.flatMap((file) => NOTE.exec(file)?.[1] ?? []);
}

/** `suffix`: `.ticket`, `.zip`, `.beside`, or empty for the staged folder itself. */
export function parseStaged(entry: string): (StageId & { readonly suffix: string }) | undefined {
  const [, name, round, token, suffix = ""] = STAGED.exec(entry) ?? [];
  if (name === undefined || token === undefined) return undefined;
  return { name, round: Number(round), token, suffix };
}
