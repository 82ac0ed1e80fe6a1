/** Plans the download of a transfer: the name of each file, and whether to fetch single files or one ZIP. */
import type { Inbox } from "../inbox/port.ts";
import type { Checksum } from "../model/checksum.ts";
import type { Handoff, Mailbox } from "../model/mailbox.ts";
import { RESERVED_NAMES } from "../model/manifest.ts";
import type { OpenedTransfer } from "./open.ts";

/** From this many files on, of less than this size on average, one ZIP is faster than single files. */
const ZIP_FROM_FILES = 16;
const ZIP_BELOW_AVERAGE_BYTES = 1024 * 1024;

export interface PlannedFile {
  readonly id: string;
  /** Safe, and unique within the folder. */
  readonly name: string;
  readonly originalName: string;
  readonly bytes: number;
  readonly checksums: readonly Checksum[];
}

/** A planned file that is in the stage. */
export interface ContentFile extends PlannedFile {
  readonly sha256: string;
  /** Every checksum of the sender matches, and there is at least one. */
  readonly isProven: boolean;
}

export interface Plan {
  readonly way: "files" | "zip";
  readonly files: readonly PlannedFile[];
  readonly totalBytes: number;
  /** Room that the download needs on the disk: a ZIP and its files exist at the same time. */
  readonly neededBytes: number;
}

export async function planTransfer(
  transfer: OpenedTransfer,
  mailbox: Mailbox,
  handoff: Handoff,
  inbox: Inbox,
): Promise<Plan> {
  const totalBytes = transfer.files.reduce((sum, file) => sum + file.bytes, 0);
  const announced = Math.max(totalBytes, transfer.totalBytes);
  const { marker, acknowledgement } = handoff;
  const configured = [marker, acknowledgement].filter((name) => name !== undefined);
  const reserved = [...RESERVED_NAMES, ...configured];
  const names = await inbox.safeNames(transfer.files, reserved);
  const way = chooseWay(mailbox, transfer.files.length, totalBytes);
  return {
    way,
    files: transfer.files.map(({ id, name, bytes, checksums }) => ({
      id,
      name: names.get(id) ?? id,
      originalName: name,
      bytes,
      checksums,
    })),
    totalBytes,
    neededBytes: way === "zip" ? announced * 2 : announced,
  };
}

function chooseWay(mailbox: Mailbox, files: number, bytes: number): Plan["way"] {
  if (mailbox.fetch !== "auto") return files === 0 ? "files" : mailbox.fetch;
  return files >= ZIP_FROM_FILES && bytes < files * ZIP_BELOW_AVERAGE_BYTES ? "zip" : "files";
}
