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
import { type FieldTree, parseFields } from "../../service/fields.ts";
import { allPages, LARGEST_PAGE_SIZE } from "../../service/polling.ts";
import type {
  Page,
  PageQuery,
  PollQuery,
  Rejected,
  TransferAccess,
  VerifiedAddress,
} from "../../service/port.ts";
import type { LegacyTransfer } from "../../service/wire.ts";
import type { Context, Outcome } from "../command.ts";
import { wholeNumber } from "../options.ts";
import { type Column, printable, say, writeOut } from "../printing.ts";
import { type Call, type Operations, print } from "./operation.ts";

interface ListOptions extends PageQuery {
  readonly active?: boolean;
  readonly inactive?: boolean;
  readonly fields?: FieldTree | typeof SERVICE_DEFAULT;
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
} as const satisfies FieldTree;

export function addListing(api: Operations): void {
  for (const direction of ["received", "sent"] as const) {
    const list = (call: Call<ListOptions>, email: string) => listTransfers(call, direction, email);
    addPaging(api.add(direction, `list the transfers that an address has ${direction}`, list))
      .addOption(new Option("--active", "only transfers that can be downloaded").conflicts("inactive"))
      .option("--inactive", "only transfers that can no longer be downloaded")
      .option(
        "--fields <expression>",
        "the fields to request, such as 'status(state),transfer(files)'; 'default' lets the service choose; with --json, 'more' has the fields that Inlet does not interpret",
        (text) => (text.trim() === SERVICE_DEFAULT ? SERVICE_DEFAULT : parseFields(text)),
      );
  }
  const legacy = "list sent transfers with the deprecated operation of versions 1.x";
  addPaging(
    api.add("sent-legacy", legacy, (call: Call<ListOptions>, email) =>
      list(call, email, [TRACKING_ID, STATE, RECIPIENTS, HREF], call.service.pollSentLegacy),
    ),
  );
  const information = "show the size of a transfer and the algorithm of its checksums";
  api.addForTransfer("info", information, async (call, access) =>
    print(call, INFORMATION_COLUMNS, await call.service.information(access, call.stop)),
  );
  api.addForTransfer("files", "list the files of a transfer", async (call, access) =>
    print(call, FILE_COLUMNS, await call.service.files(access, call.stop)),
  );
  const checksums = "show the checksums file of a transfer, matched with its file list";
  api
    .addForTransfer("checksums", checksums, showChecksums)
    .option("--raw", "print the file itself, byte for byte");
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

function listTransfers(
  call: Call<ListOptions>,
  direction: "received" | "sent",
  email: string,
): Promise<Outcome> {
  const { fields, json: keepMore = false, active, inactive } = call.options;
  const query: PollQuery = {
    ...(fields === undefined ? { fields: SHOWN_FIELDS } : { keepMore }),
    ...(fields === undefined || fields === SERVICE_DEFAULT ? {} : { fields }),
    ...(active || inactive ? { active: active === true } : {}),
  };
  const poll = direction === "received" ? call.service.pollReceived : call.service.pollSent;
  const columns = columnsFor(direction === "received" ? email : undefined);
  return list(call, email, columns, (address, page, stop) => poll(address, { ...query, ...page }, stop));
}

/** Prints the requested page, else all pages, and names entries that cannot be used. */
async function list<Entry extends LegacyTransfer | ListedTransfer>(
  call: Call<PageQuery>,
  email: string,
  columns: readonly Column<Entry>[],
  poll: (address: VerifiedAddress, page: PageQuery, stop: AbortSignal) => Promise<Page<Entry>>,
): Promise<Outcome> {
  const { context, options, stop } = call;
  const address = await call.verified(email);
  const { page: only, pageSize = LARGEST_PAGE_SIZE } = options;
  const unusable: Fault[] = [];
  const reject = ({ fault }: Rejected) => void unusable.push(fault);
  const read = (page: number) => poll(address, { page, pageSize }, stop);
  const single = only === undefined ? undefined : await read(only);
  single?.rejected.forEach(reject);
  const entries = single?.entries ?? (await Array.fromAsync(allPages(read, reject, pageSize))).flat();
  // Without the download links, which may carry a password.
  const document = entries.map((entry) => ({
    ...entry,
    recipients: entry.recipients.map(({ mail, transferId }) => ({ mail, transferId })),
  }));
  print(call, columns, entries, document);
  for (const fault of unusable.slice(0, MAX_REASONS)) say(context, `inlet: ${describeFault(fault)}`);
  if (unusable.length > MAX_REASONS)
    say(context, `inlet: ${unusable.length} entries in total cannot be used.`);
  return unusable.length === 0 ? "fine" : "failed";
}

const TRACKING_ID: Column<LegacyTransfer | ListedTransfer> = {
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
  call: Call<{ readonly raw?: boolean }>,
  access: TransferAccess,
): Promise<Outcome> {
  const { context, options, service, stop } = call;
  if (options.raw) {
    const { body } = await service.openChecksums(access, stop);
    await printRaw(context, body);
    return "fine";
  }
  const files = await service.files(access, stop);
  const report = await service.checksums(access, files, stop);
  const rows = files.flatMap((file) => report.byFileId.get(file.id) ?? []);
  print(call, CHECKSUM_COLUMNS, rows, formatReport(files, report));
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
