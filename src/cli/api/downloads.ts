/** `api get`, `zip` and `eml`: the files of a transfer, each verified before it gets its name. */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Option } from "commander";
import { exists } from "../../base/durable.ts";
import { describeFault, Fault } from "../../base/faults.ts";
import { lookAt } from "../../base/files.ts";
import { type Checksum, checksumOf, startVerification } from "../../model/checksum.ts";
import type { TransferFile } from "../../model/transfer.ts";
import type { ChecksumReport } from "../../service/checksums.ts";
import type { IdListForm, TransferAccess, ZipOptions } from "../../service/port.ts";
import { verifyZip } from "../../transfer/unpack.ts";
import { invalid, type Outcome } from "../command.ts";
import { megabytes } from "../options.ts";
import { say } from "../printing.ts";
import type { Call, Operations } from "./operation.ts";
import { algorithmsOf, ownName, SAVED_COLUMNS, type Saved, saveDownload } from "./saving.ts";

type Output = { readonly output?: string };

/** A file with all its checksums, from the file list and the checksums file. */
type OpenedFile = TransferFile & { readonly checksums: readonly Checksum[] };

/** Room in a ZIP for headers and names, beyond its files. */
const ZIP_OVERHEAD = { perFile: 4096, whole: 16 * 1024 * 1024 };

export function addDownloads(api: Operations): void {
  api
    .addForTransfer("get", "download one file of a transfer, or all of them", getFiles)
    .argument("[file]", "the file's id or name (default: every file)")
    .option(
      "-o, --output <path>",
      "a file name for one file, or a folder (default: its own name, in the current folder)",
    );
  api
    .addForTransfer("zip", "download the files of a transfer as one ZIP", getZip)
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
  api
    .addForTransfer("eml", "download the confidential message with its attachments", getEml)
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.eml)")
    .option(
      "--threshold <megabytes>",
      "the largest size of the EML; larger attachments are left out",
      megabytes,
    );
}

async function getFiles(call: Call<Output>, access: TransferAccess, wanted?: string): Promise<Outcome> {
  const { context, options } = call;
  const files = choose(await openTransfer(call, access), wanted);
  const targetOf = await chooseTargets(options.output, files.length);
  const saved: Saved[] = [];
  let failures = 0;
  try {
    for (const file of files) {
      try {
        saved.push(await getFile(call, access, file, targetOf(file)));
      } catch (error) {
        // A fault of one file does not stop the others.
        if (!(error instanceof Fault && files.length > 1 && concernsFile(error))) throw error;
        say(context, `inlet: ${describeFault(error)}`);
        failures++;
      }
    }
  } finally {
    if (saved.length > 0 || failures > 0) call.print(SAVED_COLUMNS, saved);
  }
  if (files.length === 0) say(context, "The transfer has no files.");
  return failures === 0 ? "fine" : "attention";
}

async function getFile(
  { context, service, stop }: Call,
  access: TransferAccess,
  file: OpenedFile,
  target: string,
): Promise<Saved> {
  const { bytes, checksums } = file;
  if (!(await exists(target))) {
    const download = await service.openFile(access, file, { maxBytes: bytes }, stop);
    return saveDownload(context, download, target, file);
  }
  if (!(await isSaved(target, file))) throw new Fault("TARGET_EXISTS", { detail: target });
  return { path: target, bytes, verifiedBy: algorithmsOf(checksums), already: true };
}

/** Whether an earlier call saved the file. */
async function isSaved(path: string, { bytes, checksums }: OpenedFile): Promise<boolean> {
  const verification = startVerification(checksums);
  try {
    await using file = await open(path, "r");
    if (checksums.length === 0 || (await file.stat()).size !== bytes) return false;
    for await (const chunk of file.createReadStream({ autoClose: false })) verification.update(chunk);
    verification.finish(path);
    return true;
  } catch {
    // It has other content, or cannot be read.
    return false;
  }
}

function choose(files: readonly OpenedFile[], wanted: string | undefined): readonly OpenedFile[] {
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

async function getZip(
  call: Call<Output & ZipOptions & { readonly idList?: IdListForm }>,
  access: TransferAccess,
): Promise<Outcome> {
  const { context, options, service, stop } = call;
  const { only, except = [], idList, includeChecksumFile: allowExtra = false } = options;
  const target = options.output ?? ownName(`${access.transferId}.zip`);
  const all = await openTransfer(call, access);
  const files = all.filter(({ id }) => (only?.includes(id) ?? true) && !except.includes(id));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const maxBytes = bytes + files.length * ZIP_OVERHEAD.perFile + ZIP_OVERHEAD.whole;
  const form = idList === undefined ? {} : { idListForm: idList };
  const download = await service.openZip(access, { ...options, ...form, maxBytes }, stop);
  const wanted = files.map((file) => ({ ...file, originalName: file.name }));
  const limits = { maxEntries: files.length + (allowExtra ? 1 : 0), allowExtra };
  // Every file once, with its size and checksums. The service's list of checksums may be there too.
  const saved = await saveDownload(context, download, target, undefined, (temporary) =>
    verifyZip(temporary, wanted, limits, stop),
  );
  const isProven = files.every(({ checksums }) => checksums.length > 0);
  const verifiedBy = isProven ? algorithmsOf(files.flatMap(({ checksums }) => checksums)) : [];
  return call.print(SAVED_COLUMNS, [{ ...saved, verifiedBy }]);
}

async function getEml(
  { context, options, service, stop, print }: Call<Output & { readonly threshold?: number }>,
  access: TransferAccess,
): Promise<Outcome> {
  const target = options.output ?? ownName(`${access.transferId}.eml`);
  const query = options.threshold === undefined ? {} : { thresholdMegabytes: options.threshold };
  const download = await service.openEml(access, query, stop);
  return print(SAVED_COLUMNS, [await saveDownload(context, download, target)]);
}

/** Sends one request at a time, so that a wrong password is sent once. */
async function openTransfer(call: Call, access: TransferAccess): Promise<OpenedFile[]> {
  const { service, stop } = call;
  const { algorithm } = await service.information(access, stop);
  const files = await service.files(access, stop);
  const csv = await checksumsOrNone(call, access, files);
  return files.map((file) => {
    const listed = file.checksum === undefined ? undefined : checksumOf(file.checksum, algorithm);
    const both = [listed, csv?.byFileId.get(file.id)?.checksum];
    return { ...file, checksums: both.filter((checksum) => checksum !== undefined) };
  });
}

/** Without a checksums file, the checksums of the file list remain. */
async function checksumsOrNone(
  { context, service, stop }: Call,
  access: TransferAccess,
  files: readonly TransferFile[],
): Promise<ChecksumReport | undefined> {
  try {
    return await service.checksums(access, files, stop);
  } catch (error) {
    const absent = ["NOT_FOUND", "NO_SUCH_ENDPOINT", "NOT_SUPPORTED"];
    if (!(error instanceof Fault && absent.includes(error.code))) throw error;
    say(context, "The service has no checksums file for this transfer.");
    return undefined;
  }
}
