/** Where everything of the ledger is stored below the work folder. */
import { hash } from "node:crypto";
import { join } from "node:path";
import type { TransferKey } from "../model/record.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { Quarantine } from "./quarantine.ts";

/** A staged folder's name, and what belongs to it. */
export interface StageId {
  /** Of the transfer. */
  readonly name: string;
  readonly round: number;
  /** Random: one attempt at one round. */
  readonly token: string;
}

const STAGED = /^(.+)~(\d+)~([0-9a-f]{16})(\.ticket|\.zip)?$/;

export class LedgerPaths {
  readonly work: string;
  readonly ledger: string;
  readonly attempts: string;
  readonly staging: string;
  readonly notes: string;
  readonly journal: string;
  /** For files that have no name yet. */
  readonly temporary: string;

  constructor(work: string) {
    this.work = work;
    this.ledger = join(work, "ledger");
    this.attempts = join(work, "attempts");
    this.staging = join(work, "staging");
    this.notes = join(work, "notes");
    this.journal = join(work, "journal");
    this.temporary = join(work, "new");
  }

  folders(): readonly string[] {
    const { ledger, attempts, staging, notes, journal, temporary } = this;
    return [ledger, attempts, staging, notes, journal, temporary, new Quarantine(this.work).folder];
  }

  ledgerFolder(name: string): string {
    return join(this.ledger, digitsOf(name, 1));
  }

  end(name: string, round: number): string {
    return join(this.ledgerFolder(name), `${name}.end-${round}.json`);
  }

  begin(name: string, round: number): string {
    return join(this.ledgerFolder(name), `${name}.begin-${round}.json`);
  }

  /** How the hand-off of a delivery ended. */
  handoff(name: string, round: number): string {
    return join(this.ledgerFolder(name), `${name}.handoff-${round}.json`);
  }

  note(name: string): string {
    return join(this.notes, `${name}.json`);
  }

  staged({ name, round, token }: StageId): string {
    return join(this.staging, `${name}~${round}~${token}`);
  }

  ticket(id: StageId): string {
    return `${this.staged(id)}.ticket`;
  }

  zip(id: StageId): string {
    return `${this.staged(id)}.zip`;
  }
}

/** The folders over which the records of all transfers are spread. */
export const SPREAD = Array.from("0123456789abcdef");

/** The first so many digits of a name's digest. */
export function digitsOf(name: string, count: number): string {
  return name.slice(name.lastIndexOf(".") + 1).slice(0, count);
}

/** The tracking-id, as far as every file system can hold it, for people; a digest, to be unique. */
export function nameOf({ mailbox, trackingId }: TransferKey): string {
  const key = `${canonicalAddress(mailbox)}\0${trackingId}`;
  const known = names.get(key);
  if (known !== undefined) return known;
  const readable = trackingId.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 60);
  const name = `${readable}.${hash("sha256", key, "hex").slice(0, 32)}`;
  if (names.size >= MOST_NAMES) names.clear();
  names.set(key, name);
  return name;
}

/** Each is needed many times while its transfer is in hand. */
const names = new Map<string, string>();
const MOST_NAMES = 1_000;

/** Names the password attempts of a transfer: all mailboxes of one service share them. */
export function attemptsKey(origin: string, trackingId: string): string {
  return hash("sha256", `${origin}\0${trackingId}`, "hex").slice(0, 32);
}

export function parseStaged(entry: string): (StageId & { readonly part: string }) | undefined {
  const [, name, round, token, part = ""] = STAGED.exec(entry) ?? [];
  if (name === undefined || token === undefined) return undefined;
  return { name, round: Number(round), token, part };
}
