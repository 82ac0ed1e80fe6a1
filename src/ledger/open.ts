/** Opens the ledger of an inbox. */

import { basename, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { type Disk, OpenFolders, systemDisk } from "../base/disk.ts";
import { faultOfDisk } from "../base/durable.ts";
import { messageOf, systemCode } from "../base/faults.ts";
import { withFile } from "../base/files.ts";
import { hasEnded, isUnwanted, type Routed, type TransferKey, type TransferRecord } from "../model/record.ts";
import type { RecordedAct } from "../model/views.ts";
import { FileAttempts } from "./attempts.ts";
import type { BeginRecord, EndRecord, Occasion } from "./format.ts";
import { IdleStages } from "./idle-stages.ts";
import { Journal } from "./journal.ts";
import { Notes } from "./notes.ts";
import { LedgerPaths, nameOf, SPREAD } from "./paths.ts";
import type { Ledger, OnDamaged, OnUnrecovered, Placements, RetentionRules, Stage, Stages } from "./port.ts";
import { prepareFolders } from "./prepare.ts";
import type { Quarantined, QuarantineReason } from "./quarantine.ts";
import { Retention } from "./retention.ts";
import { Rounds } from "./rounds.ts";
import { Starts } from "./starts.ts";
import { Watermark } from "./watermark.ts";

export interface LedgerOptions {
  readonly work: string;
  /** The common inbox. */
  readonly root: string;
  /** The mode of delivered folders and the folders above them, as configured now. */
  folderMode(transfer: Routed): number;
  /** The group of the folders above them, as configured now; missing: left as it is. */
  folderGroup?(transfer: Routed): number | undefined;
  readonly clock: Clock;
  /** Names the journal of this process if several share the inbox; missing if this process works alone. */
  readonly writer?: string | undefined;
  /** `path`: outside the work folder. `id`: of the work folder. */
  readonly watermark: { readonly path: string; readonly id: string };
  readonly disk?: Disk;
}

/** Rounds that are remembered as settled. A forgotten one may be settled again: the journal then holds its end twice. */
const MAX_SETTLED = 10_000;

/**
 * Throws `DISK_FULL` or `DISK_REFUSED` if its folders cannot be created, `WORK_RESTORED` if the ledger is older
 * than its watermark, and `LINKS_MISSING` if several processes share a file system without hard links.
 */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const paths = new LedgerPaths(options.work);
  await prepareFolders(paths, options.writer === undefined, options.clock.now());
  const ledger = new FileLedger(paths, options);
  await ledger.demandWatermark();
  return ledger;
}

class FileLedger implements Ledger {
  readonly attempts: FileAttempts;
  readonly starts: Ledger["starts"];
  readonly stages: Stages;
  readonly placements: Placements;
  readonly notices: Ledger["notices"];
  readonly #paths: LedgerPaths;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #isAlone: boolean;
  readonly #rounds: Rounds;
  readonly #notes: Notes;
  readonly #journal: Journal;
  readonly #watermark: Watermark;
  readonly #retention: Retention;
  readonly #idle: IdleStages;
  readonly #folders = new OpenFolders();
  /** Ended rounds whose note and ticket are removed once the journal has the end, by `NAME~R`. */
  readonly #settling = new Map<string, Promise<void>>();
  #isQuarantineCleared = false;
  /** The rounds settled last. A reader of the whole ledger may reach one of them late. */
  readonly #settled = new Set<string>();

  constructor(paths: LedgerPaths, options: LedgerOptions) {
    const { clock, writer, root } = options;
    const disk = options.disk ?? this.#keepOpen(paths);
    this.#paths = paths;
    this.#disk = disk;
    this.#clock = clock;
    const isAlone = writer === undefined;
    this.#isAlone = isAlone;
    const { folderMode, folderGroup } = options;
    this.#rounds = new Rounds({
      disk,
      paths,
      root,
      folderMode,
      ...(folderGroup && { folderGroup }),
      isAlone,
    });
    this.#notes = new Notes(disk, paths, isAlone);
    this.#journal = new Journal(paths.journal, writer, clock);
    this.notices = this.#journal;
    this.#watermark = new Watermark(options.watermark.path, options.watermark.id);
    const watermark = this.#watermark;
    this.#retention = new Retention({ disk, paths, rounds: this.#rounds, watermark });
    this.#idle = new IdleStages(disk, paths, this.#rounds);
    this.attempts = new FileAttempts(disk, paths, this.#rounds);
    const starts = new Starts(disk, paths.starts, this.#rounds.once);
    this.starts = {
      read: (mailbox) => this.#try(starts.read(mailbox)),
      create: (mailbox, before, at) => this.#try(starts.create(mailbox, before, at)),
    };
    const { targets, placing } = this.#rounds;
    this.stages = {
      openStage: (record) => this.#try(this.#rounds.openStage(record)),
      closeStage: (stage) => this.#try(this.#rounds.closeStage(stage)),
      endedBy: (stage) => this.#try(this.#rounds.endedBy(stage)),
      dropStage: (stage) => this.#try(this.#rounds.dropStage(stage)),
      otherContent: (stage) => this.#try(this.#otherContent(stage)),
      reclaim: (stage) => this.#try(this.#idle.reclaim(stage)),
      seal: (stage) => this.#try(this.#rounds.seal(stage)),
      sealForQuarantine: (stage, reason) => this.#try(this.#sealForQuarantine(stage, reason)),
      takeFolder: (folder, transfer, inbox) => this.#try(targets.takeFolder(folder, transfer, inbox)),
      giveBack: (folder, inbox) => targets.giveBack(folder, inbox),
      claim: (stage, names, transfer, inbox) => this.#try(placing.claim(stage, names, transfer, inbox)),
      writePlacement: (stage, ...placement) => this.#try(placing.write(stage, ...placement)),
      placementOf: (folder) => join(paths.placements, basename(folder)),
      dropPlacement: (stage) => this.#try(placing.drop(stage)),
      endWith: (stage, record) => this.#try(this.#rounds.endWith(stage, record)),
      place: (record, stage) => this.#try(this.#place(record, stage)),
    };
    this.placements = {
      find: (end) => this.#try(placing.find(end)),
      folderOf: (end) => placing.folderOf(end),
      forget: (end) => this.#try(placing.forget(end)),
    };
  }

  /** Keeps the folders open that are synced most. */
  #keepOpen(paths: LedgerPaths): Disk {
    const open = new Set([paths.attempts, paths.staging, ...SPREAD.map((name) => join(paths.ledger, name))]);
    const syncFolder = (path: string) =>
      open.has(path) ? this.#folders.sync(path) : systemDisk.syncFolder(path);
    return { ...systemDisk, syncFolder };
  }

  /** Turns the system's errors into faults. */
  #try<Result>(work: Promise<Result>): Promise<Result> {
    return work.catch((error: unknown) => {
      throw faultOfDisk(error, this.#paths.work);
    });
  }

  demandWatermark(): Promise<void> {
    return this.#watermark.demand(this.#rounds);
  }

  nameOf(key: TransferKey): string {
    return nameOf(key);
  }

  find(key: TransferKey): Promise<TransferRecord | undefined> {
    return this.#try(this.#find(nameOf(key)));
  }

  async #find(name: string): Promise<TransferRecord | undefined> {
    const { round, begin, end } = await this.#rounds.current(name);
    if (end !== undefined) return end;
    const note = await this.#notes.read(name);
    return note?.round === round && !hasEnded(note) ? note : begin;
  }

  discover(record: TransferRecord): Promise<boolean> {
    return this.#try(this.#discover(record));
  }

  async #discover(record: TransferRecord): Promise<boolean> {
    if (await this.#notes.create(record)) this.#journal.add(record);
    // A power cut may have emptied the note.
    else if ((await this.#notes.read(nameOf(record))) === undefined) this.noteChange(record);
    else return false;
    return true;
  }

  async begin(record: TransferRecord, why: Occasion, by: string): Promise<boolean> {
    const at = new Date(this.#clock.now()).toISOString();
    const begun: BeginRecord = { ...record, begun: { why, by, at } };
    if (!(await this.#try(this.#rounds.begin(begun)))) return false;
    this.noteChange(record);
    return true;
  }

  note(record: TransferRecord): void {
    this.#notes.put(record);
  }

  noteDurably(record: TransferRecord): Promise<void> {
    return this.#try(this.#notes.putDurably(record));
  }

  noteChange(record: TransferRecord): void {
    this.#notes.put(record);
    this.#journal.add(record);
  }

  async end(record: TransferRecord): Promise<boolean> {
    if (!isUnwanted(record)) await this.#try(this.#syncNote(nameOf(record)));
    if (!(await this.#try(this.#rounds.end(record)))) return false;
    this.#settle(record);
    return true;
  }

  /** The note must survive a power cut: by it, the next start finds an end that the journal lacks. */
  async #syncNote(name: string): Promise<void> {
    await this.#notes.flush();
    await withFile(this.#paths.note(name), "r", (file) => file.sync()).catch((error: unknown) => {
      if (systemCode(error) !== "ENOENT") throw error;
    });
    await this.#disk.syncFolder(this.#paths.notes);
  }

  /**
   * Adds the end of a round to the journal, and removes its note and its ticket then. If a crash comes between, the
   * next start finds the note or the ticket and settles the round again: the journal has each end at least once.
   */
  #settle(record: EndRecord): void {
    const name = nameOf(record);
    const key = `${name}~${record.round}`;
    if (this.#settling.has(key)) return;
    // The journal has this end already. Only a note that was written late is left to remove.
    const written = this.#settled.has(key) ? Promise.resolve() : this.#writeEnd(record);
    const settled = written
      .then(() => this.#notes.remove(name, record.round))
      .then(() => (this.#isAlone ? this.#rounds.dropTicket(record) : undefined))
      .then(() => {
        this.#settled.add(key);
        const [oldest = ""] = this.#settled;
        if (this.#settled.size > MAX_SETTLED) this.#settled.delete(oldest);
      })
      // The disk refuses: the next recovery settles the round again.
      .catch(() => {})
      .finally(() => this.#settling.delete(key));
    this.#settling.set(key, settled);
  }

  #writeEnd(record: EndRecord): Promise<void> {
    this.#watermark.put(nameOf(record), record.round);
    return new Promise((resolve) => this.#journal.add(record, resolve));
  }

  #isSettled(record: EndRecord): boolean {
    const key = `${nameOf(record)}~${record.round}`;
    return this.#settling.has(key) || this.#settled.has(key);
  }

  async #place(record: EndRecord, stage: Stage | undefined): Promise<TransferRecord | undefined> {
    const end = stage === undefined ? record : { ...record, token: stage.token };
    const folder = await this.#rounds.place(end, stage !== undefined);
    if (folder === undefined && stage === undefined) return undefined;
    const placed = record.state === "delivered" && folder !== undefined ? { ...end, folder } : end;
    this.#settle(placed);
    await this.#clearEarlier(placed);
    return placed;
  }

  /** The earlier rounds' content in quarantine is delivered now, or replaced. */
  async #clearEarlier(end: EndRecord): Promise<void> {
    if (end.round > 1) await this.#rounds.quarantine.clear(nameOf(end), end.round);
  }

  readEnd(name: string, round: number): Promise<TransferRecord | undefined> {
    return this.#try(this.#rounds.readEnd(name, round));
  }

  isPlaced(end: EndRecord): Promise<boolean> {
    return this.#try(this.#rounds.isPlaced(end));
  }

  pickedUp(record: TransferRecord): void {
    this.#journal.add({ ...record, state: "picked-up" });
  }

  recordAct(act: RecordedAct): Promise<void> {
    this.#journal.addAct(act);
    return this.#journal.flush();
  }

  findInQuarantine(record: TransferRecord): Promise<Quarantined | undefined> {
    return this.#try(this.#rounds.quarantine.findComplete(nameOf(record), record.round - 1));
  }

  async *open(onDamaged: OnDamaged): AsyncIterable<TransferRecord> {
    for (const name of await this.#notes.names()) {
      try {
        const record = await this.#find(name);
        if (record !== undefined && !hasEnded(record)) yield record;
        // A worker of this process is about to move the content, and settles the round then.
        else if (record !== undefined && !this.#rounds.isInUse(record)) this.#settle(record);
        // Emptied by a power cut, unless another process is about to write it.
        else if (record === undefined && this.#isAlone) await this.#notes.remove(name, 0);
      } catch (error) {
        onDamaged(this.#paths.note(name), messageOf(error));
      }
    }
    this.#notes.setComplete();
  }

  async *quarantined(onDamaged: OnDamaged): AsyncIterable<TransferRecord> {
    for (const { name, round, folder } of await this.#rounds.quarantine.list()) {
      const record = await this.#find(name).catch((error: unknown) => {
        onDamaged(folder, messageOf(error));
        return undefined;
      });
      if (record?.state === "quarantined" && record.round === round) yield record;
    }
  }

  async recover(onFailed: OnUnrecovered): Promise<TransferRecord[]> {
    const found = await this.#rounds.recover((entry, error, end) =>
      onFailed(this.#paths.inStaging(entry), error, end),
    );
    const hasNote = async (name: string) => (await this.#notes.read(name)) !== undefined;
    await this.#idle
      .revokeOrphans(hasNote)
      .then(() => this.#idle.dropOrphanedEntries(hasNote))
      .catch((error: unknown) => onFailed(this.#paths.staging, error));
    const recovered: TransferRecord[] = [];
    for (const { end, folder } of found.filter((it) => !this.#isSettled(it.end))) {
      const placed = end.state === "delivered" && folder !== undefined ? { ...end, folder } : end;
      this.#settle(placed);
      await this.#clearEarlier(placed).catch((error: unknown) =>
        onFailed(this.#rounds.quarantine.folder, error),
      );
      recovered.push(placed);
    }
    if (!this.#isQuarantineCleared) await this.#clearQuarantine(onFailed);
    return [...recovered, ...(this.#isAlone ? await this.#settleEnded() : [])];
  }

  /** A power cut may have brought back content that was delivered since. Once: later removals are not cut. */
  async #clearQuarantine(onFailed: OnUnrecovered): Promise<void> {
    const { quarantine } = this.#rounds;
    try {
      for (const { name, round } of await quarantine.list()) {
        // Starts report damaged records.
        const record = await this.#find(name).catch(() => undefined);
        if (record?.state === "delivered" && record.round > round) await quarantine.clear(name, record.round);
      }
      this.#isQuarantineCleared = true;
    } catch (error) {
      onFailed(quarantine.folder, error);
    }
  }

  /** Ends that the journal does not have: the disk failed right after their records were made. */
  async #settleEnded(): Promise<TransferRecord[]> {
    const ended: TransferRecord[] = [];
    for (const name of await this.#notes.names()) {
      // Starts report damaged records.
      const record = await this.#find(name).catch(() => undefined);
      if (record === undefined || !hasEnded(record) || this.#rounds.isInUse(record)) continue;
      if (this.#isSettled(record) || !(await this.#rounds.isPlaced(record))) continue;
      this.#settle(record);
      // A delivery is announced by the process that places it.
      if (record.state === "gone") ended.push(record);
    }
    return ended;
  }

  clearQuarantine(key: TransferKey): Promise<void> {
    return this.#rounds.quarantine.clear(nameOf(key));
  }

  sweep(rules: RetentionRules): Promise<void> {
    return this.#retention.sweep(rules, this.#clock.now());
  }

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
    await this.#folders.close();
  }

  async #otherContent(stage: Stage): Promise<string[]> {
    const others = await this.#rounds.otherStages(stage);
    const { quarantine } = this.#rounds;
    const quarantined = stage.round === 1 ? [] : [quarantine.folderOf(stage.name, stage.round - 1)];
    return [...others.map((id) => this.#paths.staged(id)), ...quarantined];
  }

  async #sealForQuarantine(stage: Stage, reason: QuarantineReason): Promise<void> {
    await this.#rounds.quarantine.prepare(stage.folder, reason);
    await this.#rounds.seal(stage);
  }
}
