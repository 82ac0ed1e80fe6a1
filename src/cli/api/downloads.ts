/** `api zip` and `api eml`: a transfer as one file. */
import type { FileHandle } from "node:fs/promises";
import { type Command, Option } from "commander";
import { verifyZip } from "../../collect/unpack.ts";
import type { TransferFile } from "../../model/transfer.ts";
import type { IdListForm } from "../../service/port.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { megabytes } from "../numbers.ts";
import { type OpenedTransfer, openTransfer } from "./opening.ts";
import { algorithmsOf, ownName, reportSaved, saveDownload } from "./saving.ts";
import { type ApiOptions, accessTo, type PasswordOptions, withService } from "./session.ts";
import { addAccess } from "./transfers.ts";

interface DownloadOptions extends ApiOptions, PasswordOptions {
  readonly output?: string;
}

interface ZipCommandOptions extends DownloadOptions {
  readonly includeChecksumFile?: boolean;
  readonly only?: readonly string[];
  readonly except?: readonly string[];
  readonly idList?: IdListForm;
}

/** Room in a ZIP for headers and names, beyond its files. */
const ZIP_OVERHEAD = { perFile: 4096, whole: 16 * 1024 * 1024 };

export function addDownloads(api: Command, run: Run): void {
  const zip = addAccess(api.command("zip").description("download the files of a transfer as one ZIP"))
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.zip)")
    .option("--include-checksum-file", "have the service add a list of checksums to the ZIP")
    .addOption(new Option("--only <ids...>", "only the files with these ids").conflicts("except"))
    .option("--except <ids...>", "all files but those with these ids")
    .addOption(
      new Option(
        "--id-list <form>",
        "how several ids are sent (default: as service.fileIdList says)",
      ).choices(["repeat", "comma"] satisfies IdListForm[]),
    );
  zip.action((transferId: string) => run((context) => getZip(context, transferId, zip.optsWithGlobals())));
  const eml = addAccess(
    api.command("eml").description("download the confidential message with its attachments"),
  )
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.eml)")
    .option("--threshold <megabytes>", "largest size of the EML; what does not fit is left out", megabytes);
  eml.action((transferId: string) => run((context) => getEml(context, transferId, eml.optsWithGlobals())));
}

function getZip(context: Context, transferId: string, options: ZipCommandOptions): Promise<Outcome> {
  const target = options.output ?? ownName(`${transferId}.zip`);
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    const transfer = await openTransfer(context, service, access);
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
  });
}

function getEml(
  context: Context,
  transferId: string,
  options: DownloadOptions & { readonly threshold?: number },
): Promise<Outcome> {
  const target = options.output ?? ownName(`${transferId}.eml`);
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    const query = options.threshold === undefined ? {} : { thresholdMegabytes: options.threshold };
    const download = await service.openEml(access, query, context.stop);
    reportSaved(context, options, [await saveDownload(context, download, target, { checksums: [] })]);
    return "fine";
  });
}

/** Every file once, with its size and checksums; and, where it was asked for, the service's own list of checksums. */
function verify(
  zip: FileHandle,
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
