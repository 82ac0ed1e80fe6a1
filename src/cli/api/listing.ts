/** `api received`, `sent`, `sent-legacy`, `info`, `files`, `checksums`: lists transfers and their contents. */
import { type Command, Option } from "commander";
import { describeFault, type Fault } from "../../base/faults.ts";
import { findRecipient, type ListedTransfer } from "../../model/transfer.ts";
import { allPages, LARGEST_PAGE_SIZE, withTrackingId } from "../../service/polling.ts";
import type {
  ChecksumRow,
  Page,
  PageQuery,
  PollQuery,
  Rejected,
  TransferAccess,
  VerifiedAddress,
} from "../../service/port.ts";
import type { LegacyTransfer } from "../../service/wire.ts";
import type { Outcome } from "../command.ts";
import { wholeNumber } from "../options.ts";
import { say } from "../printing.ts";
import { saveDownload } from "./downloads.ts";
import { type Call, type Operations, print } from "./operation.ts";

interface ListOptions extends PageQuery {
  readonly active?: boolean;
  readonly inactive?: boolean;
  readonly fields?: string;
}

const MAX_REASONS = 10;

const LAST_PAGE = 1_000_000;
/** Requests no fields, so that the service chooses them. */
const SERVICE_DEFAULT = "default";

/** The fields that the table shows. */
const SHOWN_FIELDS =
  "trackingId,status(sender(email),recipients,state)," +
  "transfer(expirationDate,securityMode(config(passwordMode)))";

export function addListing(api: Operations): void {
  for (const direction of ["received", "sent"] as const) {
    const operation = (call: Call<ListOptions>, email = "") => listTransfers(call, direction, email);
    addPaging(api.add(direction, `list the transfers that an address has ${direction}`, operation))
      .addOption(new Option("--active", "only transfers that can be downloaded").conflicts("inactive"))
      .option("--inactive", "only transfers that can no longer be downloaded")
      .option(
        "--fields <expression>",
        "the fields to request, such as 'status(state),transfer(files)', or 'default' for those that the service chooses; with --json, 'raw' has what the service sent, without links and secrets",
        (text) => (text === SERVICE_DEFAULT ? text : withTrackingId(text)),
      );
  }
  const legacy = "list sent transfers with the deprecated operation of versions 1.x";
  addPaging(
    api.add("sent-legacy", legacy, (call: Call<ListOptions>, email = "") =>
      list(call, email, ["trackingId", "state", "recipients", "href"], call.service.pollSentLegacy),
    ),
  );
  const information = "show the size of a transfer and the algorithm of its checksums";
  api.addForTransfer("info", information, async (call, access) =>
    print(call, ["totalBytes", "algorithm"], await call.service.information(access, call.stop)),
  );
  api.addForTransfer("files", "list the files of a transfer", async (call, access) =>
    print(call, ["id", "bytes", "checksum", "name"], await call.service.files(access, call.stop)),
  );
  const checksums = "show the checksums file of a transfer, matched with its file list";
  api
    .addForTransfer("checksums", checksums, showChecksums)
    .option("-o, --output <file>", "save the file itself, byte for byte");
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

/** A receiver sees its own transfer-id and the sender; a sender sees the recipients. */
function listTransfers(
  call: Call<ListOptions>,
  direction: "received" | "sent",
  email: string,
): Promise<Outcome> {
  const { fields, json: keepRaw = false, active, inactive } = call.options;
  const query: PollQuery = {
    ...(fields === undefined ? { fields: SHOWN_FIELDS } : { keepRaw }),
    ...(fields === undefined || fields === SERVICE_DEFAULT ? {} : { fields }),
    ...(active || inactive ? { active: active === true } : {}),
  };
  const [who, poll] =
    direction === "received"
      ? ([["transferId", "sender"], call.service.pollReceived] as const)
      : ([["recipients"], call.service.pollSent] as const);
  const columns = ["trackingId", ...who, "state", "passwordMode", "expires"] as const;
  return list(call, email, columns, (address, page, stop) => poll(address, { ...query, ...page }, stop));
}

/** Prints the requested page, else all pages, and names entries that cannot be used. */
async function list<Entry extends LegacyTransfer | ListedTransfer>(
  call: Call<PageQuery>,
  email: string,
  columns: readonly (keyof LegacyTransfer | keyof ListedTransfer | "transferId")[],
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
  const rows = entries.map((entry) => ({
    ...entry,
    transferId: findRecipient(entry.recipients, email)?.transferId,
    recipients: entry.recipients.map(({ mail }) => mail),
  }));
  print<Partial<Record<(typeof columns)[number], unknown>>>(call, columns, rows, document);
  for (const fault of unusable.slice(0, MAX_REASONS)) say(context, `inlet: ${describeFault(fault)}`);
  if (unusable.length > MAX_REASONS)
    say(context, `inlet: ${unusable.length} entries in total cannot be used.`);
  return unusable.length === 0 ? "fine" : "failed";
}

async function showChecksums(
  call: Call<{ readonly output?: string }>,
  access: TransferAccess,
): Promise<Outcome> {
  const { context, options, service, stop } = call;
  if (options.output !== undefined) {
    const open = () => service.openChecksums(access, stop);
    return print(call, ["path", "bytes"], await saveDownload(context, options.output, open));
  }
  const files = await service.files(access, stop);
  const report = await service.checksums(access, files, stop);
  const { subject, byFileId } = report;
  const flat = ({ name, checksum }: ChecksumRow) => ({ name, ...checksum });
  const matched = files.flatMap(({ id }) => {
    const row = byFileId.get(id);
    return row === undefined ? [] : [{ id, ...flat(row) }];
  });
  const unlisted = report.unlisted.map(flat);
  const missing = report.missing.map(({ id, name }) => ({ id, name }));
  print(call, ["algorithm", "value", "name"], matched, { subject, files: matched, unlisted, missing });
  if (!options.json) {
    if (subject !== undefined) say(context, `Subject: ${subject}`);
    for (const { name } of unlisted) say(context, `Not in the file list: ${name}`);
    for (const { name } of missing) say(context, `Not in the checksums file: ${name}`);
  }
  return unlisted.length + missing.length === 0 ? "fine" : "attention";
}
