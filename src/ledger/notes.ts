/**
 * Notes: the last known record of each open transfer, in a file of its own. Notes are written without a sync: a lost
 * one costs one more poll. They are written some seconds late, so that a short transfer costs no write.
 */
import { join } from "node:path";
import { Coalesced } from "../base/concurrency.ts";
import { type Disk, tryRead, tryUnlink } from "../base/disk.ts";
import { temporaryName } from "../base/durable.ts";
import { systemCode } from "../base/faults.ts";
import type { TransferRecord } from "../model/record.ts";
import { formatRecord, parseRecord } from "./format.ts";
import { type LedgerPaths, nameOf, parseNotes } from "./paths.ts";

const WRITE_AFTER_MS = 5_000;

export class Notes {
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  /** No other process writes notes, so a known note is not read again. */
  readonly #isAlone: boolean;
  readonly #known = new Map<string, TransferRecord>();
  /** Names of the files that this process has seen. */
  readonly #files = new Set<string>();
  /** All notes have been read: a note that is not known does not exist. */
  #isComplete = false;
  #isClosed = false;
  readonly #unwritten = new Set<string>();
  readonly #writing = new Coalesced(() => this.#writeAll(), WRITE_AFTER_MS);

  constructor(disk: Disk, paths: LedgerPaths, isAlone: boolean) {
    this.#disk = disk;
    this.#paths = paths;
    this.#isAlone = isAlone;
  }

  /** False if a note exists. Written at once unless this process knows all notes. */
  async create(record: TransferRecord): Promise<boolean> {
    const name = nameOf(record);
    if (this.#isComplete) {
      if (this.#known.has(name)) return false;
      this.put(record);
      return true;
    }
    if (!(await this.#tryCreate(this.#paths.note(name), record))) return false;
    if (this.#isAlone) {
      this.#known.set(name, record);
      this.#files.add(name);
    }
    return true;
  }

  /** Written within seconds; at once if the transfer waits, because commands read it. */
  put(record: TransferRecord): void {
    const name = nameOf(record);
    this.#known.set(name, record);
    this.#unwritten.add(name);
    if (record.state === "waiting") void this.#writing.run();
    else this.#writing.schedule();
  }

  /** Written and synced when it returns. */
  async putDurably(record: TransferRecord): Promise<void> {
    const name = nameOf(record);
    this.#known.set(name, record);
    await this.#writing.idle();
    this.#unwritten.delete(name);
    await this.#replace(name, record, true);
    await this.#disk.syncFolder(this.#paths.notes);
    if (!this.#isAlone) this.#known.delete(name);
  }

  /** `undefined` if the note is missing or damaged. */
  async read(name: string): Promise<TransferRecord | undefined> {
    const known = this.#known.get(name);
    if (known !== undefined || this.#isComplete) return known;
    const record = await this.#readFile(name);
    if (record !== undefined && this.#isAlone) this.#known.set(name, record);
    return record;
  }

  /** Removes the note of an ended round. The note of a later round stays. */
  async remove(name: string, round: number): Promise<void> {
    if ((this.#known.get(name)?.round ?? 0) <= round) {
      this.#known.delete(name);
      this.#unwritten.delete(name);
    }
    await this.#writing.idle();
    if (this.#known.has(name) || (this.#isComplete && !this.#files.delete(name))) return;
    await tryUnlink(this.#disk, this.#paths.note(name));
  }

  /** Every note has been read since the start. */
  setComplete(): void {
    this.#isComplete = this.#isAlone;
  }

  async names(): Promise<string[]> {
    if (this.#isComplete) return [...this.#known.keys()];
    const names = parseNotes(await this.#disk.list(this.#paths.notes));
    if (this.#isAlone) for (const name of names) this.#files.add(name);
    return names;
  }

  /** From now on, what the disk refuses is not tried again by itself. */
  close(): void {
    this.#isClosed = true;
  }

  /** Resolves when all notes are written, or the disk has refused them. */
  flush(): Promise<void> {
    return this.#writing.run();
  }

  async #writeAll(): Promise<void> {
    const refused: string[] = [];
    for (const name of this.#unwritten) {
      this.#unwritten.delete(name);
      const record = this.#known.get(name);
      if (record === undefined) continue;
      try {
        await this.#replace(name, record);
        if (!this.#isAlone && this.#known.get(name) === record) this.#known.delete(name);
      } catch {
        // Reported where the disk refuses a record.
        refused.push(name);
      }
    }
    for (const name of refused) if (this.#known.has(name)) this.#unwritten.add(name);
    if (refused.length > 0 && !this.#isClosed) this.#writing.schedule();
  }

  async #replace(name: string, record: TransferRecord, isOrdered = false): Promise<void> {
    // What an operator has allowed must not be replaced by a text that a power cut can tear.
    const isSynced = isOrdered || record.allowedBy !== undefined;
    const path = this.#paths.note(name);
    if (this.#isComplete && !this.#files.has(name)) {
      this.#files.add(name);
      if (!isSynced && (await this.#tryCreate(path, record))) return;
    }
    const temporary = join(this.#paths.temporary, temporaryName());
    try {
      await this.#write(temporary, record, isSynced);
      await this.#disk.rename(temporary, path);
    } catch (error) {
      // A start removes it.
      await tryUnlink(this.#disk, temporary).catch(() => {});
      throw error;
    }
  }

  /** False if the file exists. */
  async #tryCreate(path: string, record: TransferRecord): Promise<boolean> {
    try {
      await this.#write(path, record);
      return true;
    } catch (error) {
      if (systemCode(error) === "EEXIST") return false;
      throw error;
    }
  }

  async #write(path: string, record: TransferRecord, isSynced = false): Promise<void> {
    const file = await this.#disk.create(path, 0o600);
    try {
      await file.write(formatRecord(record));
      if (isSynced) await file.sync();
    } finally {
      await file.close();
    }
  }

  async #readFile(name: string): Promise<TransferRecord | undefined> {
    const path = this.#paths.note(name);
    const text = await tryRead(this.#disk, path);
    if (text === undefined) return undefined;
    try {
      return parseRecord(text, path);
    } catch {
      return undefined;
    }
  }
}
