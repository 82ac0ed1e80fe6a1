/** `api received`, `sent`, `sent-legacy`, `info`, `files`, `checksums`: lists transfers and their contents. */
import { type Command, Option } from "commander";
import { describeFault, type Fault } from "../../base/faults.ts";
import { formatBytes } from "../../base/phrases.ts";
import {
  findRecipient,
  type ListedTransfer,
  type TransferFile,
  type TransferInformation,
} from "../../model/transfer.ts";
import type { ChecksumReport, ChecksumRow } from "../../service/checksums.ts";
import { type FieldSelection, type FieldTree, parseFields } from "../../service/fields.ts";
import { allPages, LARGEST_PAGE_SIZE } from "../../service/polling.ts";
import type {
  LegacyTransfer,
  Page,
  PageQuery,
  PollQuery,
  TransferAccess,
  VerifiedAddress,
} from "../../service/port.ts";
import type { Context, Run } from "../context.ts";
import type { Outcome } from "../exit-codes.ts";
import { wholeNumber } from "../options.ts";
import { type Column, printable, printRows, say, writeOut } from "../printing.ts";
import { type ApiOptions, addOperation, addTransferOperation, type Call } from "./operation.ts";

interface ListOptions extends PageQuery {
  readonly active?: boolean;
  readonly inactive?: boolean;
  readonly fields?: FieldTree | typeof SERVICE_DEFAULT;
}

/** Unusable entries. */
interface Rejected {
  readonly count: number;
  readonly first: readonly Fault[];
}
const MAX_REASONS = 10;

/** The service chooses the fields. */
const SERVICE_DEFAULT = "default";

const LAST_PAGE = 1_000_000;

/** The fields that the table shows. */
const SHOWN_FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true, state: true },
  transfer: { expirationDate: true, securityMode: { config: { passwordMode: true } } },
} as const satisfies FieldSelection;

export function addListing(api: Command, run: Run): void {
  const directions = [
    ["received", "list the transfers that an address has received"],
    ["sent", "list the transfers that an address has sent"],
  ] as const;
  for (const [direction, summary] of directions) {
    const list = (call: Call<ListOptions>, email: string) => listTransfers(call, direction, email);
    addPaging(addOperation(api, run, direction, summary, list))
      .addOption(new Option("--active", "only transfers that can be downloaded").conflicts("inactive"))
      .option("--inactive", "only transfers that can no longer be downloaded")
      .option(
        "--fields <expression>",
        "the fields to request, such as 'status(state),transfer(files)'; 'default' lets the service choose; with --json, 'more' has the fields that Inlet does not interpret",
        (text) => (text.trim() === SERVICE_DEFAULT ? SERVICE_DEFAULT : parseFields(text)),
      );
  }
  const legacy = "list sent transfers with the deprecated operation of versions 1.x";
  addPaging(addOperation(api, run, "sent-legacy", legacy, listLegacy));

  addTransferOperation(
    api,
    run,
    "info",
    "show the size of a transfer and the algorithm of its checksums",
    showInformation,
  );
  addTransferOperation(api, run, "files", "list the files of a transfer", showFiles);
  addTransferOperation(
    api,
    run,
    "checksums",
    "show the checksums file of a transfer, matched with its file list",
    showChecksums,
  ).option("--raw", "print the file itself, byte for byte");
}

function addPaging(command: Command): Command {
  return command
    .argument("<email>", "a verified address")
    .option("--page <number>", "only this page, counted from 1 (default: all)", wholeNumber(1, LAST_PAGE))
    .option(
      "--page-size <number>",
      `entries per page, at most ${LARGEST_PAGE_SIZE}`,
      wholeNumber(1, LARGEST_PAGE_SIZE),
    );
}

async function listTransfers(
  call: Call<ListOptions>,
  direction: "received" | "sent",
  email: string,
): Promise<Outcome> {
  const { context, options, service } = call;
  const query = {
    ...fieldsOf(options),
    ...(options.active ? { active: true } : options.inactive ? { active: false } : {}),
  };
  const poll = direction === "received" ? service.pollReceived : service.pollSent;
  const { entries, rejected } = await readPages(call, email, (address, page) =>
    poll(address, { ...query, ...page }, context.stop),
  );
  const columns = columnsFor(direction === "received" ? email : undefined);
  printRows(context, options, columns, entries, entries.map(withoutLinks));
  return reportRejected(context, rejected);
}

function fieldsOf({ fields, json }: ListOptions & ApiOptions): Pick<PollQuery, "fields" | "keepMore"> {
  if (fields === undefined) return { fields: SHOWN_FIELDS };
  const keepMore = json === true;
  return fields === SERVICE_DEFAULT ? { keepMore } : { fields, keepMore };
}

async function listLegacy(call: Call<ListOptions>, email: string): Promise<Outcome> {
  const { context, options, service } = call;
  const { entries, rejected } = await readPages(call, email, (address, page) =>
    service.pollSentLegacy(address, page, context.stop),
  );
  printRows(context, options, [TRACKING_ID, STATE, RECIPIENTS, HREF], entries, entries.map(withoutLinks));
  return reportRejected(context, rejected);
}

/** The requested page, else all pages. */
async function readPages<Entry extends { readonly trackingId: string }>(
  { options, verified }: Call<PageQuery>,
  email: string,
  poll: (address: VerifiedAddress, page: PageQuery) => Promise<Page<Entry>>,
): Promise<{ entries: Entry[]; rejected: Rejected }> {
  const address = await verified(email);
  const pageSize = options.pageSize ?? LARGEST_PAGE_SIZE;
  if (options.page !== undefined) {
    const { entries, rejected } = await poll(address, { page: options.page, pageSize });
    return {
      entries: [...entries],
      rejected: { count: rejected.length, first: rejected.map(({ fault }) => fault) },
    };
  }
  const first: Fault[] = [];
  let count = 0;
  const pages = allPages(
    (page) => poll(address, { page, pageSize }),
    ({ fault }) => {
      count++;
      if (first.length < MAX_REASONS) first.push(fault);
    },
    pageSize,
  );
  return { entries: (await Array.fromAsync(pages)).flat(), rejected: { count, first } };
}

function reportRejected(context: Context, { count, first }: Rejected): Outcome {
  const shown = first.slice(0, MAX_REASONS);
  for (const fault of shown) say(context, `inlet: ${describeFault(fault)}`);
  if (count > shown.length) say(context, `inlet: ${count} entries in total cannot be used.`);
  return count === 0 ? "fine" : "failed";
}

const TRACKING_ID: Column<{ readonly trackingId: string }> = {
  title: "TRACKING ID",
  value: (row) => row.trackingId,
};
const STATE: Column<LegacyTransfer | ListedTransfer> = { title: "STATE", value: (row) => row.state };
const RECIPIENTS: Column<LegacyTransfer | ListedTransfer> = {
  title: "RECIPIENTS",
  value: (row) => row.recipients.map((recipient) => recipient.mail).join(", "),
};
const HREF: Column<LegacyTransfer> = { title: "HREF", value: (row) => row.href ?? "" };

/** A receiver sees its own transfer-id and the sender; a sender sees the recipients. */
function columnsFor(receiver: string | undefined): Column<ListedTransfer>[] {
  const who: Column<ListedTransfer>[] =
    receiver === undefined
      ? [RECIPIENTS]
      : [
          { title: "TRANSFER ID", value: (row) => findRecipient(row.recipients, receiver)?.transferId ?? "" },
          { title: "SENDER", value: (row) => row.sender ?? "" },
        ];
  return [
    TRACKING_ID,
    ...who,
    STATE,
    { title: "PASSWORD", value: (row) => row.passwordMode?.toLowerCase() ?? "" },
    { title: "EXPIRES", value: (row) => row.expires?.toISOString() ?? "" },
  ];
}

/** Leaves out the download link, which may carry a password. */
function withoutLinks<Entry extends LegacyTransfer | ListedTransfer>(entry: Entry) {
  return { ...entry, recipients: entry.recipients.map(({ mail, transferId }) => ({ mail, transferId })) };
}

async function showInformation(
  { context, options, service }: Call<unknown>,
  access: TransferAccess,
): Promise<Outcome> {
  const information = await service.information(access, context.stop);
  printRows(context, options, INFORMATION_COLUMNS, [information], information);
  return "fine";
}

async function showFiles(
  { context, options, service }: Call<unknown>,
  access: TransferAccess,
): Promise<Outcome> {
  const files = await service.files(access, context.stop);
  printRows(context, options, FILE_COLUMNS, files);
  return "fine";
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

async function showChecksums(
  { context, options, service }: Call<{ readonly raw?: boolean }>,
  access: TransferAccess,
): Promise<Outcome> {
  if (options.raw) {
    const { body } = await service.openChecksums(access, context.stop);
    await printRaw(context, body);
    return "fine";
  }
  const files = await service.files(access, context.stop);
  const report = await service.checksums(access, files, context.stop);
  const rows = files.flatMap((file) => report.byFileId.get(file.id) ?? []);
  printRows(context, options, CHECKSUM_COLUMNS, rows, formatReport(files, report));
  if (!options.json) sayLeftovers(context, report);
  return report.unlisted.length + report.missing.length === 0 ? "fine" : "attention";
}

/** A pipe gets the bytes; a terminal gets text with control characters spelled out. */
async function printRaw(context: Context, body: AsyncIterable<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    const lines = () => decoder.decode(chunk, { stream: true }).split(/\r\n|[\r\n]/);
    await writeOut(context, context.stdout.isTTY ? lines().map(printable).join("\n") : chunk);
  }
}

function sayLeftovers(context: Context, report: ChecksumReport): void {
  if (report.subject !== undefined) say(context, `Subject: ${report.subject}`);
  for (const row of report.unlisted) say(context, `Not in the file list: ${row.name}`);
  for (const file of report.missing) say(context, `Not in the checksums file: ${file.name}`);
}

const CHECKSUM_COLUMNS: readonly Column<ChecksumRow>[] = [
  { title: "ALGORITHM", value: (row) => row.checksum?.algorithm ?? "" },
  { title: "CHECKSUM", value: (row) => row.checksum?.value ?? "" },
  { title: "NAME", value: (row) => row.name },
];

function formatReport(files: readonly TransferFile[], report: ChecksumReport) {
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
