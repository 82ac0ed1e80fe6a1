/** `api get`, `zip` and `eml`: the files of a transfer, each verified before it gets its name. */

import { join } from "node:path";
import { Option } from "commander";
import { createDurably, exists } from "../../base/durable.ts";
import { describeFault, Fault, tolerate } from "../../base/faults.ts";
import { lookAt, type OpenFile } from "../../base/files.ts";
import { type Checksum, checksumOf, startVerification } from "../../model/checksum.ts";
import type { TransferFile } from "../../model/transfer.ts";
import type { Download, TransferAccess, ZipOptions } from "../../service/port.ts";
import { verifyZip } from "../../transfer/unpack.ts";
import { type Context, invalid, type Outcome } from "../command.ts";
import { wholeNumber } from "../options.ts";
import { say, startProgress } from "../printing.ts";
import { type Call, type Operations, print } from "./operation.ts";

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
    .option("--except <ids...>", "all files except those with these ids");
  api
    .addForTransfer("eml", "download the confidential message with its attachments", getEml)
    .option("-o, --output <file>", "where to save it (default: TRANSFER-ID.eml)")
    .option(
      "--threshold <megabytes>",
      "the largest size of the EML; larger attachments are left out",
      wholeNumber(1, 1_000_000),
    );
}

async function getFiles(call: Call<Output>, access: TransferAccess, wanted?: string): Promise<Outcome> {
  const { context, options, service, stop } = call;
  const files = choose(await openTransfer(call, access), wanted);
  const targetOf = await chooseTargets(options.output, files.length);
  const saved: Saved[] = [];
  let failures = 0;
  try {
    for (const file of files) {
      try {
        const open = () => service.openFile(access, file, { maxBytes: file.bytes }, stop);
        saved.push(await saveDownload(context, targetOf(file), open, file));
      } catch (error) {
        // A fault of one file does not stop the others.
        if (!(error instanceof Fault && files.length > 1 && concernsFile(error))) throw error;
        say(context, `inlet: ${describeFault(error)}`);
        failures++;
      }
    }
  } finally {
    if (saved.length > 0 || failures > 0) printSaved(call, saved);
  }
  if (files.length === 0) say(context, "The transfer has no files.");
  return failures === 0 ? "fine" : "attention";
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
  if ((await lookAt(output))?.isDirectory()) return (file) => join(output, ownName(file.name));
  if (count <= 1) return () => output;
  throw invalid(`there are ${count} files, so --output must be an existing folder, and ${output} is not`);
}

function concernsFile(fault: Fault): boolean {
  return fault.verdict === "quarantine" || fault.code === "TARGET_EXISTS" || fault.code === "NAME_UNUSABLE";
}

async function getZip(call: Call<Output & ZipOptions>, access: TransferAccess): Promise<Outcome> {
  const { context, options, service, stop } = call;
  const { only, except = [], includeChecksumFile: allowExtra = false } = options;
  const target = options.output ?? ownName(`${access.transferId}.zip`);
  const all = await openTransfer(call, access);
  const files = all.filter(({ id }) => (only?.includes(id) ?? true) && !except.includes(id));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const maxBytes = bytes + files.length * ZIP_OVERHEAD.perFile + ZIP_OVERHEAD.whole;
  const open = () => service.openZip(access, { ...options, maxBytes }, stop);
  const wanted = files.map((file) => ({ ...file, originalName: file.name }));
  // Every file once, with its size and checksums. The service's list of checksums may be there too.
  const saved = await saveDownload(context, target, open, {}, (temporary) =>
    verifyZip(temporary, wanted, { allowExtra }, stop),
  );
  const isProven = files.every(({ checksums }) => checksums.length > 0);
  const verifiedBy = isProven ? algorithmsOf(files.flatMap(({ checksums }) => checksums)) : [];
  return printSaved(call, [{ ...saved, verifiedBy }]);
}

async function getEml(
  call: Call<Output & { readonly threshold?: number }>,
  access: TransferAccess,
): Promise<Outcome> {
  const { context, options, service, stop } = call;
  const target = options.output ?? ownName(`${access.transferId}.eml`);
  const query = options.threshold === undefined ? {} : { thresholdMegabytes: options.threshold };
  const open = () => service.openEml(access, query, stop);
  return printSaved(call, [await saveDownload(context, target, open)]);
}

/** Sends one request at a time, so that a wrong password is sent once. */
async function openTransfer({ context, service, stop }: Call, access: TransferAccess): Promise<OpenedFile[]> {
  const { algorithm } = await service.information(access, stop);
  const files = await service.files(access, stop);
  const csv = await service
    .checksums(access, files, stop)
    .catch(tolerate("NOT_FOUND", "NO_SUCH_ENDPOINT", "NOT_SUPPORTED"));
  // The files are then verified by the checksums of the file list.
  if (csv === undefined) say(context, "The service has no checksums file for this transfer.");
  return files.map((file) => {
    const listed = file.checksum === undefined ? undefined : checksumOf(file.checksum, algorithm);
    const both = [listed, csv?.byFileId.get(file.id)?.checksum];
    return { ...file, checksums: both.filter((checksum) => checksum !== undefined) };
  });
}

interface Saved {
  readonly path: string;
  readonly bytes: number;
  /** The algorithms of its checksums, as the service spells them; empty without a checksum. */
  readonly verifiedBy: readonly string[];
}

/**
 * Saves a download under a temporary name, and renames it when its size and all checksums match. `inspect` reads the whole
 * file before that, and may throw. Nothing is requested if the target exists.
 */
export async function saveDownload(
  context: Context,
  target: string,
  open: () => Promise<Download>,
  expected: Partial<Pick<OpenedFile, "bytes" | "checksums">> = {},
  inspect: (temporary: OpenFile) => Promise<void> = async () => {},
): Promise<Saved> {
  const { bytes: expectedBytes, checksums = [] } = expected;
  if (await exists(target)) throw new Fault("TARGET_EXISTS", { detail: target });
  const download = await open();
  const progress = startProgress(context, target, expectedBytes ?? download.totalBytes);
  let bytes = 0;
  try {
    const verification = startVerification(checksums);
    await createDurably(target, async (file) => {
      for await (const chunk of download.body) {
        verification.update(chunk);
        await file.write(chunk);
        bytes += chunk.byteLength;
        progress.advance(chunk.byteLength);
      }
      if (expectedBytes !== undefined && bytes !== expectedBytes) {
        const detail = `${target}: ${bytes} bytes instead of ${expectedBytes}`;
        throw new Fault("SIZE_MISMATCH", { detail });
      }
      verification.finish(target);
      await inspect(file);
    });
  } finally {
    progress.end();
    download.cancel();
  }
  return { path: target, bytes, verifiedBy: algorithmsOf(checksums) };
}

/** The sender's name for the file. Throws `NAME_UNUSABLE` for a harmful one. */
export function ownName(name: string): string {
  const harmful =
    /[/\\\p{Cc}]/u.test(name) || ["", ".", ".."].includes(name) || Buffer.byteLength(name) > 255;
  // A hidden file may configure another program, and a leading dash looks like an option.
  if (harmful || /^[-.]/.test(name)) {
    throw new Fault("NAME_UNUSABLE", { detail: JSON.stringify(name) });
  }
  return join(".", name);
}

function algorithmsOf(checksums: readonly Checksum[]): string[] {
  return [...new Set(checksums.map((checksum) => checksum.algorithm))];
}

function printSaved(call: Call, saved: readonly Saved[]): "fine" {
  const rows = saved.map((it) => ({
    ...it,
    verifiedBy: it.verifiedBy.join(", ") || "nothing: there is no checksum",
  }));
  return print(call, ["path", "bytes", "verifiedBy"], rows, saved);
}
