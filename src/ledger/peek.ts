/**
 * Reads the ledger for commands and pages, beside a running daemon or without one, and changes nothing.
 *
 * Records have the state that people see: a delivery whose staged folder is not moved yet is `delivering`, and a
 * delivery whose hand-off says so is `picked-up`. A missing folder counts as empty.
 */

import { join } from "node:path";
import { type Disk, systemDisk, tryRead } from "../base/disk.ts";
import { Fault, messageOf, systemCode, unreadable } from "../base/faults.ts";
import { nextTurn } from "../base/timers.ts";
import type { SpentAttempts } from "../model/attempts.ts";
import { STEPS } from "../model/handoff.ts";
import {
  EMPTY_ENTRY,
  type Entry,
  entryFile,
  KINDS,
  type Kind,
  parseEntry,
  roundKey,
} from "../model/outbox.ts";
import { hasEnded, type TransferKey, type TransferRecord } from "../model/record.ts";
import type { HandoffView, RoundView } from "../model/views.ts";
import { FileAttempts } from "./attempts.ts";
import { type ListedFiles, listFiles } from "./contents.ts";
import { type EndRecord, ifReadable, readRecord } from "./format.ts";
import type { OnDamaged } from "./ledger.ts";
import {
  type LedgerPaths,
  ledgerPaths,
  nameOf,
  parseNotes,
  parseRecordFile,
  recordFile,
  stagedEntry,
  startOfName,
} from "./paths.ts";
import { Rounds } from "./rounds.ts";
import { startsIn } from "./starts.ts";

export interface PeekedFolders {
  readonly work: string;
  /** The common inbox. Only manifests in it are read. */
  readonly inbox: string;
}

export function peekLedger(folders: PeekedFolders, disk = systemDisk): LedgerPeek {
  return new LedgerPeek(folders, disk);
}

export interface TransferDescription {
  /** In its last round. */
  readonly record: TransferRecord;
  /** In order. */
  readonly rounds: readonly RoundView[];
  /** Folders with content of attempts at any round. */
  readonly staged: readonly string[];
  /** The folder in quarantine of the last round, if it exists. */
  readonly kept: string | undefined;
  /** The files of the last round. */
  readonly files: ListedFiles;
  /** Over all mailboxes; missing if their budget is not given. */
  readonly passwords: SpentAttempts | undefined;
}

const ignore: OnDamaged = () => {};

/** Records that are read at the same time. */
const AT_ONCE = 32;

/** The last rounds of a transfer that began and that ended, according to the names of its records. */
interface LastRounds {
  begin: number;
  end: number;
}

/** Names of existing files, so that a list need not look for each file. */
interface Listing {
  readonly staged: ReadonlySet<string>;
  readonly outbox: ReadonlySet<string>;
  /** Of one folder of the ledger. */
  readonly records: ReadonlySet<string>;
}

/** Lists skip damaged records and report them. All methods throw `DISK_UNREADABLE`. */
export class LedgerPeek {
  /** Counts as the daemon does: attempts in rounds that were delivered are void. */
  readonly attempts: Pick<FileAttempts, "spent" | "listed">;
  readonly #inbox: string;
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  readonly #rounds: Rounds;
  readonly #starts: ReturnType<typeof startsIn>;

  constructor({ work, inbox }: PeekedFolders, system: Disk) {
    const [disk, paths] = [readingDisk(system), ledgerPaths(work)];
    this.#disk = disk;
    this.#paths = paths;
    // No mode is needed for reading.
    this.#rounds = new Rounds({ disk, paths, root: inbox, folderMode: () => 0 });
    this.#inbox = inbox;
    this.attempts = new FileAttempts(this.#rounds);
    this.#starts = startsIn(this.#rounds);
  }

  /** The transfer in its last round. Throws `RECORD_UNREADABLE`. */
  find(key: TransferKey): Promise<TransferRecord | undefined> {
    return this.#find(nameOf(key));
  }

  /** The transfer in every mailbox that has received it, configured or not. Reads only records with a fitting name. */
  async findAll(trackingId: string): Promise<TransferRecord[]> {
    const start = startOfName(trackingId);
    const noted = parseNotes(await this.#disk.list(this.#paths.notes));
    const names = new Set(noted.filter((it) => it.startsWith(start)));
    for (const spread of await this.#disk.list(this.#paths.ledger)) {
      const files = await this.#disk.list(join(this.#paths.ledger, spread));
      for (const name of groupByName(files.filter((it) => it.startsWith(start))).keys()) names.add(name);
    }
    const found = await Promise.all([...names].map((name) => this.#find(name)));
    return found.flatMap((record) => (record?.trackingId === trackingId ? [record] : []));
  }

  /** As `Ledger.starts`. */
  start(mailbox: string): Promise<ReadonlySet<string> | undefined> {
    return this.#starts.read(mailbox);
  }

  /** How this round ended; `undefined` while it is open. Throws `RECORD_UNREADABLE`. */
  readEnd(name: string, round: number): Promise<TransferRecord | undefined> {
    return this.#rounds.readEnd(name, round);
  }

  /** Open transfers that have a note, in no particular order. */
  async *open(onDamaged: OnDamaged = ignore): AsyncGenerator<TransferRecord, void, undefined> {
    const names = parseNotes(await this.#disk.list(this.#paths.notes));
    yield* readAll(names, (name) =>
      skipDamaged(this.#paths.note(name), onDamaged, () => this.#find(name, onDamaged, true)),
    );
  }

  /** Transfers whose last round ended in quarantine, and whose content is still there. */
  async *quarantined(onDamaged: OnDamaged = ignore): AsyncGenerator<TransferRecord, void, undefined> {
    yield* readAll(await this.#rounds.quarantine.list(), ({ name, round, folder }) =>
      skipDamaged(folder, onDamaged, async () => {
        const { end } = await this.#rounds.current(name);
        return end?.state === "quarantined" && end.round === round ? end : undefined;
      }),
    );
  }

  /** Every known transfer in its last round, first the open ones. Memory does not grow with the past. */
  async *all(onDamaged: OnDamaged = ignore): AsyncGenerator<TransferRecord, void, undefined> {
    const shown = new Set<string>();
    for await (const record of this.open(onDamaged)) {
      shown.add(nameOf(record));
      yield record;
    }
    const outbox = new Set(await this.#disk.list(this.#paths.outbox));
    for (const spread of await this.#disk.list(this.#paths.ledger)) {
      const records = await this.#disk.list(join(this.#paths.ledger, spread));
      if (records.length === 0) continue;
      const staged = new Set(await this.#disk.list(this.#paths.staging));
      const listing: Listing = { staged, outbox, records: new Set(records) };
      const others = [...groupByName(records)].filter(([name]) => !shown.has(name));
      yield* readAll(others, ([name, last]) =>
        skipDamaged(this.#paths.end(name, last.end), onDamaged, () => this.#readLast(name, last, listing)),
      );
    }
  }

  /** Everything about one transfer. `budget`: of its mailbox, if it is configured. Throws `RECORD_UNREADABLE`. */
  async describe(key: TransferKey, budget?: number): Promise<TransferDescription | undefined> {
    const name = nameOf(key);
    const record = await this.#find(name);
    if (record === undefined) return undefined;
    const rounds: RoundView[] = [];
    for (let round = 1; round <= record.round; round++) rounds.push(await this.#describeRound(name, round));
    const kept = this.#rounds.quarantine.folderOf(name, record.round);
    const staged = await this.#rounds.stagesOf(name);
    return {
      record,
      rounds,
      staged: staged.map((id) => this.#paths.staged(id)),
      files: await listFiles(this.#rounds, this.#inbox, record, staged),
      kept: (await this.#disk.kindOf(kept)) === "folder" ? kept : undefined,
      passwords: budget === undefined ? undefined : await this.attempts.spent(key.trackingId, name, budget),
    };
  }

  /**
   * Counts the password attempts of many transfers: `undefined` if a damaged record hides which attempts count. Lists
   * the slots once, because most transfers have none.
   */
  async countAttempts(): Promise<(key: TransferKey, budget: number) => Promise<number | undefined>> {
    const mayHaveSlots = await this.attempts.listed();
    return async (key, budget) => {
      if (!mayHaveSlots(key.trackingId)) return 0;
      return (await skipDamaged("", ignore, () => this.attempts.spent(key.trackingId, nameOf(key), budget)))
        ?.spent;
    };
  }

  /** `onlyOpen`: only a transfer whose last round is open. */
  async #find(name: string, onDamaged?: OnDamaged, onlyOpen = false): Promise<TransferRecord | undefined> {
    const { round, begin, end: known } = await this.#rounds.current(name);
    const note = known === undefined ? await this.#readNote(name, onDamaged) : undefined;
    if (note?.round === round && !hasEnded(note)) return note;
    // The round may have ended since, and its note was removed.
    const end = known ?? (await this.#rounds.readEnd(name, round));
    if (end === undefined) return begin;
    return onlyOpen ? undefined : this.#asSeen(name, end);
  }

  async #readLast(name: string, last: LastRounds, listing: Listing): Promise<TransferRecord | undefined> {
    if (last.begin > last.end) return this.#find(name);
    const record = await this.#rounds.readEnd(name, last.end);
    return record && this.#asSeen(name, record, listing);
  }

  /** The daemon does without a damaged note, so only lists report it. */
  async #readNote(name: string, onDamaged?: OnDamaged): Promise<TransferRecord | undefined> {
    const path = this.#paths.note(name);
    return readRecord(this.#disk, path).catch((error: unknown) => {
      ifReadable(error);
      onDamaged?.(path, messageOf(error));
      return undefined;
    });
  }

  async #asSeen(name: string, end: EndRecord, listing?: Listing): Promise<TransferRecord> {
    if (end.state !== "delivered") return end;
    if (!(await this.#isPlaced(name, end, listing))) return { ...end, state: "delivering" };
    const handoff = await this.#readHandoff(name, end.round, listing);
    if (handoff?.pickedUpAt === undefined) return end;
    return { ...end, state: "picked-up", at: { ...end.at, "picked-up": handoff.pickedUpAt } };
  }

  async #isPlaced(name: string, end: EndRecord, listing?: Listing): Promise<boolean> {
    if (end.token === undefined || listing === undefined) return this.#rounds.isPlaced(end);
    const entry = stagedEntry({ name, round: end.round, token: end.token });
    return !listing.staged.has(entry) && !listing.staged.has(`${entry}.beside`);
  }

  /** The record of a finished hand-off takes precedence over entries that a late worker left in the outbox. */
  async #readHandoff(name: string, round: number, listing?: Listing): Promise<HandoffView | undefined> {
    const key = roundKey({ name, round });
    const isListed =
      listing === undefined ||
      listing.records.has(recordFile({ name, kind: "handoff", round })) ||
      KINDS.some((kind) => listing.outbox.has(entryFile(key, kind)));
    if (!isListed) return undefined;
    const record = this.#paths.handoff(name, round);
    // A second try finds an entry that was renamed during the first one.
    for (let tries = 0; tries < 2; tries++) {
      const text = await tryRead(this.#disk, record);
      if (text !== undefined) return finishedView(text, record);
      const found: { readonly text: string; readonly kind: Kind }[] = [];
      for (const kind of KINDS) {
        const entry = await tryRead(this.#disk, this.#paths.outboxEntry(name, round, kind));
        if (entry !== undefined) found.push({ text: entry, kind });
      }
      // A late worker may leave an empty file beside the true entry.
      const { text: entry, kind } = found.find((it) => it.text !== "") ?? found[0] ?? {};
      if (entry !== undefined && kind !== undefined) {
        return viewOf(parseEntry(entry, kind) ?? EMPTY_ENTRY, kind);
      }
    }
    return undefined;
  }

  async #describeRound(name: string, round: number): Promise<RoundView> {
    const { begun } = (await readRecord(this.#disk, this.#paths.begin(name, round))) ?? {};
    const end = await this.#rounds.readEnd(name, round);
    if (end === undefined) return { round, begun, ended: undefined };
    const { state: outcome, at, reason, message, folder, inbox, verified, released } = end;
    const handoff = outcome === "delivered" ? await this.#readHandoff(name, round) : undefined;
    const isPlaced = await this.#isPlaced(name, end);
    const facts = { outcome, at: at[outcome], reason, message, folder, inbox, verified, released };
    return { round, begun, ended: { ...facts, isPlaced, handoff } };
  }
}

/** A reader makes nothing durable, and takes a missing folder for empty. Throws `DISK_UNREADABLE`. */
function readingDisk(disk: Disk): Disk {
  const throwFor = (path: string, error: unknown) => {
    throw ["ENOENT", "ENOTDIR"].includes(systemCode(error)) ? error : unreadable(path, error);
  };
  return {
    ...disk,
    read: (path) => disk.read(path).catch((error: unknown) => throwFor(path, error)),
    kindOf: (path) => disk.kindOf(path).catch((error: unknown) => throwFor(path, error)),
    list: (folder) =>
      disk.list(folder).catch((error: unknown) => {
        if (systemCode(error) === "ENOENT") return [];
        throw unreadable(folder, error);
      }),
    // Only a writer needs it.
    syncFolder: async () => {},
  };
}

function groupByName(files: readonly string[]): Map<string, LastRounds> {
  const groups = new Map<string, LastRounds>();
  for (const file of files) {
    const record = parseRecordFile(file);
    if (record === undefined || record.kind === "handoff") continue;
    const { name, kind, round } = record;
    const last = groups.get(name) ?? { begin: 1, end: 0 };
    last[kind] = Math.max(last[kind], round);
    groups.set(name, last);
  }
  return groups;
}

/** Yields the readable records in the given order, and reads several at the same time. */
async function* readAll<Item>(
  items: readonly Item[],
  read: (item: Item) => Promise<TransferRecord | undefined>,
): AsyncGenerator<TransferRecord, void, undefined> {
  for (let start = 0; start < items.length; start += AT_ONCE) {
    // A disk that blocks must not keep the process from a signal.
    await nextTurn();
    const found = await Promise.all(items.slice(start, start + AT_ONCE).map(read));
    for (const record of found) if (record !== undefined) yield record;
  }
}

/** `undefined` if the record is damaged, which is reported. */
async function skipDamaged<Result>(
  path: string,
  onDamaged: OnDamaged,
  read: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    onDamaged(path, messageOf(error));
    return undefined;
  }
}

/** The record is not synced. Emptied by a power cut, it still says that the hand-off is finished. */
function finishedView(text: string, path: string): HandoffView {
  const entry = text === "" ? EMPTY_ENTRY : parseEntry(text, "kept");
  if (entry === undefined) throw new Fault("RECORD_UNREADABLE", { detail: path });
  return { progress: "finished", pickedUpAt: entry.pickedUpAt };
}

/** A damaged entry counts as empty: the daemon reports it. */
function viewOf(entry: Entry, kind: Kind): HandoffView {
  const { pickedUpAt } = entry;
  if (kind === "kept") return { progress: "kept", pickedUpAt };
  const open = STEPS.flatMap((step) => {
    const state = entry[step];
    return state === undefined || state.state === "done" ? [] : [{ step, ...state }];
  });
  const failed = open.flatMap(({ step, error: message, output, nextAt }) =>
    message === undefined ? [] : [{ step, message, output, nextAt }],
  );
  const progress = open.length > 0 ? "open" : "waiting";
  return { progress, pickedUpAt, ...(failed.length > 0 ? { failed } : {}) };
}
