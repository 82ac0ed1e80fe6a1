/** Endpoints of one transfer, opened with its transfer-id and password. */
import type { Call, Handler, World } from "./call.ts";
import { literalContent } from "./content.ts";
import { type CsvFile, checksumsCsv } from "./csv.ts";
import { emlSource, filesWithMessage } from "./eml.ts";
import { ServiceError } from "./errors.ts";
import { attachmentOf } from "./mime.ts";
import { algorithmOf } from "./record.ts";
import { dataReply, type Reply, type Source, textReply } from "./reply.ts";
import { booleanParameter, PARAMETERS, type ParameterName, parameter, passwordOf } from "./requests.ts";
import { isAtLeast } from "./settings.ts";
import type { OpenedTransfer, StoredFile, StoredRecipient, StoredTransfer } from "./transfers.ts";
import { type ZipEntry, zipSource } from "./zip.ts";

export const showInformation: Handler = (call, world) => {
  const { transfer } = openTransfer(call, world);
  const totalSize = transfer.files.reduce((sum, file) => sum + file.announcedBytes, 0);
  return dataReply({ totalSize, checksumAlgorithm: algorithmOf(transfer) });
};

export const listFiles: Handler = async (call, world) => {
  const { transfer, recipient } = openTransfer(call, world);
  const query = repeatedQuery(call);
  const entries = transfer.files.map(async ({ id, name, announcedBytes, content, plan }) => ({
    id,
    fileName: name,
    size: announcedBytes,
    checksum: await world.checksums.reported(content, transfer.algorithm, plan.listChecksum),
    href: `/api/transfers/${recipient.transferId}/files/${id}?${query}`,
  }));
  return dataReply(await Promise.all(entries));
};

export const sendFile: Handler = (call, world) => {
  const { transfer, recipient } = openTransfer(call, world);
  const file = filesWithMessage(transfer).find(({ id }) => id === call.path["file"]);
  if (file === undefined || file.plan.removed !== undefined) throw new ServiceError("noSuchEntity");
  recordDownloads(recipient, [file], world);
  const { content } = file;
  return sourceReply("application/octet-stream", file.name, {
    etag: `"${content.fingerprint}"`,
    bytes: content.bytes,
    measure: () => Promise.resolve(content.bytes),
    read: (start, end) => content.read(start, end),
  });
};

export const sendZip: Handler = async (call, world) => {
  const { transfer, recipient } = openTransfer(call, world);
  const files = chooseFiles(call, world, transfer).filter(({ plan }) => plan.removed === undefined);
  const entries: ZipEntry[] = [...files];
  if (booleanParameter(call, "include-checksum-file") === true) {
    const { bytes } = await checksumsOf(call, world, transfer);
    entries.push({ name: freeName("checksums.csv", files), content: literalContent(bytes, true) });
  }
  recordDownloads(recipient, files, world);
  return sourceReply("application/zip", `${transfer.trackingId}.zip`, zipSource(entries, world.zipSizes));
};

export const sendEml: Handler = (call, world) => {
  const { transfer, recipient } = openTransfer(call, world);
  const { message } = transfer.plan;
  const maxBytes = thresholdBytes(call, world);
  if (message === undefined) throw new ServiceError("noSuchEntity", "there is no confidential message");
  recordDownloads(recipient, transfer.files, world);
  return sourceReply(
    "application/octet-stream",
    `${transfer.trackingId}.eml`,
    emlSource(transfer, message, maxBytes),
  );
};

export const sendChecksums: Handler = async (call, world) => {
  const { transfer } = openTransfer(call, world);
  const { contentType, bytes } = await checksumsOf(call, world, transfer);
  const reply = textReply(200, contentType, bytes);
  return { ...reply, headers: { ...reply.headers, "Content-Disposition": attachmentOf("checksums.csv") } };
};

/** The number of recorded downloads per file and recipient. */
const DOWNLOADS_KEPT = 100;
/** Not a mebibyte, so that the mail is within both limits. */
const MEGABYTE = 1_000_000;

function openTransfer(call: Call, { transfers, guard, settings }: World): OpenedTransfer {
  const opened = transfers.open(call.path["transfer"] ?? "");
  const isOpen = settings.noPassword === "open" && opened?.transfer.passwordMode === "NONE";
  const password = isOpen ? opened.transfer.password : passwordOf(call);
  if (opened === undefined) throw new ServiceError("noSuchEntity");
  const state = transfers.stateOf(opened.transfer);
  // Only the request that deletes a transfer is answered with 410.
  if (state !== "Active") throw new ServiceError("noSuchEntity");
  const { unsupported } = opened.transfer.plan;
  if (unsupported === "QUICK") throw new ServiceError("quickNotSupported");
  if (unsupported === "eID") throw new ServiceError("eidNotSupported");
  guard.check(opened, password);
  return opened;
}

function sourceReply(contentType: string, name: string, source: Source): Reply {
  return {
    status: 200,
    headers: { "Content-Type": contentType, "Content-Disposition": attachmentOf(name) },
    body: { kind: "source", source },
  };
}

/** The query of a self-contained link: all parameters that came as headers, including the password. */
function repeatedQuery(call: Call): string {
  const names: readonly ParameterName[] = [
    "clientId",
    "productKey",
    "majorVersion",
    "minimumMinorVersion",
    "password",
  ];
  const pairs = names.flatMap((name) => {
    const given = parameter(call, name);
    // A password in a header is encoded, unlike the others.
    const value = name === "password" && given !== undefined ? passwordOf(call) : given;
    return value === undefined ? [] : [`${PARAMETERS[name].twin}=${encodeURIComponent(value)}`];
  });
  return pairs.join("&");
}

/** The files of the archive. Versions before 1.11 ignore these parameters. */
function chooseFiles(call: Call, { settings }: World, transfer: StoredTransfer): readonly StoredFile[] {
  const isInclude = booleanParameter(call, "is-customized-files-ids-include") ?? true;
  const ids = call.url.searchParams
    .getAll("customized-files-ids")
    .flatMap((list) => list.split(","))
    .map((id) => id.trim())
    .filter((id) => id !== "");
  const canChoose = isAtLeast(settings.version, { major: 1, minor: 11 }) && !settings.ignoresFileIds;
  if (ids.length === 0 || !canChoose) return transfer.files;
  if (ids.some((id) => !transfer.files.some((file) => file.id === id))) {
    throw new ServiceError("noSuchEntity", "customized-files-ids");
  }
  return transfer.files.filter((file) => ids.includes(file.id) === isInclude);
}

function checksumsOf(call: Call, { settings, checksums }: World, transfer: StoredTransfer): Promise<CsvFile> {
  return checksumsCsv(transfer, settings.csv, call.headers["accept-language"], checksums);
}

function freeName(wanted: string, files: readonly StoredFile[]): string {
  return files.some(({ name }) => name === wanted) ? freeName(`_${wanted}`, files) : wanted;
}

function thresholdBytes(call: Call, { settings }: World): number | undefined {
  const text = call.url.searchParams.get("threshold");
  if (text === null) return undefined;
  if (settings.wholeThreshold && !/^\d+$/.test(text)) throw new ServiceError("noSuchEntity");
  const isKnown = { number: /^\d+(\.\d+)?$/, int32: /^\d{1,9}$/, refused: /^(?!)/ }[
    settings.threshold ?? "number"
  ];
  if (!isKnown.test(text)) throw new ServiceError("badValue", "threshold");
  return Number(text) * MEGABYTE;
}

function recordDownloads(recipient: StoredRecipient, files: readonly StoredFile[], { clock }: World): void {
  for (const { id } of files) {
    const times = [...(recipient.downloads.get(id) ?? []), clock.now()];
    recipient.downloads.set(id, times.slice(-DOWNLOADS_KEPT));
  }
}
