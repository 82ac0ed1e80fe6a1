/** The inbox and what belongs to it: names, places and room for what is to be delivered. */

/** What the placeholders of a layout stand for. */
export interface LayoutValues {
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly transferId: string;
  readonly subject: string;
  /** When the transfer was discovered; its day counts in UTC. */
  readonly discovered: Date;
}

/** Room that was promised to one transfer. */
export interface Reservation {
  /** So much of it is on the disk now. */
  use(bytes: number): void;
  release(): void;
  /** The disk was full all the same: `hasRoom` says when what is left of it fits. */
  ranShort(): void;
}

export interface Inbox {
  /** An absolute path. */
  readonly root: string;
  /** A name for each file, by id: safe everywhere, never two the same, never one of the reserved. */
  safeNames(
    files: readonly { readonly id: string; readonly name: string }[],
    reserved: readonly string[],
  ): Promise<ReadonlyMap<string, string>>;
  /** A path from the inbox's root. */
  formatLayout(layout: string, values: LayoutValues): string;
  /** Promises a transfer room for so many bytes and files beside what others were promised. Throws `DISK_FULL`. */
  reserve(key: string, bytes: number, files: number): Promise<Reservation>;
  /** Whether there is room now for one that had none; true for one that never lacked any. */
  hasRoom(key: string): Promise<boolean>;
  /** On the inbox's disk, now. */
  freeBytes(): Promise<number>;
  /** Whether this is still the folder that was there at the start: a disk that is not mounted has nothing in it. */
  isHere(): Promise<boolean>;
  /**
   * Takes a delivered folder away, in one piece for whoever looks; also where it is gone. `foreign`: what stands there is
   * not that delivery any more, or somebody has made a folder in it, and it is left alone. May be called twice. Throws
   * `DISK_REFUSED`.
   */
  removeDelivered(delivery: {
    /** As its manifest says. */
    readonly id: string;
    readonly folder: string;
  }): Promise<"removed" | "foreign">;
  /** Clears what a crash left of folders that were being removed. `onFailed` gets each that cannot be cleared. */
  clearAsides(onFailed: (error: unknown) => void): Promise<void>;
  /** This transfer needs no room any more. */
  forget(key: string): void;
}
