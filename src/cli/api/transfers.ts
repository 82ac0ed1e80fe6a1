/** Operations on transfers: `api received`, `sent`, `sent-legacy`, `info`, `files`, `checksums`, `get`, `zip` and `eml`. */
import { join } from "node:path";
import { type Command, Option } from "commander";
import { createDurably, exists } from "../../base/durable.ts";
import { describeFault, Fault, tolerate } from "../../base/faults.ts";
import { lookAt, type OpenFile } from "../../base/files.ts";
import { type Checksum, checksumOf, startVerification } from "../../model/checksum.ts";
import { findRecipient, type ListedTransfer, type TransferFile } from "../../model/transfer.ts";
import { allPages, LARGEST_PAGE_SIZE, withTrackingId } from "../../service/polling.ts";
import type {
  ChecksumRow,
  Download,
  Page,
  PageQuery,
  PollQuery,
  Rejected,
  TransferAccess,
  VerifiedAddress,
  ZipOptions,
} from "../../service/port.ts";
import type { LegacyTransfer } from "../../service/wire.ts";
import { verifyZip } from "../../transfer/unpack.ts";
import { type Context, invalid, type Outcome } from "../command.ts";
import { wholeNumber } from "../options.ts";
import { say, startProgress } from "../printing.ts";
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
  const { fields = SHOWN_FIELDS, json = false, active, inactive } = call.options;
  const query: PollQuery = {
    fields: fields === SERVICE_DEFAULT ? undefined : fields,
    keepRaw: json && call.options.fields !== undefined,
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
