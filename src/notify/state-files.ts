/**
 * The saved state of one channel, shared by all processes. Each save is a new file with the next number, which must not exist
 * yet: one process creates it, and the others have to read it before they save. So no process loses changes of another.
 */

import { join } from "node:path";
import * as v from "valibot";
import { systemClock } from "../base/clock.ts";
import { type Disk, FolderSyncs, systemDisk, tryRead, tryUnlink } from "../base/disk.ts";
import { clearTemporaries, makeFolderDurably } from "../base/durable.ts";
import { systemCode } from "../base/faults.ts";
import { OnceFiles } from "../base/once-files.ts";
import { randomHex } from "../base/random.ts";
import { type StateSnapshot, StateSnapshotShape } from "./state.ts";

const FileShape = v.object({
  version: v.literal(2),
  /** The processes that wrote last, each with the number of its last file. */
  writers: v.array(v.tuple([v.string(), v.number()])),
  state: StateSnapshotShape,
});

type StateFile = v.InferOutput<typeof FileShape>;

export interface Found {
  /** Missing if no file can be read. */
  readonly state: StateSnapshot | undefined;
  /** The state includes our last `write`. */
  readonly hasOurs: boolean;
}

const FILE = /^memory-(\d{1,15})\.json$/;
const MAX_WRITERS = 100;
const MAX_TRIES = 100;

export class StateFiles {
  /** Identifies this process. */
  readonly token = randomHex(6);
  readonly #folder: string;
  readonly #disk: Disk;
  readonly #files: OnceFiles;
  /** The newest state that this process knows: its number and its writers. */
  #number = 0;
  #writers: readonly (readonly [token: string, number: number])[] = [];
  #lastWritten = 0;

  constructor(folder: string, disk: Disk = systemDisk) {
    this.#folder = folder;
    this.#disk = disk;
    this.#files = new OnceFiles(disk, new FolderSyncs(disk), folder);
  }

  /** The newest state, unless it is known. */
  async readNewer(): Promise<Found | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const numbers = await this.#numbers();
      const [newest = 0] = numbers;
      if (newest <= this.#number) return undefined;
      const text = await tryRead(this.#disk, this.#path(newest));
      // A process has written a newer one, and removed this one.
      if (text === undefined) continue;
      // Our changes in this state are not written again, so the state must survive a power cut.
      await this.#disk.syncFolder(this.#folder);
      const found = parse(text) ?? (await this.#readOlder(numbers.slice(1)));
      this.#number = newest;
      this.#writers = found?.writers ?? [];
      const hasOurs = this.#writers.some(([by, number]) => by === this.token && number === this.#lastWritten);
      return { state: found?.state, hasOurs };
    }
    return undefined;
  }

  /**
   * Writes the successor of the state that was read or written last. False if another process was faster, or may have
   * been: `readNewer` then returns the newer state, and whether it includes ours.
   */
  async write(state: StateSnapshot): Promise<boolean> {
    const number = this.#number + 1;
    const others = this.#writers.filter(([by]) => by !== this.token);
    const writers = [...others, [this.token, number] as const].slice(-MAX_WRITERS);
    this.#lastWritten = number;
    if (!(await this.#create(this.#path(number), JSON.stringify({ version: 2, writers, state }))))
      return false;
    const [newest = 0, ...older] = await this.#numbers();
    // The newer file must survive a power cut before ours is removed.
    if (newest !== number) await this.#disk.syncFolder(this.#folder);
    for (const old of older) await tryUnlink(this.#disk, this.#path(old));
    // The newer state includes ours, unless another process had created and removed a file with our number before us.
    if (newest !== number) return false;
    this.#number = number;
    this.#writers = writers;
    return true;
  }

  /** Removes temporary files of crashed processes. */
  async clean(): Promise<void> {
    await clearTemporaries(this.#folder, systemClock.now()).catch(() => {});
  }

  async #create(path: string, text: string): Promise<boolean> {
    try {
      return await this.#files.create(path, text);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      await makeFolderDurably(this.#folder, 0o700);
      return this.#files.create(path, text);
    }
  }

  /** For a newest file that a crash has torn: see `OnceFiles.writeInPlace`. */
  async #readOlder(numbers: readonly number[]): Promise<StateFile | undefined> {
    for (const number of numbers) {
      const found = parse(await tryRead(this.#disk, this.#path(number)));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The newest first. */
  async #numbers(): Promise<number[]> {
    const names = await this.#disk.list(this.#folder).catch((error: unknown) => {
      if (systemCode(error) === "ENOENT") return [];
      throw error;
    });
    return names.flatMap((name) => FILE.exec(name)?.slice(1).map(Number) ?? []).toSorted((a, b) => b - a);
  }

  #path(number: number): string {
    return join(this.#folder, `memory-${number}.json`);
  }
}

function parse(text: string | undefined): StateFile | undefined {
  try {
    return v.parse(FileShape, JSON.parse(text ?? ""));
  } catch {
    return undefined;
  }
}
