/** What stands beside the files in a delivered folder: the manifest, and sums that sha256sum can check. */
import type { Receipt, Verified } from "../model/receipt.ts";
import { MESSAGE, type Plan } from "./plan.ts";

const MANIFEST_VERSION = 1;

/** What was received, by id of file; the message's under its name. */
export interface Received {
  readonly digests: ReadonlyMap<string, string>;
  readonly message: string | undefined;
  readonly subject: string | undefined;
}

/** Keys that others rely on. `verified` is `all` only where every file was proven by a checksum of its sender. */
export function formatManifest(receipt: Receipt, plan: Plan, received: Received): string {
  const { mailbox, sender, trackingId, transferId, expires } = receipt;
  const files = plan.files.map(({ id, name, originalName, bytes, checksums }) => ({
    name,
    originalName,
    size: bytes,
    checksum: checksums[0]?.value,
    algorithm: checksums[0]?.algorithm,
    sha256: received.digests.get(id),
    verified: checksums.length > 0,
  }));
  const manifest = {
    version: MANIFEST_VERSION,
    mailbox,
    sender,
    trackingId,
    transferId,
    subject: received.subject,
    received: receipt.at.discovered,
    expires,
    verified: verifiedOf(plan),
    files,
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

export function verifiedOf({ files }: Plan): Verified {
  return files.every(({ checksums }) => checksums.length > 0) ? "all" : "none";
}

/** Names are safe ones, so none needs the escapes of that format. */
export function formatSums(plan: Plan, received: Received): string {
  const lines = plan.files.map(({ id, name }) => `${received.digests.get(id)}  ${name}\n`);
  if (received.message !== undefined) lines.push(`${received.message}  ${MESSAGE}\n`);
  return lines.join("");
}
