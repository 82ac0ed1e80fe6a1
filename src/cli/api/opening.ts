/** What a transfer holds, and what is to be expected of each of its files. */
import { Fault } from "../../base/faults.ts";
import { type Checksum, checksumOf } from "../../model/checksum.ts";
import type { TransferFile } from "../../model/transfer.ts";
import type { ChecksumReport } from "../../service/checksums.ts";
import type { ServicePort, TransferAccess } from "../../service/port.ts";
import type { Context } from "../context.ts";
import { say } from "../printing.ts";

export interface OpenedTransfer {
  readonly files: readonly TransferFile[];
  /** Every checksum that the service has for a file, from the list and from the checksums file. */
  checksumsOf(file: TransferFile): readonly Checksum[];
}

/** One request after the other, so that a wrong password is sent once. */
export async function openTransfer(
  context: Context,
  service: ServicePort,
  access: TransferAccess,
): Promise<OpenedTransfer> {
  const { algorithm } = await service.information(access, context.stop);
  const files = await service.files(access, context.stop);
  const csv = await checksumsOrNone(context, service, access, files);
  return {
    files,
    checksumsOf(file) {
      const listed = file.checksum === undefined ? undefined : checksumOf(file.checksum, algorithm);
      return [listed, csv?.byFileId.get(file.id)?.checksum].filter((checksum) => checksum !== undefined);
    },
  };
}

/** A service without the checksums file still has its file list to verify by. */
async function checksumsOrNone(
  context: Context,
  service: ServicePort,
  access: TransferAccess,
  files: readonly TransferFile[],
): Promise<ChecksumReport | undefined> {
  try {
    return await service.checksums(access, files, context.stop);
  } catch (error) {
    const absent = ["NOT_FOUND", "NO_SUCH_ENDPOINT", "NOT_SUPPORTED"];
    if (!(error instanceof Fault && absent.includes(error.code))) throw error;
    say(context, "The service has no checksums file for this transfer.");
    return undefined;
  }
}
