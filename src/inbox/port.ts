/** The inbox: names and folders for deliveries, room on its disk, and the removal of delivered folders. */

import type { Placement } from "../model/placement.ts";

/** The values of a layout's placeholders. */
export interface LayoutValues {
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly transferId: string;
  readonly subject: string;
  /** When the transfer was discovered. The day is that of UTC. */
  readonly discovered: Date;
}

/** Room that is reserved for one transfer. */
export interface Reservation {
  /** This many more bytes of the transfer are on the disk. */
  use(bytes: number): void;
  release(): void;
  /** The disk was full despite the reservation: `hasRoom` is false until the rest of it fits. */
  ranShort(): void;
}

export interface Inbox {
  /** An absolute path. */
  readonly root: string;
  /** A name for each file, by id: safe on every file system, unique, and not reserved. */
  safeNames(
    files: readonly { readonly id: string; readonly name: string }[],
    reserved: readonly string[],
  ): Promise<ReadonlyMap<string, string>>;
  /** A path from the inbox's root. */
  formatLayout(layout: string, values: LayoutValues): string;
  /** A name from a pattern such as `{trackingId}_{name}`. `safeNames` makes it safe. */
  formatName(pattern: string, values: LayoutValues, name: string): string;
  /** A name of at most this many bytes: a longer one is cut, and gets a mark. */
  shortened(name: string, maxBytes: number): string;
  /** `report.pdf`, then `report-2.pdf`, `report-3.pdf` … */
  numberedName(name: string, number: number): string;
  /** Reserves room for a transfer beside the room that is reserved for others. Throws `DISK_FULL`. */
  reserve(key: string, bytes: number, files: number): Promise<Reservation>;
  /** Whether a transfer for which `reserve` failed would fit now. True for any other transfer. */
  hasRoom(key: string): Promise<boolean>;
  /** On the inbox's disk, now. */
  freeBytes(): Promise<number>;
  /** Whether the inbox is still the folder that was opened: an unmounted disk leaves an empty one. */
  isHere(): Promise<boolean>;
  /**
   * Removes a delivered folder, in one step for readers, or delivered files. Missing ones count as removed. `foreign`: the folder is
   * another one now, or holds a folder that Inlet did not make; it is left alone. May be called twice. Throws
   * `DISK_REFUSED`.
   */
  removeDelivered(delivery: {
    /** The id in its manifest. */
    readonly id: string;
    readonly folder: string;
    /** Identifies its parts, if it has one: its manifest may be elsewhere. */
    readonly placement?: Placement | undefined;
  }): Promise<"removed" | "foreign">;
  /** Finishes removals that a crash cut short. `onFailed` gets the error of each folder that cannot be removed. */
  clearAsides(onFailed: (error: unknown) => void): Promise<void>;
  /** This transfer needs no room from now on. */
  forget(key: string): void;
}
