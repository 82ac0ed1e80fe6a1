/**
 * Notes: what is known of open transfers, a file each. They are conveniences: written without a sync, and a lost one costs
 * one more poll. A note that is replaced is written a little later, so that a transfer that is done by then costs nothing.
 */
import { join } from "node:path";
import { type Disk, tryRead, tryUnlink } from "../base/disk.ts";
import { temporaryName } from "../base/durable.ts";
import { systemCode } from "../base/system-code.ts";
import type { TransferRecord } from "../model/record.ts";
import { formatRecord, parseRecord } from "./format.ts";
import { type LedgerPaths, nameOf } from "./paths.ts";

const WRITE_AFTER_MS = 200;

export class Notes {
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  /** No other process writes notes: what this one knows need not be read. */
  readonly #isAlone: boolean;
  readonly #known = new Map<string, TransferRecord>();
  /** All notes that there are have been read: one that is not known does not exist. */
  #isComplete = false;
  readonly #unwritten = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(disk: Disk, paths: LedgerPaths, isAlone: boolean) {
    this.#disk = disk;
    this.#paths = paths;
    this.#isAlone = isAlone;
  }

  /** False where there is one. */
  async create(record: TransferRecord): Promise<boolean> {
    const name = nameOf(record);
    try {
      const file = await this.#disk.create(this.#paths.note(name), 0o600);
      try {
        await file.write(formatRecord(record));
      } finally {
        await file.close();
      }
    } catch (error) {
      if (systemCode(error) === "EEXIST") return false;
      throw error;
    }
    if (this.#isAlone) this.#known.set(name, record);
    return true;
  }

  /** Replaces the note soon. */
  put(record: TransferRecord): void {
    const name = nameOf(record);
    this.#known.set(name, record);
    this.#unwritten.add(name);
    this.#timer ??= setTimeout(() => this.#flushSoon(), WRITE_AFTER_MS);
  }

  /** `undefined` where there is none, or one that cannot be read. */
  async read(name: string): Promise<TransferRecord | undefined> {
    const known = this.#known.get(name);
    if (known !== undefined || this.#isComplete) return known;
    const record = await this.#readFile(name);
    if (record !== undefined && this.#isAlone) this.#known.set(name, record);
    return record;
  }

  async remove(name: string): Promise<void> {
    this.#known.delete(name);
    this.#unwritten.delete(name);
    await this.#writing;
    await tryUnlink(this.#disk, this.#paths.note(name));
  }

  /** Every note was read since the start, and no other process writes any. */
  setComplete(): void {
    this.#isComplete = this.#isAlone;
  }

  async names(): Promise<string[]> {
    const names = await this.#disk.list(this.#paths.notes);
    return names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
  }

  /** Resolves when everything is written, as far as the disk allows. */
  async flush(): Promise<void> {
    this.#flushSoon();
    await this.#writing;
  }

  #flushSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    for (const name of this.#unwritten) {
      this.#unwritten.delete(name);
      const record = this.#known.get(name);
      if (!this.#isAlone) this.#known.delete(name);
      // A disk that refuses a note will refuse more than that, and say so.
      if (record !== undefined) await this.#replace(name, record).catch(() => {});
    }
  }

  async #replace(name: string, record: TransferRecord): Promise<void> {
    const temporary = join(this.#paths.temporary, temporaryName());
    const file = await this.#disk.create(temporary, 0o600);
    try {
      await file.write(formatRecord(record)).finally(() => file.close());
      await this.#disk.rename(temporary, this.#paths.note(name));
    } catch (error) {
      await tryUnlink(this.#disk, temporary).catch(() => {});
      throw error;
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
