/** What a service of a world shows of one transfer: its entry in lists, its files, checksums and archive. */
import { hash } from "node:crypto";
import { project, type Selection } from "../../../simulator/fields.ts";
import { formatDate } from "../../../simulator/reply.ts";
import { writeZip } from "../../support/zip-writer.ts";
import type { SentFile, SentTransfer, ServiceHabits, StoredTransfer } from "../plan/sent.ts";

export interface HeldRecipient {
  readonly mail: string;
  /** One spelling for all spellings of the address. */
  readonly address: string;
  readonly transferId: string;
}

export interface Held {
  readonly transfer: StoredTransfer;
  readonly recipients: readonly HeldRecipient[];
  /** Entries of lists, by what they depend on. */
  readonly entries: Map<string, string>;
}

/** What an entry of a list depends on, besides the transfer. */
export interface View {
  readonly habits: ServiceHabits;
  /** The base URL of the service, for links. */
  readonly url: string;
  /** The recipient who asks, in one spelling. */
  readonly address: string;
  /** As the service writes it. */
  readonly state: string;
  readonly fields: string;
  readonly selection: Selection;
}

export function hold(transfer: StoredTransfer): Held {
  const recipients = transfer.recipients.map((mail) => ({
    mail,
    address: foldAddress(mail),
    transferId: transferIdOf(transfer, mail),
  }));
  return { transfer, recipients, entries: new Map() };
}

export function transferIdOf({ service, trackingId }: SentTransfer, mail: string): string {
  return hash("sha256", `${service} ${trackingId} ${foldAddress(mail)}`).slice(0, 10);
}

export function foldAddress(address: string): string {
  return address.trim().normalize("NFC").toLowerCase();
}

/** As JSON. */
export function entryOf(held: Held, view: View): string {
  const key = `${view.state} ${view.address} ${view.fields}`;
  const known = held.entries.get(key);
  if (known !== undefined) return known;
  const text = JSON.stringify(project(describe(held, view), view.selection));
  held.entries.set(key, text);
  return text;
}

/** Links, and the ids of files, only for a recipient who has proven the address. */
function describe({ transfer, recipients }: Held, { habits, url, address, state }: View): unknown {
  const seen = recipients.map(({ mail, address: own, transferId }) => ({
    mail,
    id: transferId,
    ...(own === address ? { downloadUrl: linkOf(transfer, transferId, url) } : {}),
    fileDownloads: [],
    notificationFailed: false,
  }));
  return {
    trackingId: transfer.trackingId,
    status: { sender: { email: transfer.sender }, recipients: seen, state },
    transfer: {
      // The first one is meant, the others get copies.
      recipients: { to: mails(recipients.slice(0, 1)), cc: mails(recipients.slice(1)), bcc: [] },
      expirationDate: formatDate(transfer.expiresMs),
      fileChecksumAlgorithm: algorithmOf(transfer),
      files: transfer.files.map((file) => ({
        id: file.id,
        fileName: file.name,
        size: file.bytes.length,
        checksum: listedChecksum(transfer, file),
        state: "ACTIVE",
      })),
      ...(habits.hidesMessages ? {} : { confidentialMessageFileId: messageFileId(transfer) ?? null }),
      notificationMessage: { subject: transfer.subject, body: "" },
      securityMode: {
        ...(habits.hasNoModes ? {} : { name: transfer.securityMode ?? "ONE_TIME_PASSWORD" }),
        config: { passwordMode: transfer.isPasswordInLink ? "NONE" : "MANUAL" },
      },
      senderLanguage: "en",
      recipientLanguage: "en",
    },
  };
}

function mails(recipients: readonly HeldRecipient[]) {
  return recipients.map(({ mail }) => ({ mail }));
}

function linkOf({ isPasswordInLink, password }: SentTransfer, transferId: string, url: string): string {
  const query = new URLSearchParams({ id: transferId, ...(isPasswordInLink ? { password } : {}) });
  return `${url}/download?${query}`;
}

export function algorithmOf({ checksums }: SentTransfer): string {
  return checksums === "none" ? "" : "SHA-256";
}

export function listedChecksum({ checksums }: SentTransfer, { sha256 }: SentFile): string {
  return checksums === "csv" || checksums === "none" ? "" : sha256;
}

/** The confidential message is stored as a file, from which the service makes the EML. */
export function messageFileId({ trackingId, message }: SentTransfer): string | undefined {
  return message === undefined ? undefined : `${trackingId}-message`;
}

export function messageFileOf(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from("<p>"), message]);
}

const LABELS = {
  en: { subject: "Subject", name: "File Name", checksum: "Checksum" },
  de: { subject: "Betreff", name: "Dateiname", checksum: "Prüfsumme" },
} as const;

/** `isFalse`: each file has the checksum of another one. */
export function checksumsCsv(transfer: SentTransfer, language: "en" | "de", isFalse: boolean): string {
  const labels = LABELS[language];
  const { files, message, messageRow, checksums, subject } = transfer;
  const rows = files.map(({ name }, at) => [name, sumOf(files, at, isFalse)] as const);
  if (message !== undefined && messageRow !== undefined) {
    rows.push(["message", hash("sha256", messageRow === "eml" ? message : messageFileOf(message))]);
  }
  const isEmpty = checksums === "listed" || checksums === "none";
  const lines = [
    [labels.subject, subject],
    [labels.name, labels.checksum],
    ...rows.map(([name, sum]) => [name, isEmpty ? "" : `${sum} (SHA-256)`]),
  ];
  return lines.map((cells) => `${cells.map(formatCell).join(",")}\r\n`).join("");
}

/** Of the file at this place, or of another one. */
export function sumOf(files: readonly SentFile[], at: number, isFalse: boolean): string {
  if (!isFalse) return files[at]?.sha256 ?? "";
  return files.length > 1 ? (files[(at + 1) % files.length]?.sha256 ?? "") : hash("sha256", "another file");
}

function formatCell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** `ids`: of the files that it has. `read`: the bytes that the service has of a file. */
export function zipOf(
  transfer: SentTransfer,
  ids: ReadonlySet<string>,
  read: (file: SentFile) => Buffer,
  checksums: string | undefined,
): Buffer {
  const files = transfer.files.filter(({ id }) => ids.has(id));
  const isWhole = files.length === transfer.files.length && files.every((file) => read(file) === file.bytes);
  if (isWhole && checksums === undefined) return transfer.zip;
  const entries = files.map((file) => ({ name: file.name, content: read(file), method: 0 }));
  const extra = checksums === undefined ? [] : [{ name: "checksums.csv", content: checksums, method: 0 }];
  return writeZip([...entries, ...extra]);
}
