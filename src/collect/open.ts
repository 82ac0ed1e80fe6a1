/** Opens a transfer: proves its password, alone and first, then learns what it consists of. */
import { Fault } from "../base/faults.ts";
import { type Checksum, checksumOf } from "../model/checksum.ts";
import type { Receipt } from "../model/receipt.ts";
import type { TransferFile } from "../model/transfer.ts";
import type { TransferAccess } from "../service/port.ts";
import type { Record } from "./record.ts";
import type { CollectTools, Source } from "./tools.ts";

export interface OpenedTransfer {
  readonly access: TransferAccess;
  readonly totalBytes: number;
  readonly files: readonly OpenedFile[];
  readonly subject: string | undefined;
}

interface OpenedFile extends TransferFile {
  /** Every checksum that the service has for it: from the list, and from the checksums file. */
  readonly checksums: readonly Checksum[];
}

/** `undefined`: no password opens it, and the receipt says so. */
export async function openTransfer(
  tools: CollectTools,
  source: Source,
  record: Record,
  signal: AbortSignal,
): Promise<OpenedTransfer | undefined> {
  const { service, health } = source;
  const { transferId } = record.receipt;
  // An attempt without an answer is spent: while the service is shaky, ask it something harmless first.
  if (health.shaky || record.receipt.unansweredPasswords > 0) await service.apiVersions(signal);
  const proof = await tools.passwords.prove(
    {
      ...requestOf(source, record.receipt, signal),
      save: (receipt) => record.save(receipt),
      send: (password) => service.information({ transferId, password }, signal),
    },
    signal,
  );
  if (proof.kind === "waiting") {
    const { message, noAttemptsLeft } = proof;
    await record.enter("waiting", { reason: "password", message, noAttemptsLeft });
    return undefined;
  }
  const access = { transferId, password: proof.password };
  const files = await service.files(access, signal);
  const { totalBytes, algorithm } = proof.value;
  // Whoever vouches for it has decided that its checksums do not count.
  if (record.receipt.released) {
    return {
      access,
      totalBytes,
      subject: undefined,
      files: files.map((file) => ({ ...file, checksums: [] })),
    };
  }
  const { subject, checksums } = await readChecksums(source, access, files, signal);
  return {
    access,
    totalBytes,
    subject,
    files: files.map((file) => ({
      ...file,
      checksums: [
        ...(file.checksum === undefined ? [] : [checksumOf(file.checksum, algorithm)]),
        ...(checksums.get(file.id) ?? []),
      ],
    })),
  };
}

/** Whether it waits for a password, and would only go on waiting: then not even its receipt is to be touched. */
export async function waitsIdly(
  { passwords }: CollectTools,
  source: Source,
  receipt: Receipt,
  signal: AbortSignal,
): Promise<boolean> {
  if (receipt.state !== "waiting" || receipt.reason !== "password") return false;
  // What goes wrong here goes wrong again where it is dealt with.
  return passwords.isIdle(requestOf(source, receipt, signal), signal).catch(() => false);
}

function requestOf({ mailbox, linkOf }: Source, receipt: Receipt, signal: AbortSignal) {
  const { trackingId, sender, passwordInLink } = receipt;
  const link = async () => (passwordInLink ? linkOf(trackingId, signal) : undefined);
  return { mailbox, query: { trackingId, sender, link }, receipt };
}

/** A service without a checksums file is judged by its list alone; one that names other files is not trusted. */
async function readChecksums(
  { service }: Source,
  access: TransferAccess,
  files: readonly TransferFile[],
  signal: AbortSignal,
): Promise<{ subject: string | undefined; checksums: Map<string, Checksum[]> }> {
  try {
    const report = await service.checksums(access, files, signal);
    if (report.unlisted.length > 0) {
      const names = report.unlisted.slice(0, 3).map((row) => JSON.stringify(row.name.slice(0, 80)));
      throw new Fault("CHECKSUMS_INCOMPLETE", { detail: `not in the list of files: ${names.join(", ")}` });
    }
    const checksums = [...report.byFileId].map(
      ([id, row]) => [id, row.checksum === undefined ? [] : [row.checksum]] as [string, Checksum[]],
    );
    return { subject: report.subject, checksums: new Map(checksums) };
  } catch (error) {
    const absent = ["NOT_FOUND", "NO_SUCH_ENDPOINT", "NOT_SUPPORTED"];
    if (!(error instanceof Fault && absent.includes(error.code))) throw error;
    return { subject: undefined, checksums: new Map() };
  }
}
