/** Room on the disk, promised to transfers before they are begun, so that one disk full of halves never happens. */
import { statfs } from "node:fs/promises";
import { Fault } from "../base/faults.ts";
import type { Reservation } from "./port.ts";

/** Manifest, sums, marker and folders of a delivery. */
const FILES_BESIDE = 8;

export class Space {
  readonly #path: string;
  readonly #minFreeBytes: number;
  #promised = 0;

  /** `path`: any folder on the disk in question. */
  constructor(path: string, minFreeBytes: number) {
    this.#path = path;
    this.#minFreeBytes = minFreeBytes;
  }

  async reserve(bytes: number, files: number): Promise<Reservation> {
    const { bavail, bsize, files: inodes, ffree } = await statfs(this.#path);
    const free = bavail * bsize - this.#promised - this.#minFreeBytes;
    if (free < bytes) {
      const missing = `${bytes} bytes are needed beside the ${this.#minFreeBytes} that stay free`;
      throw new Fault("DISK_FULL", {
        detail: `${this.#path}: ${missing}, but only ${bavail * bsize} are free`,
      });
    }
    // Some file systems have no fixed number of files and say zero.
    if (inodes > 0 && ffree < files + FILES_BESIDE) {
      throw new Fault("DISK_FULL", { detail: `${this.#path}: only ${ffree} more files fit (inodes)` });
    }
    this.#promised += bytes;
    let left = bytes;
    const give = (count: number) => {
      this.#promised -= Math.min(count, left);
      left -= Math.min(count, left);
    };
    return { use: give, release: () => give(left) };
  }
}
