/** What a transfer consists of: its general information, its files, and what its sender says of their checksums. */
import { Fault } from "../base/faults.ts";
import type { TransferFile, TransferInformation } from "../model/transfer.ts";
import { readAtMost } from "./bodies.ts";
import { type ChecksumReport, parseChecksums } from "./checksums.ts";
import type { Downloads } from "./downloads.ts";
import type { Http } from "./http.ts";
import type { TransferAccess } from "./port.ts";
import { decodeFile, decodeInformation } from "./wire.ts";

/** A row is a name and a checksum, in UTF-16 at worst; the subject has some room of its own. */
const CHECKSUM_BYTES = { most: 8 * 1024 * 1024, subject: 256 * 1024, row: 256, perCharacter: 3 };

export async function fetchInformation(
  http: Http,
  { transferId, password }: TransferAccess,
  signal: AbortSignal,
): Promise<TransferInformation> {
  const what = "the transfer's information";
  return decodeInformation(
    await http.json({ what, path: ["transfers", transferId], password, isAttempt: true }, signal),
    what,
  );
}

export async function fetchFiles(
  http: Http,
  { transferId, password }: TransferAccess,
  signal: AbortSignal,
  onCount: (count: number) => void = () => {},
): Promise<readonly TransferFile[]> {
  const what = "the list of files";
  const files: TransferFile[] = [];
  await http.entries({ what, path: ["transfers", transferId, "files"], password }, signal, (entry) => {
    files.push(decodeFile(entry, `${what}, entry ${files.length + 1}`));
    onCount(files.length);
  });
  if (new Set(files.map((file) => file.id)).size < files.length) {
    throw new Fault("BAD_ANSWER", { detail: `${what}: two files have the same id` });
  }
  return files;
}

export async function fetchChecksums(
  downloads: Downloads,
  access: TransferAccess,
  files: readonly TransferFile[],
  signal: AbortSignal,
): Promise<ChecksumReport> {
  const download = await downloads.openChecksums(access, signal);
  const { most, subject, row, perCharacter } = CHECKSUM_BYTES;
  const rows = files.reduce((sum, { name }) => sum + row + name.length * perCharacter, 0);
  const mostBytes = Math.min(most, subject + rows);
  const bytes = await readAtMost(download.body, mostBytes);
  if (bytes === undefined) {
    const detail = `more than ${mostBytes} bytes for ${files.length} files`;
    throw new Fault("CHECKSUMS_UNREADABLE", { detail });
  }
  return parseChecksums(bytes, download.contentType, files);
}
