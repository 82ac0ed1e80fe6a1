/** What stands beside the files in a delivered folder: the manifest, and sums that sha256sum can check. */
import { deliveryId } from "../model/handoff.ts";
import type { TransferRecord } from "../model/record.ts";
import { type Contents, verifiedOf } from "./contents.ts";
import { MESSAGE } from "./plan.ts";

/** The confidential message as it is in the folder. */
export interface MessageFile {
  readonly name: typeof MESSAGE;
  readonly size: number;
  readonly sha256: string;
}

const MANIFEST_VERSION = 2;

/**
 * Keys that others rely on. `verified` is `all` only where every file matches a checksum of its sender. `name`: the
 * ledger's, of the transfer.
 */
export function formatManifest(
  record: TransferRecord,
  name: string,
  contents: Contents,
  messageFile: MessageFile | undefined,
): string {
  const { mailbox, sender, trackingId, transferId, expires, round, released } = record;
  const files = contents.files.map(
    ({ name: safeName, originalName, bytes, checksums, sha256, isProven }) => ({
      name: safeName,
      originalName,
      size: bytes,
      checksum: checksums[0]?.value,
      algorithm: checksums[0]?.algorithm,
      sha256,
      verified: isProven,
    }),
  );
  const manifest = {
    version: MANIFEST_VERSION,
    deliveryId: deliveryId(name, round),
    mailbox,
    sender,
    trackingId,
    transferId,
    subject: contents.subject,
    received: record.at.discovered,
    expires,
    verified: verifiedOf(contents),
    released,
    message: contents.message !== undefined ? "present" : contents.isMessageRefused ? "refused" : "none",
    messageFile,
    files,
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** Names are safe ones, so none needs the escapes of that format. */
export function formatSums({ files, message }: Contents): string {
  const lines = files.map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  if (message !== undefined) lines.push(`${message}  ${MESSAGE}\n`);
  return lines.join("");
}
