/**
 * The inboxes: their folders, the room on their disk, and the removal of delivered folders.
 *
 * Mailboxes may have inboxes of their own beside the common one. All of them are on the file system of the work folder,
 * because a delivery is one rename.
 */

import type { Placement } from "../model/placement.ts";

/** Room that is reserved for one transfer. */
interface Reservation {
  /** This many more bytes of the transfer are on the disk. */
  use(bytes: number): void;
  release(): void;
  /** The disk was full despite the reservation: `hasRoom` is false until the rest of it fits. */
  ranShort(): void;
}

/** An inbox that deliveries may go to. */
export interface NewInbox {
  readonly path: string;
  /** Of the folder, if it has to be created. */
  readonly mode: number;
}

/** The room on the disk of the inboxes. */
export interface Room {
  /** Reserves room for a transfer beside the room that is reserved for others. Throws `DISK_FULL`. */
  reserve(key: string, bytes: number, files: number): Promise<Reservation>;
  /** Whether a transfer for which `reserve` failed would fit now. True for any other transfer. */
  hasRoom(key: string): Promise<boolean>;
  /** Now. */
  freeBytes(): Promise<number>;
  /** This transfer needs no room from now on. */
  forget(key: string): void;
}

export interface Inbox extends Room {
  /** The common inbox: an absolute path. */
  readonly root: string;
  /**
   * Creates each folder that is missing, and proves that the work folder's content can be renamed into it. Called before a
   * delivery to it begins. Throws `INBOX_APART`, and the faults of the disk.
   */
  prepare(inboxes: readonly NewInbox[]): Promise<void>;
  /** Proves that Inlet may give files to these groups. Throws `GROUP_REFUSED`. */
  demandGroups(gids: readonly number[]): Promise<void>;
  /**
   * Whether an inbox, by default the common one, is still the folder that was opened or first seen: an unmounted disk
   * leaves an empty one.
   */
  isHere(inbox?: string): Promise<boolean>;
  /**
   * Removes a delivered folder, in one step for readers, or delivered files. Missing ones count as removed. `foreign`: the folder is
   * another one now, or holds a folder that Inlet did not make; it is left alone. May be called twice. Throws
   * `DISK_REFUSED`.
   */
  removeDelivered(delivery: {
    /** The id in its manifest. */
    readonly id: string;
    readonly folder: string;
    /** Missing: the common inbox. */
    readonly inbox?: string | undefined;
    /** Identifies its parts, if it has one: its manifest may be elsewhere. */
    readonly placement?: Placement | undefined;
  }): Promise<"removed" | "foreign">;
  /** Finishes removals that a crash cut short. `onFailed` gets the error of each folder that cannot be removed. */
  clearAsides(onFailed: (error: unknown) => void): Promise<void>;
}
