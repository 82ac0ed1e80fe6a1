/** `api get`, `api zip` and `api eml`: a transfer's contents as files, verified as far as the service allows. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { Fault } from "../../base/faults.ts";
import type { TransferFile } from "../../model/transfer.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { printRows, say } from "../printing.ts";
import { openTransfer } from "./opening.ts";
import { ownName, type Saved, saveDownload } from "./saving.ts";
import { type ApiOptions, accessTo, type PasswordOptions, withService } from "./session.ts";
import { addAccess } from "./transfers.ts";
import { verifyZip } from "./verify-zip.ts";

interface DownloadOptions extends ApiOptions, PasswordOptions {
  readonly output?: string;
}

interface ZipCommandOptions extends DownloadOptions {
  readonly includeChecksumFile?: boolean;
  readonly only?: readonly string[];
  readonly except?: readonly string[];
}

/** Room in a ZIP for headers and names, beyond its files. */
const ZIP_OVERHEAD = { perFile: 4096, whole: 16 * 1024 * 1024 };

export function addDownloads(api: Command, run: Run): void {
  const get = addAccess(api.command("get").description("download one file of a transfer, or all of them"))
    .argument("[file]", "its id or its name (default: every file)")
    .option("-o, --output <file>", "where to save it (default: its own name, in this folder)");
  get.action((transferId: string, file: string | undefined) =>
    run((context) => getFiles(context, transferId, file, get.optsWithGlobals())),
  );
  const zip = addAccess(api.command("zip").description("download the files of a transfer as one ZIP"))
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.zip)")
    .option("--include-checksum-file", "have the service add a list of checksums to the ZIP")
    .addOption(new Option("--only <ids...>", "only the files with these ids").conflicts("except"))
    .option("--except <ids...>", "all files but those with these ids");
  zip.action((transferId: string) => run((context) => getZip(context, transferId, zip.optsWithGlobals())));
  const eml = addAccess(
    api.command("eml").description("download the confidential message with its attachments"),
  )
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.eml)")
    .option("--threshold <megabytes>", "largest size of the EML; what does not fit is left out", megabytes);
  eml.action((transferId: string) => run((context) => getEml(context, transferId, eml.optsWithGlobals())));
}

async function getFiles(
  context: Context,
  transferId: string,
  wanted: string | undefined,
  options: DownloadOptions,
): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    const transfer = await openTransfer(context, service, access);
    const files = choose(transfer.files, wanted);
    const [first, second] = files;
    if (options.output !== undefined && second !== undefined) {
      throw new Fault("CONFIG_INVALID", {
        detail: "--output names one file, but there are several: name one of them",
      });
    }
    const targets = files.map((file) => options.output ?? ownName(file.name));
    const saved: Saved[] = [];
    for (const [at, file] of files.entries()) {
      const download = await service.openFile(access, file.id, { maxBytes: file.bytes }, context.stop);
      const expected = { bytes: file.bytes, checksums: transfer.checksumsOf(file) };
      saved.push(await saveDownload(context, download, targets[at] ?? "", expected));
    }
    if (first === undefined) say(context, "The transfer holds no files.");
    report(context, options, saved);
    return "fine";
  });
}

function getZip(context: Context, transferId: string, options: ZipCommandOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    const transfer = await openTransfer(context, service, access);
    const files = transfer.files.filter(
      (file) => (options.only?.includes(file.id) ?? true) && !options.except?.includes(file.id),
    );
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const maxBytes = bytes + files.length * ZIP_OVERHEAD.perFile + ZIP_OVERHEAD.whole;
    const { includeChecksumFile, only, except } = options;
    const download = await service.openZip(
      access,
      {
        maxBytes,
        ...(includeChecksumFile === undefined ? {} : { includeChecksumFile }),
        ...(only === undefined ? {} : { only }),
        ...(except === undefined ? {} : { except }),
      },
      context.stop,
    );
    const target = options.output ?? ownName(`${transferId}.zip`);
    const saved = await saveDownload(context, download, target, { checksums: [] }, (temporary) =>
      verifyZip(temporary, files, transfer.checksumsOf, includeChecksumFile === true),
    );
    const verifiedBy = [...new Set(files.flatMap(transfer.checksumsOf).map((sum) => sum.algorithm))];
    report(context, options, [{ ...saved, verifiedBy }]);
    return "fine";
  });
}

function getEml(
  context: Context,
  transferId: string,
  options: DownloadOptions & { readonly threshold?: number },
): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    const query = options.threshold === undefined ? {} : { thresholdMegabytes: options.threshold };
    const download = await service.openEml(access, query, context.stop);
    const target = options.output ?? ownName(`${transferId}.eml`);
    report(context, options, [await saveDownload(context, download, target, { checksums: [] })]);
    return "fine";
  });
}

function choose(files: readonly TransferFile[], wanted: string | undefined): readonly TransferFile[] {
  if (wanted === undefined) return files;
  const found = files.filter((file) => file.id === wanted);
  const byName = found.length > 0 ? found : files.filter((file) => file.name === wanted);
  if (byName.length === 1) return byName;
  const detail =
    byName.length === 0 ? "no file has this id or name" : "several files have this name: give an id";
  throw new Fault("CONFIG_INVALID", { detail: `${JSON.stringify(wanted)}: ${detail}` });
}

function report(context: Context, options: ApiOptions, saved: readonly Saved[]): void {
  printRows(
    context,
    options,
    [
      { title: "SAVED", value: (file) => file.path },
      { title: "BYTES", right: true, value: (file) => String(file.bytes) },
      {
        title: "VERIFIED BY",
        value: (file) => file.verifiedBy.join(", ") || "nothing: the service has no checksum",
      },
    ],
    saved,
  );
}

function megabytes(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError("It must be a number of megabytes above 0.");
  return value;
}
