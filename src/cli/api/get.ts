/** `api get`: one file of a transfer or all of them, each verified before it gets its name. */
import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { exists } from "../../base/durable.ts";
import { describeFault, Fault } from "../../base/faults.ts";
import { startVerification } from "../../model/checksum.ts";
import type { TransferFile } from "../../model/transfer.ts";
import type { ServicePort, TransferAccess } from "../../service/port.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { say } from "../printing.ts";
import { type OpenedTransfer, openTransfer } from "./opening.ts";
import { algorithmsOf, type Expectation, ownName, reportSaved, type Saved, saveDownload } from "./saving.ts";
import { type ApiOptions, accessTo, type PasswordOptions, withService } from "./session.ts";
import { addAccess } from "./transfers.ts";

interface GetOptions extends ApiOptions, PasswordOptions {
  readonly output?: string;
}

export function addGet(api: Command, run: Run): void {
  const get = addAccess(api.command("get").description("download one file of a transfer, or all of them"))
    .argument("[file]", "its id or its name (default: every file)")
    .option("-o, --output <path>", "a name for the one file, or a folder (default: its own name, here)");
  get.action((transferId: string, file: string | undefined) =>
    run((context) => getFiles(context, transferId, file, get.optsWithGlobals())),
  );
}

function getFiles(
  context: Context,
  transferId: string,
  wanted: string | undefined,
  options: GetOptions,
): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    const transfer = await openTransfer(context, service, access);
    const files = choose(transfer.files, wanted);
    const targetOf = await chooseTargets(options.output, files.length);
    const saved: Saved[] = [];
    let troubles = 0;
    try {
      for (const file of files) {
        try {
          saved.push(await getFile(context, service, access, transfer, file, targetOf(file)));
        } catch (error) {
          // What is wrong with one of several files does not keep the others back.
          if (!(error instanceof Fault && files.length > 1 && concernsFile(error))) throw error;
          say(context, `inlet: ${describeFault(error)}`);
          troubles++;
        }
      }
    } finally {
      if (saved.length > 0 || troubles > 0) reportSaved(context, options, saved);
    }
    if (files.length === 0) say(context, "The transfer holds no files.");
    return troubles === 0 ? "fine" : "attention";
  });
}

async function getFile(
  context: Context,
  service: ServicePort,
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

/** What an earlier call saved need not be fetched again. */
async function recognise(path: string, expected: Required<Expectation>): Promise<Saved> {
  const exists = new Fault("TARGET_EXISTS", { detail: path });
  const { bytes, checksums } = expected;
  const verification = startVerification(checksums);
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) throw exists;
  try {
    if (checksums.length === 0 || (await file.stat()).size !== bytes) throw exists;
    for await (const chunk of file.createReadStream({ autoClose: false })) verification.update(chunk);
    verification.finish(path);
  } catch {
    throw exists;
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
    found.length === 0 ? "no file has this id or name" : "several files have this name: give an id";
  throw new Fault("CONFIG_INVALID", { detail: `${JSON.stringify(wanted)}: ${detail}` });
}

async function chooseTargets(
  output: string | undefined,
  count: number,
): Promise<(file: TransferFile) => string> {
  if (output === undefined) return (file) => ownName(file.name);
  const isFolder = (await stat(output).catch(() => undefined))?.isDirectory() === true;
  if (isFolder) return (file) => join(output, ownName(file.name));
  if (count > 1) {
    const detail = `there are ${count} files, so --output must be a folder that exists, and ${output} is none`;
    throw new Fault("CONFIG_INVALID", { detail });
  }
  return () => output;
}

function concernsFile(fault: Fault): boolean {
  return fault.verdict === "quarantine" || fault.code === "TARGET_EXISTS" || fault.code === "NAME_UNUSABLE";
}
