/** The paths of everything that the ledger stores below the work folder. */
import { hash } from "node:crypto";
import { join } from "node:path";
import type { Sum } from "../base/sums.ts";
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
  /** The path for a ZIP until it is unpacked, then for a message while files are taken out of it. */
  readonly zip: string;
  /** The folder for files that are placed beside the delivered folder. Created by the attempt if it is needed. */
  readonly beside: string;
  /** The folder for the placement, and a copy of the manifest. */
  readonly placement: string;
  /** The folder is still empty. */
  readonly isNew: boolean;
  /** The sum of the folder's complete content, from sums that this attempt has made. A delivery needs one, or is hashed. */
  proof: Sum | undefined;
}

/** The file of one record: the beginning or the end of a round, or the end of a delivery's hand-off. */
export interface RecordFile {
  readonly name: string;
  readonly kind: "begin" | "end" | "handoff";
  readonly round: number;
}

/** The file of a placement, in its own folder. A copy of the manifest is beside it. */
export const PLACEMENT = "placement.json";

const STAGED = /^(.+)~(\d+)~([0-9a-f]{16})(\.ticket|\.zip|\.beside)?$/;
const RECORD = /^(.+)\.(end|begin|handoff)-(\d+)\.json$/;
const NOTE = /^(.+)\.json$/;

export type LedgerPaths = ReturnType<typeof makePaths>;

/** Of the last work folder: mostly there is one. */
let known: LedgerPaths | undefined;

export function ledgerPaths(work: string): LedgerPaths {
  if (known?.work !== work) known = makePaths(work);
  return known;
}

function makePaths(work: string) {
  /** Created by the ledger. */
  const folders = {
    ledger: join(work, "ledger"),
    /** Of password attempts. */
    slots: join(work, "slots"),
    staging: join(work, "staging"),
    notes: join(work, "notes"),
    journal: join(work, "journal"),
    starts: join(work, "starts"),
    services: join(work, "services"),
    /** For files that have no name yet. */
    temporary: join(work, "new"),
    /** The placements of deliveries that are not picked up yet. */
    placements: join(work, "placements"),
    /** Names in the inbox that deliveries have claimed. */
    names: join(work, "names"),
    quarantine: join(work, "quarantine"),
    /** The keys of mailboxes. */
    mailboxes: join(work, "mailboxes"),
    /** Of operators, as are the pauses. */
    orders: join(work, "orders"),
    pauses: join(work, "pauses"),
  };
  // Without `join`, which would take a third of the time for a list of many transfers.
  const ledgerFolder = (name: string) => `${folders.ledger}/${digitsOf(name, 1)}`;
  const record = (name: string, kind: RecordFile["kind"], round: number) =>
    `${ledgerFolder(name)}/${recordFile({ name, kind, round })}`;
  const inStaging = (entry: string) => `${folders.staging}/${entry}`;
  const staged = (id: StageId) => inStaging(stagedEntry(id));
  return {
    ...folders,
    work,
    /** The slots of an earlier version. */
    oldSlots: join(work, "attempts"),
    /** The hand-offs write it. */
    outbox: outboxIn(work),
    folders: (): readonly string[] => Object.values(folders),
    ledgerFolder,
    end: (name: string, round: number) => record(name, "end", round),
    begin: (name: string, round: number) => record(name, "begin", round),
    /** The record of a finished hand-off. */
    handoff: (name: string, round: number) => record(name, "handoff", round),
    note: (name: string) => `${folders.notes}/${name}.json`,
    inStaging,
    staged,
    ticket: (id: StageId) => `${staged(id)}.ticket`,
    zip: (id: StageId) => `${staged(id)}.zip`,
    /** The folder for files that Inlet adds beside the delivered folder or files. */
    beside: (id: StageId) => `${staged(id)}.beside`,
    /** The folder of a stage's placement, with a copy of its manifest. */
    placement: (id: StageId) => `${folders.placements}/${stagedEntry(id)}`,
    outboxEntry: (name: string, round: number, kind: Kind) =>
      entryPath(work, roundKey({ name, round }), kind),
  };
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

/** `NAME~R`, for the round of a record. */
export function keyOf(record: TransferKey & { readonly round: number }): string {
  return roundKey({ name: nameOf(record), round: record.round });
}

/** The part of a name that does not depend on the mailbox. */
export function startOfName(trackingId: string): string {
  return `${trackingId.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 60)}.`;
}

/** Names the password attempts of a transfer. No spelling of its service's address is part of it: all mailboxes share them. */
export function attemptsKey(trackingId: string): string {
  return `${startOfName(trackingId)}${hash("sha256", trackingId, "hex").slice(0, 32)}`;
}

/** What earlier versions used instead. */
export function oldAttemptsKey(serviceId: string, trackingId: string): string {
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
