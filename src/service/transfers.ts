/** What a transfer consists of: its general information, its files, and what its sender says of their checksums. */
import { Fault } from "../base/faults.ts";
import type { TransferFile, TransferInformation } from "../model/transfer.ts";
import { readAtMost } from "./bodies.ts";
import { type ChecksumReport, parseChecksums } from "./checksums.ts";
import type { Downloads } from "./downloads.ts";
import type { Http } from "./http.ts";
import type { TransferAccess } from "./port.ts";
import { decodeFile, decodeInformation } from "./wire.ts";

/** A row is a name and a checksum; the subject has some room of its own. */
const MOST_CHECKSUM_BYTES = { whole: 256 * 1024, perFile: 4 * 1024 };

export async function fetchInformation(
  http: Http,
  { transferId, password }: TransferAccess,
  signal: AbortSignal,
): Promise<TransferInformation> {
  const what = "the transfer's information";
  return decodeInformation(
    await http.json({ what, path: ["transfers", transferId], password }, signal),
    what,
  );
}

export async function fetchFiles(
  http: Http,
  { transferId, password }: TransferAccess,
  signal: AbortSignal,
): Promise<readonly TransferFile[]> {
  const what = "the list of files";
  const files: TransferFile[] = [];
  await http.entries({ what, path: ["transfers", transferId, "files"], password }, signal, (entry) =>
    files.push(decodeFile(entry, `${what}, entry ${files.length + 1}`)),
  );
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
  const mostBytes = MOST_CHECKSUM_BYTES.whole + files.length * MOST_CHECKSUM_BYTES.perFile;
  const bytes = await readAtMost(download.body, mostBytes);
  if (bytes === undefined) throw new Fault("ANSWER_TOO_LARGE", { detail: "the checksums file" });
  return parseChecksums(bytes, download.contentType, files);
}
