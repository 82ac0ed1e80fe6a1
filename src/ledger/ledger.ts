/**
 * The ledger: durable records of how each transfer ended, and notes of open transfers.
 *
 * Several processes may work on one inbox, and each may pause for any length of time. Safety rests on records that are
 * created once and never changed. Everything else may be lost, at the cost of time.
 */

import type { Clock } from "../base/clock.ts";
import { type Disk, systemDisk } from "../base/disk.ts";
import { messageOf, systemCode } from "../base/faults.ts";
import { withFile } from "../base/files.ts";
import { BoundedMap } from "../base/waits.ts";
import type { AttemptSlots } from "../model/attempts.ts";
import { hasEnded, isUnwanted, type TransferKey, type TransferRecord } from "../model/record.ts";
import type { RecordedAct } from "../model/views.ts";
import { FileAttempts } from "./attempts.ts";
import type { BeginRecord, EndRecord, Occasion } from "./format.ts";
import { reclaimIdle, removeOrphans } from "./idle-stages.ts";
import { Journal } from "./journal.ts";
import { Notes } from "./notes.ts";
import { keyOf, type LedgerPaths, ledgerPaths, nameOf, type Stage } from "./paths.ts";
import type { Placing, PlacingOptions } from "./placing.ts";
import { prepareFolders } from "./prepare.ts";
import type { Quarantined } from "./quarantine.ts";
import { Retention, type RetentionRules } from "./retention.ts";
import { Rounds } from "./rounds.ts";
import { servicesIn } from "./services.ts";
import { startsIn } from "./starts.ts";
import { Watermark } from "./watermark.ts";

export interface LedgerOptions extends Omit<PlacingOptions, "disk" | "paths"> {
  readonly work: string;
  readonly clock: Clock;
  /** Names the journal of this process if several share the inbox; missing if this process works alone. */
  readonly writer?: string | undefined;
  /** `path`: outside the work folder. `id`: of the work folder. */
  readonly watermark: { readonly path: string; readonly id: string };
  /** The ids of the configured services. */
  services?(): readonly string[];
  readonly disk?: Disk;
}

/**
 * Throws `DISK_FULL` or `DISK_REFUSED` if its folders cannot be created, and `LINKS_MISSING` if several processes share a file
 * system without hard links.
 */
export async function openLedger(options: LedgerOptions): Promise<FileLedger> {
  const paths = ledgerPaths(options.work);
  await prepareFolders(paths, options.writer === undefined, options.clock.now());
  return new FileLedger(paths, options);
}

export type OnDamaged = (path: string, reason: string) => void;
/** `end`: the record of a round whose content cannot be moved to the inbox or the quarantine. */
export type OnUnrecovered = (path: string, error: unknown, end?: TransferRecord) => void;

export class FileLedger {
  readonly attempts: AttemptSlots;
  /** Where mailboxes start: durable, and never changed. */
  readonly starts: ReturnType<typeof startsIn>;
  /** Facts about services. */
  readonly services: ReturnType<typeof servicesIn>;
  /** The rounds, and the content of their attempts. */
  readonly stages: Rounds;
  /** Names in the inboxes, and the placements of deliveries that are not picked up yet. */
  readonly placements: Placing;
  /** Adds changes of notices to the journal, and reports its batches. */
  readonly notices: Pick<Journal, "addNotice" | "onBatch">;
  readonly #clock: Clock;
  readonly #isAlone: boolean;
  readonly #notes: Notes;
  readonly #journal: Journal;
  readonly #watermark: Watermark;
  readonly #retention: Retention;
  /** By `keyOf`: ended rounds whose note and ticket are removed once the journal has the end. */
  readonly #settling = new Map<string, Promise<void>>();
  /**
   * The rounds settled last: a reader of the whole ledger may reach one only then. A forgotten one may be settled again: the
   * journal then holds its end twice.
   */
  readonly #settled = new BoundedMap<true>();

  constructor(paths: LedgerPaths, options: LedgerOptions) {
    const { clock, writer, watermark, disk = systemDisk } = options;
    this.#clock = clock;
    this.#isAlone = writer === undefined;
    this.#notes = new Notes(disk, paths, this.#isAlone);
    this.#journal = new Journal(paths.journal, writer, clock);
    this.#watermark = new Watermark(watermark.path, watermark.id);
    this.stages = new Rounds({ ...options, disk, paths, isAlone: this.#isAlone });
    this.attempts = new FileAttempts(this.stages, options.services);
    this.starts = startsIn(this.stages);
    this.services = servicesIn(this.stages);
    this.placements = this.stages.placing;
    this.#retention = new Retention(this.stages, this.#watermark);
    this.notices = this.#journal;
  }

  /** The name of a transfer in all paths of the ledger: safe on every file system, and unique. */
  nameOf(key: TransferKey): string {
    return nameOf(key);
  }

  /**
   * The transfer in its last round; `undefined` for an unknown transfer. The cost does not grow with the history.
   * Throws `RECORD_UNREADABLE` if a record is damaged or of another version.
   */
  find(key: TransferKey): Promise<TransferRecord | undefined> {
    return this.#find(nameOf(key));
  }

  async #find(name: string): Promise<TransferRecord | undefined> {
    const { round, begin, end } = await this.stages.current(name);
    if (end !== undefined) return end;
    const note = await this.#notes.read(name);
    if (note?.round === round && !hasEnded(note)) return note;
    // The round may have ended since, and its note was removed.
    return (await this.stages.readEnd(name, round)) ?? begin;
  }

  /** Notes a new transfer. False if the transfer is known. */
  async discover(record: TransferRecord): Promise<boolean> {
    if (await this.#notes.create(record)) this.#journal.add(record);
    // A power cut may have emptied the note.
    else if ((await this.#notes.read(nameOf(record))) === undefined) this.noteChange(record);
    else return false;
    return true;
  }

  /** Begins the round of `record`, after the round before it has ended. False if it has begun before. Durable. */
  async begin(record: TransferRecord, why: Occasion, by: string): Promise<boolean> {
    const at = new Date(this.#clock.now()).toISOString();
    const begun: BeginRecord = { ...record, begun: { why, by, at } };
    if (!(await this.stages.begin(begun))) return false;
    this.noteChange(record);
    return true;
  }

  /** Notes the record of an open round. Written soon, without a sync. */
  note(record: TransferRecord): void {
    this.#notes.put(record);
  }

  /** Notes what an operator has ordered: when it returns, a power cut cannot take it away. */
  noteDurably(record: TransferRecord): Promise<void> {
    return this.#notes.putDurably(record);
  }

  /** The same as `note`, and adds the change of state to the journal. */
  noteChange(record: TransferRecord): void {
    this.#notes.put(record);
    this.#journal.add(record);
  }

  /** Ends a round without content: `gone`. False if it has ended before. Durable. */
  async end(record: TransferRecord): Promise<boolean> {
    // After a power cut, the journal may lack the end of an unwanted transfer.
    if (!isUnwanted(record)) await this.#syncNote(nameOf(record));
    if (!(await this.stages.end(record))) return false;
    this.#settle(record);
    return true;
  }

  /** The note must survive a power cut: by it, the next start finds an end that the journal lacks. */
  async #syncNote(name: string): Promise<void> {
    await this.#notes.flush();
    await withFile(this.stages.paths.note(name), "r", (file) => file.sync()).catch((error: unknown) => {
      if (systemCode(error) !== "ENOENT") throw error;
    });
    await this.stages.disk.syncFolder(this.stages.paths.notes);
  }

  /**
   * Adds the end of a round to the journal, and removes its note and its ticket then. If a crash comes between, the
   * next start finds the note or the ticket and settles the round again: the journal has each end at least once.
   */
  #settle(record: EndRecord): void {
    const key = keyOf(record);
    if (this.#settling.has(key)) return;
    const settled = this.#writeEnd(record)
      // The disk refuses: the next recovery settles the round again.
      .catch(() => {})
      .finally(() => this.#settling.delete(key));
    this.#settling.set(key, settled);
  }

  async #writeEnd(record: EndRecord): Promise<void> {
    const [key, name] = [keyOf(record), nameOf(record)];
    // If the journal has this end already, only a note that was written late is left to remove.
    if (!this.#settled.has(key)) {
      // Whatever an earlier round has kept of it.
      if (isUnwanted(record) && record.round > 1) await this.stages.quarantine.clear(name, record.round);
      this.#watermark.put(name, record.round);
      await new Promise<void>((resolve) => this.#journal.add(record, resolve));
    }
    await this.#notes.remove(name, record.round);
    if (this.#isAlone) await this.stages.close(record);
    this.#settled.set(key, true);
  }

  #isSettled(record: EndRecord): boolean {
    return this.#settling.has(keyOf(record)) || this.#settled.has(keyOf(record));
  }

  /**
   * Moves the staged folder of an ended round to the inbox or the quarantine, or each part of its placement to the inbox.
   * False if everything was moved before. `stage`: the stage that has just ended the round. Throws `TARGET_TAKEN`,
   * `INBOX_MISSING`, `INBOX_APART` and `CONTENT_CHANGED`.
   */
  async place(record: EndRecord, stage?: Stage): Promise<boolean> {
    const end = stage === undefined ? record : { ...record, token: stage.token };
    if (!(await this.stages.place(end, stage))) return false;
    this.#settle(end);
    return true;
  }

  /** Adds the end of a round to the journal if this process has not: its disk may have failed after the move. */
  settle(record: EndRecord): boolean {
    if (this.#isSettled(record)) return false;
    this.#settle(record);
    return true;
  }

  /** Removes the stages of other attempts that seem to be over. Safe if they are not. */
  reclaim(stage: Stage): Promise<void> {
    return reclaimIdle(this.stages, stage);
  }

  /** How this round ended; `undefined` while it is open. Throws `RECORD_UNREADABLE`. */
  readEnd(name: string, round: number): Promise<TransferRecord | undefined> {
    return this.stages.readEnd(name, round);
  }

  /** Whether the content of an ended round has left staging. */
  isPlaced(end: EndRecord): Promise<boolean> {
    return this.stages.isPlaced(end);
  }

  /** Adds the pick-up of a delivery to the journal. */
  pickedUp(record: TransferRecord): void {
    this.#journal.add({ ...record, state: "picked-up" });
  }

  /** Adds an operator's act to the journal. Resolves when it is written, or the disk has refused it. */
  recordAct(act: RecordedAct): Promise<void> {
    this.#journal.addAct(act);
    return this.#journal.flush();
  }

  /** The content of the round before, if it is in quarantine and complete. */
  findInQuarantine(record: TransferRecord): Promise<Quarantined | undefined> {
    return this.stages.quarantine.findComplete(nameOf(record), record.round - 1);
  }

  /** Every open transfer, in no particular order. Removes the notes of rounds that have ended. */
  async *open(onDamaged: OnDamaged): AsyncIterable<TransferRecord> {
    for (const name of await this.#notes.names()) {
      try {
        const record = await this.#find(name);
        if (record !== undefined && !hasEnded(record)) yield record;
        else if (record !== undefined && (await this.#isDone(record))) this.#settle(record);
        // Emptied by a power cut, unless another process is about to write it. Round 0: a note with content stays.
        else if (record === undefined && this.#isAlone) await this.#notes.remove(name, 0);
      } catch (error) {
        onDamaged(this.stages.paths.note(name), messageOf(error));
      }
    }
  }

  /** Transfers whose last round ended in quarantine. */
  async *quarantined(onDamaged: OnDamaged): AsyncIterable<TransferRecord> {
    for (const { name, round, folder } of await this.stages.quarantine.list()) {
      const record = await this.#find(name).catch((error: unknown) => {
        onDamaged(folder, messageOf(error));
        return undefined;
      });
      if (record?.state === "quarantined" && record.round === round) yield record;
    }
  }

  /**
   * Finishes rounds that a crash cut short: moves the staged folders that end records name, and removes the other
   * staged folders of ended rounds. May run beside workers. Returns the end records of the rounds.
   */
  async recover(onFailed: OnUnrecovered): Promise<TransferRecord[]> {
    const found = await this.stages.recover((entry, error, end) =>
      onFailed(this.stages.paths.inStaging(entry), error, end),
    );
    const hasNote = async (name: string) => (await this.#notes.read(name)) !== undefined;
    await removeOrphans(this.stages, hasNote).catch((error: unknown) =>
      onFailed(this.stages.paths.staging, error),
    );
    const recovered = found.filter((end) => !this.#isSettled(end));
    for (const end of recovered) this.#settle(end);
    return [...recovered, ...(this.#isAlone ? await this.#settleEnded() : [])];
  }

  /** Whether nothing is left to move, and no worker of this process is about to settle the round. */
  async #isDone(end: EndRecord): Promise<boolean> {
    return !this.stages.isInUse(end) && (await this.stages.isPlaced(end));
  }

  /** Ends that the journal does not have: the disk failed right after their records were made. */
  async #settleEnded(): Promise<TransferRecord[]> {
    const ended: TransferRecord[] = [];
    for (const name of await this.#notes.names()) {
      // A damaged record is reported when the daemon starts.
      const record = await this.#find(name).catch(() => undefined);
      if (record === undefined || !hasEnded(record) || this.#isSettled(record)) continue;
      if (!(await this.#isDone(record))) continue;
      this.#settle(record);
      // A delivery is announced by the process that places it.
      if (record.state === "gone") ended.push(record);
    }
    return ended;
  }

  /** The ledger was older than its watermark, and is accepted. */
  acceptOlder(): Promise<void> {
    return this.#watermark.clear();
  }

  /** Removes everything that the quarantine holds of a transfer. */
  clearQuarantine(key: TransferKey): Promise<void> {
    return this.stages.quarantine.clear(nameOf(key));
  }

  /** Removes records beyond their retention, from one part of the ledger per call. The clock must be right. */
  sweep(rules: RetentionRules): Promise<void> {
    return this.#retention.sweep(rules, this.#clock.now());
  }

  /** Resolves when all notes and the journal are written, or the disk has refused them. */
  async flush(): Promise<void> {
    await this.#notes.flush();
    await this.#journal.flush();
    await this.#watermark.flush();
    if (!this.#journal.isStuck) await Promise.all(this.#settling.values());
  }

  async close(): Promise<void> {
    this.#notes.close();
    await this.flush();
    await this.#journal.close();
  }
}
