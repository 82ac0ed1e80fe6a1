/** `api get`, `zip` and `eml`: the files of a transfer, each verified before it gets its name. */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { exists } from "../../base/durable.ts";
import { describeFault, Fault } from "../../base/faults.ts";
import { lookAt, type OpenFile } from "../../base/files.ts";
import { type Checksum, checksumOf, startVerification } from "../../model/checksum.ts";
import type { TransferFile } from "../../model/transfer.ts";
import type { ChecksumReport } from "../../service/checksums.ts";
import type { IdListForm, TransferAccess } from "../../service/port.ts";
import { verifyZip } from "../../transfer/unpack.ts";
import type { Run } from "../context.ts";
import type { Outcome } from "../exit-codes.ts";
import { invalid, megabytes } from "../options.ts";
import { say } from "../printing.ts";
import { addTransferOperation, type Call } from "./operation.ts";
import { algorithmsOf, type Expectation, ownName, reportSaved, type Saved, saveDownload } from "./saving.ts";

interface DownloadOptions {
  readonly output?: string;
}

interface ZipOptions extends DownloadOptions {
  readonly includeChecksumFile?: boolean;
  readonly only?: readonly string[];
  readonly except?: readonly string[];
  readonly idList?: IdListForm;
}

/** Room in a ZIP for headers and names, beyond its files. */
const ZIP_OVERHEAD = { perFile: 4096, whole: 16 * 1024 * 1024 };

export function addDownloads(api: Command, run: Run): void {
  addTransferOperation(api, run, "get", "download one file of a transfer, or all of them", getFiles)
    .argument("[file]", "the file's id or name (default: every file)")
    .option(
      "-o, --output <path>",
      "a file name for one file, or a folder (default: its own name, in the current folder)",
    );
  addTransferOperation(api, run, "zip", "download the files of a transfer as one ZIP", getZip)
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.zip)")
    .option("--include-checksum-file", "let the service add a list of checksums to the ZIP")
    .addOption(new Option("--only <ids...>", "only the files with these ids").conflicts("except"))
    .option("--except <ids...>", "all files except those with these ids")
    .addOption(
      new Option("--id-list <form>", "how to send several ids (default: service.fileIdList)").choices([
        "repeat",
        "comma",
      ] satisfies IdListForm[]),
    );
  addTransferOperation(api, run, "eml", "download the confidential message with its attachments", getEml)
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.eml)")
    .option(
      "--threshold <megabytes>",
      "the largest size of the EML; larger attachments are left out",
      megabytes,
    );
}

async function getFiles(
  call: Call<DownloadOptions>,
  access: TransferAccess,
  wanted?: string,
): Promise<Outcome> {
  const { context, options } = call;
  const transfer = await openTransfer(call, access);
  const files = choose(transfer.files, wanted);
  const targetOf = await chooseTargets(options.output, files.length);
  const saved: Saved[] = [];
  let failures = 0;
  try {
    for (const file of files) {
      try {
        saved.push(await getFile(call, access, transfer, file, targetOf(file)));
      } catch (error) {
        // A fault of one file does not stop the others.
        if (!(error instanceof Fault && files.length > 1 && concernsFile(error))) throw error;
        say(context, `inlet: ${describeFault(error)}`);
        failures++;
      }
    }
  } finally {
    if (saved.length > 0 || failures > 0) reportSaved(context, options, saved);
  }
  if (files.length === 0) say(context, "The transfer has no files.");
  return failures === 0 ? "fine" : "attention";
}

async function getFile(
  { context, service }: Call<unknown>,
  access: TransferAccess,
  transfer: OpenedTransfer,
  file: TransferFile,
  target: string,
): Promise<Saved> {
  const expected = { bytes: file.bytes, checksums: transfer.checksumsOf(file) };
  if (await exists(target)) return recognise(target, expected);
  const download = await service.openFile(access, file, { maxBytes: file.bytes }, context.stop);
  return saveDownload(context, download, target, expected);
}

/** A file that an earlier call saved is not downloaded again. Throws `TARGET_EXISTS` for any other file. */
async function recognise(path: string, expected: Required<Expectation>): Promise<Saved> {
  const conflict = new Fault("TARGET_EXISTS", { detail: path });
  const { bytes, checksums } = expected;
  const verification = startVerification(checksums);
  // A file that cannot be read is not one that an earlier call saved.
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) throw conflict;
  try {
    if (checksums.length === 0 || (await file.stat()).size !== bytes) throw conflict;
    for await (const chunk of file.createReadStream({ autoClose: false })) verification.update(chunk);
    verification.finish(path);
  } catch {
    throw conflict;
  } finally {
    await file.close();
  }
  return { path, bytes, verifiedBy: algorithmsOf(checksums), already: true };
}

function choose(files: readonly TransferFile[], wanted: string | undefined): readonly TransferFile[] {
  if (wanted === undefined) return files;
  const byId = files.filter((file) => file.id === wanted);
  const found = byId.length > 0 ? byId : files.filter((file) => file.name === wanted);
  if (found.length === 1) return found;
  const detail =
    found.length === 0 ? "no file has this id or name" : "several files have this name: use an id";
  throw invalid(`${JSON.stringify(wanted)}: ${detail}`);
}

async function chooseTargets(
  output: string | undefined,
  count: number,
): Promise<(file: TransferFile) => string> {
  if (output === undefined) return (file) => ownName(file.name);
  const isFolder = (await lookAt(output))?.isDirectory() === true;
  if (isFolder) return (file) => join(output, ownName(file.name));
  if (count > 1) {
    const detail = `there are ${count} files, so --output must be an existing folder, and ${output} is not`;
    throw invalid(detail);
  }
  return () => output;
}

function concernsFile(fault: Fault): boolean {
  return fault.verdict === "quarantine" || fault.code === "TARGET_EXISTS" || fault.code === "NAME_UNUSABLE";
}

async function getZip(call: Call<ZipOptions>, access: TransferAccess): Promise<Outcome> {
  const { context, options, service } = call;
  const target = options.output ?? ownName(`${access.transferId}.zip`);
  const transfer = await openTransfer(call, access);
  const files = transfer.files.filter(
    (file) => (options.only?.includes(file.id) ?? true) && !options.except?.includes(file.id),
  );
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const maxBytes = bytes + files.length * ZIP_OVERHEAD.perFile + ZIP_OVERHEAD.whole;
  const { includeChecksumFile, only, except, idList } = options;
  const download = await service.openZip(
    access,
    {
      maxBytes,
      ...(includeChecksumFile === undefined ? {} : { includeChecksumFile }),
      ...(only === undefined ? {} : { only }),
      ...(except === undefined ? {} : { except }),
      ...(idList === undefined ? {} : { idListForm: idList }),
    },
    context.stop,
  );
  const saved = await saveDownload(context, download, target, { checksums: [] }, (temporary) =>
    verify(temporary, files, transfer, includeChecksumFile === true, context.stop),
  );
  const proven = files.every((file) => transfer.checksumsOf(file).length > 0);
  const verifiedBy = proven ? algorithmsOf(files.flatMap(transfer.checksumsOf)) : [];
  reportSaved(context, options, [{ ...saved, verifiedBy }]);
  return "fine";
}

async function getEml(
  { context, options, service }: Call<DownloadOptions & { readonly threshold?: number }>,
  access: TransferAccess,
): Promise<Outcome> {
  const target = options.output ?? ownName(`${access.transferId}.eml`);
  const query = options.threshold === undefined ? {} : { thresholdMegabytes: options.threshold };
  const download = await service.openEml(access, query, context.stop);
  reportSaved(context, options, [await saveDownload(context, download, target, { checksums: [] })]);
  return "fine";
}

/** Requires every file once, with its size and checksums. `allowExtra`: the service's list of checksums may be there too. */
function verify(
  zip: OpenFile,
  files: readonly TransferFile[],
  { checksumsOf }: OpenedTransfer,
  allowExtra: boolean,
  stop: AbortSignal,
): Promise<void> {
  const wanted = files.map((file) => ({
    originalName: file.name,
    bytes: file.bytes,
    checksums: checksumsOf(file),
  }));
  return verifyZip(zip, wanted, { maxEntries: files.length + (allowExtra ? 1 : 0), allowExtra }, stop);
}

interface OpenedTransfer {
  readonly files: readonly TransferFile[];
  /** All checksums of a file, from the file list and the checksums file. */
  checksumsOf(file: TransferFile): readonly Checksum[];
}

/** Sends one request at a time, so that a wrong password is sent once. */
async function openTransfer(call: Call<unknown>, access: TransferAccess): Promise<OpenedTransfer> {
  const { context, service } = call;
  const { algorithm } = await service.information(access, context.stop);
  const files = await service.files(access, context.stop);
  const csv = await checksumsOrNone(call, access, files);
  return {
    files,
    checksumsOf(file) {
      const listed = file.checksum === undefined ? undefined : checksumOf(file.checksum, algorithm);
      return [listed, csv?.byFileId.get(file.id)?.checksum].filter((checksum) => checksum !== undefined);
    },
  };
}

/** Without a checksums file, the checksums of the file list remain. */
async function checksumsOrNone(
  { context, service }: Call<unknown>,
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
