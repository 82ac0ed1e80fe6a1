/** `api info`, `api files` and `api checksums`: what a transfer consists of. */
import { once } from "node:events";
import { type Command, Option } from "commander";
import { formatBytes } from "../../base/phrases.ts";
import type { TransferFile, TransferInformation } from "../../model/transfer.ts";
import type { ChecksumReport, ChecksumRow } from "../../service/checksums.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { type Column, printable, printRows, say } from "../printing.ts";
import { type ApiOptions, accessTo, type PasswordOptions, withService } from "./session.ts";

type TransferOptions = ApiOptions & PasswordOptions & { readonly raw?: boolean };

export function addTransfers(api: Command, run: Run): void {
  const commands = [
    ["info", "show the size of a transfer and the algorithm of its checksums", showInformation],
    ["files", "list the files of a transfer", showFiles],
    ["checksums", "show the checksums file of a transfer, matched to its list of files", showChecksums],
  ] as const;
  for (const [name, summary, show] of commands) {
    const command = addAccess(api.command(name).description(summary));
    if (name === "checksums") command.option("--raw", "the file itself, byte for byte");
    command.action((transferId: string) =>
      run((context) => show(context, transferId, command.optsWithGlobals())),
    );
  }
}

/** The argument and options of every command that opens a transfer. */
export function addAccess(command: Command): Command {
  return command
    .argument("<transfer-id>", "the recipient's own id of the transfer, as 'api received' lists it")
    .option("--password-file <file>", "read the password from a file, or from standard input for -")
    .addOption(
      new Option("--no-password", "send none, for transfers that need none").conflicts("passwordFile"),
    );
}

function showInformation(context: Context, transferId: string, options: TransferOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    const information = await service.information(access, context.stop);
    printRows(context, options, INFORMATION_COLUMNS, [information], information);
    return "fine";
  });
}

function showFiles(context: Context, transferId: string, options: TransferOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const files = await service.files(await accessTo(context, transferId, options), context.stop);
    printRows(context, options, FILE_COLUMNS, files);
    return "fine";
  });
}

const INFORMATION_COLUMNS: readonly Column<TransferInformation>[] = [
  { title: "SIZE", right: true, value: (row) => formatBytes(row.totalBytes) },
  { title: "BYTES", right: true, value: (row) => String(row.totalBytes) },
  { title: "ALGORITHM", value: (row) => row.algorithm ?? "none" },
];

const FILE_COLUMNS: readonly Column<TransferFile>[] = [
  { title: "FILE ID", value: (file) => file.id },
  { title: "BYTES", right: true, value: (file) => String(file.bytes) },
  { title: "CHECKSUM", value: (file) => file.checksum ?? "" },
  { title: "NAME", value: (file) => file.name },
];

function showChecksums(context: Context, transferId: string, options: TransferOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const access = await accessTo(context, transferId, options);
    if (options.raw) {
      const { body } = await service.openChecksums(access, context.stop);
      await printRaw(context, body);
      return "fine";
    }
    const files = await service.files(access, context.stop);
    const report = await service.checksums(access, files, context.stop);
    const rows = files.flatMap((file) => report.byFileId.get(file.id) ?? []);
    printRows(context, options, ROW_COLUMNS, rows, toJson(files, report));
    if (!options.json) sayLeftovers(context, report);
    return report.unlisted.length + report.missing.length === 0 ? "fine" : "attention";
  });
}

/** Byte for byte for programs; on a terminal with control characters spelled out. */
async function printRaw({ stdout }: Context, body: AsyncIterable<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    const lines = () => decoder.decode(chunk, { stream: true }).split(/\r\n|[\r\n]/);
    const part = stdout.isTTY ? lines().map(printable).join("\n") : chunk;
    if (!stdout.write(part)) await once(stdout, "drain");
  }
}

function sayLeftovers(context: Context, report: ChecksumReport): void {
  if (report.subject !== undefined) say(context, `Subject: ${report.subject}`);
  for (const row of report.unlisted) say(context, `Not in the list of files: ${row.name}`);
  for (const file of report.missing) say(context, `Not in the checksums file: ${file.name}`);
}

const ROW_COLUMNS: readonly Column<ChecksumRow>[] = [
  { title: "ALGORITHM", value: (row) => row.checksum?.algorithm ?? "" },
  { title: "CHECKSUM", value: (row) => row.checksum?.value ?? "" },
  { title: "NAME", value: (row) => row.name },
];

function toJson(files: readonly TransferFile[], report: ChecksumReport) {
  return {
    subject: report.subject,
    files: files.flatMap((file) => {
      const row = report.byFileId.get(file.id);
      return row === undefined ? [] : [{ id: file.id, name: row.name, ...row.checksum }];
    }),
    unlisted: report.unlisted.map((row) => ({ name: row.name, ...row.checksum })),
    missing: report.missing.map((file) => ({ id: file.id, name: file.name })),
  };
}
