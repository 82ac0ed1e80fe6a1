/** Room on the disk, promised to transfers before they are begun, so that one disk full of halves never happens. */
import { statfs } from "node:fs/promises";
import { faultOfDisk } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import type { Reservation } from "./port.ts";

/** Manifest, sums, marker, record and folders of a delivery. */
const FILES_BESIDE = 8;
/** A file takes up to so much more than its bytes. */
const BYTES_PER_FILE = 4096;

interface Need {
  readonly bytes: number;
  readonly files: number;
}

export class Space {
  readonly #path: string;
  readonly #minFreeBytes: number;
  #promised = 0;
  /** What those lack for which there was no room, by key. */
  readonly #lacking = new Map<string, Need>();

  /** `path`: any folder on the disk in question. */
  constructor(path: string, minFreeBytes: number) {
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
    this.#promised += need.bytes;
    let left = need.bytes;
    const give = (count: number) => {
      this.#promised -= Math.min(count, left);
      left -= Math.min(count, left);
    };
    return {
      use: give,
      release: () => give(left),
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
    const {
      bavail,
      bsize,
      files: inodes,
      ffree,
    } = await statfs(this.#path).catch((error: unknown) => {
      throw faultOfDisk(error, this.#path);
    });
    const free = bavail * bsize;
    if (free - this.#promised - this.#minFreeBytes < bytes) {
      const promised = this.#promised === 0 ? "" : `, ${this.#promised} of them promised to others`;
      return `${this.#path}: ${bytes} bytes are needed beside the ${this.#minFreeBytes} that stay free, but only ${free} are free${promised}`;
    }
    // Some file systems have no fixed number of files and say zero.
    if (inodes > 0 && ffree < files) return `${this.#path}: only ${ffree} more files fit (inodes)`;
    return undefined;
  }
}

function wholeNeed(bytes: number, files: number): Need {
  const all = files + FILES_BESIDE;
  return { bytes: bytes + all * BYTES_PER_FILE, files: all };
}
