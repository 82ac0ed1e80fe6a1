/** Reserves room on the disk before a download begins, so that parts of transfers never fill the disk. */

import { onDisk } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { statfs } from "../base/files.ts";
import type { Reservation } from "./port.ts";

/** Manifest, sums, marker, record and folders of a delivery. */
const ADDED_FILES = 8;
/** The most that a file takes on the disk beside its bytes. */
const BYTES_PER_FILE = 4096;

interface Need {
  readonly bytes: number;
  readonly files: number;
}

export class Space {
  readonly #path: string;
  readonly #minFreeBytes: () => number;
  #reservedBytes = 0;
  /** Needs that did not fit, by the transfer's key. */
  readonly #lacking = new Map<string, Need>();

  /** `path`: any folder on the disk. `minFreeBytes`: as configured now. */
  constructor(path: string, minFreeBytes: () => number) {
    this.#path = path;
    this.#minFreeBytes = minFreeBytes;
  }

  async reserve(key: string, bytes: number, files: number): Promise<Reservation> {
    const need = wholeNeed(bytes, files);
    const lack = await this.#describeLack(need);
    if (lack !== undefined) {
      this.#lacking.set(key, need);
      throw new Fault("DISK_FULL", { detail: lack });
    }
    this.#lacking.delete(key);
    this.#reservedBytes += need.bytes;
    let left = need.bytes;
    const use = (count: number) => {
      this.#reservedBytes -= Math.min(count, left);
      left -= Math.min(count, left);
    };
    return {
      use,
      release: () => use(left),
      ranShort: () => void this.#lacking.set(key, { bytes: left, files: need.files }),
    };
  }

  async hasRoom(key: string): Promise<boolean> {
    const need = this.#lacking.get(key);
    return need === undefined || (await this.#describeLack(need)) === undefined;
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#path);
    return bavail * bsize;
  }

  forget(key: string): void {
    this.#lacking.delete(key);
  }

  async #describeLack({ bytes, files }: Need): Promise<string | undefined> {
    const { bavail, bsize, files: inodes, ffree } = await onDisk(this.#path, () => statfs(this.#path));
    const free = bavail * bsize;
    const keptBytes = this.#minFreeBytes();
    if (free - this.#reservedBytes - keptBytes < bytes) {
      const reserved =
        this.#reservedBytes === 0 ? "" : `, ${this.#reservedBytes} of them reserved for others`;
      return `${this.#path}: ${bytes} bytes are needed beside the ${keptBytes} that stay free, but only ${free} are free${reserved}`;
    }
    // Some file systems have no fixed number of files and report zero.
    if (inodes > 0 && ffree < files) return `${this.#path}: only ${ffree} more files fit (inodes)`;
    return undefined;
  }
}

function wholeNeed(bytes: number, files: number): Need {
  const all = files + ADDED_FILES;
  return { bytes: bytes + all * BYTES_PER_FILE, files: all };
}
