/**
 * Notes: the last known record of each open transfer, in a file of its own. Notes are written without a sync: a lost
 * one costs one more poll. They are written some seconds late, so that a short transfer costs no write.
 */
import { Coalesced, Mutex } from "../base/concurrency.ts";
import { type Disk, tryUnlink } from "../base/disk.ts";
import { writeUnnamed } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import type { TransferRecord } from "../model/record.ts";
import { formatRecord, ifReadable, readRecord } from "./format.ts";
import { type LedgerPaths, nameOf, parseNotes } from "./paths.ts";

const WRITE_AFTER_MS = 5_000;

export class Notes {
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  readonly #isAlone: boolean;
  readonly #unwritten = new Map<string, TransferRecord>();
  /** One change at a time: a late text must not replace a later one. */
  readonly #changes = new Mutex();
  readonly #writing = new Coalesced(() => this.#changes.run(() => this.#writeAll()), WRITE_AFTER_MS);
  #isClosed = false;

  constructor(disk: Disk, paths: LedgerPaths, isAlone: boolean) {
    this.#disk = disk;
    this.#paths = paths;
    this.#isAlone = isAlone;
  }

  /** False if a note exists. Other processes see the new one at once. */
  async create(record: TransferRecord): Promise<boolean> {
    const name = nameOf(record);
    if (this.#isAlone) {
      if ((await this.read(name)) !== undefined) return false;
      this.put(record);
      return true;
    }
    const file = await this.#disk.create(this.#paths.note(name), 0o600).catch(tolerate("EEXIST"));
    await file?.write(formatRecord(record)).finally(() => file.close());
    return file !== undefined;
  }

  /** Written within seconds; at once if the transfer waits, because commands read it. */
  put(record: TransferRecord): void {
    this.#unwritten.set(nameOf(record), record);
    if (record.state === "waiting") void this.#writing.run();
    else this.#writing.schedule();
  }

  /** Written and synced when it returns. */
  async putDurably(record: TransferRecord): Promise<void> {
    const name = nameOf(record);
    this.#unwritten.set(name, record);
    await this.#changes.run(() => this.#write(name, record, true));
    await this.#disk.syncFolder(this.#paths.notes);
  }

  /** `undefined` if the note is missing or damaged. */
  async read(name: string): Promise<TransferRecord | undefined> {
    const unwritten = this.#unwritten.get(name);
    return unwritten ?? (await readRecord(this.#disk, this.#paths.note(name)).catch(ifReadable));
  }

  /** Removes the note of an ended round. The note of a later round stays. */
  async remove(name: string, round: number): Promise<void> {
    if ((this.#unwritten.get(name)?.round ?? 0) <= round) this.#unwritten.delete(name);
    await this.#changes.run(async () => {
      const known = await this.read(name);
      if (known === undefined || known.round <= round) await tryUnlink(this.#disk, this.#paths.note(name));
    });
  }

  async names(): Promise<string[]> {
    const written = parseNotes(await this.#disk.list(this.#paths.notes));
    return [...new Set([...written, ...this.#unwritten.keys()])];
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
    let isRefused = false;
    for (const [name, record] of [...this.#unwritten]) {
      // Removed or replaced meanwhile.
      if (this.#unwritten.get(name) !== record) continue;
      // What an operator has allowed must not be replaced by a text that a power cut can tear.
      await this.#write(name, record, record.allowedBy !== undefined).catch(() => {
        // Reported where the disk refuses a record.
        isRefused = true;
      });
    }
    if (isRefused && !this.#isClosed) this.#writing.schedule();
  }

  async #write(name: string, record: TransferRecord, isSynced: boolean): Promise<void> {
    const file = { folder: this.#paths.temporary, content: formatRecord(record), isSynced };
    await writeUnnamed(this.#disk, file, (unnamed) => this.#disk.rename(unnamed, this.#paths.note(name)));
    if (this.#unwritten.get(name) === record) this.#unwritten.delete(name);
  }
}
