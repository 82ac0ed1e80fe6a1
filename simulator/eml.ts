/** A transfer as one mail: the confidential message, with the files as attachments. */
import { createHash } from "node:crypto";
import { slice } from "./chunks.ts";
import { type Content, literalContent } from "./content.ts";
import { encodeAddress, encodeHeaderText, encodeParameter } from "./mime.ts";
import type { Source } from "./reply.ts";
import type { FilePlan } from "./scenario.ts";
import type { StoredFile, StoredTransfer } from "./transfers.ts";

/** With a limit, only the smallest files that fit are attached, and the mail says how many are missing. */
export function emlSource(transfer: StoredTransfer, message: string, maxBytes: number | undefined): Source {
  const parts = planParts(transfer, message, maxBytes);
  const bytes = parts.reduce((sum, part) => sum + partBytes(part), 0);
  const fingerprint = createHash("sha256");
  for (const part of parts) fingerprint.update(`${part.head}${part.content.fingerprint}`);
  return {
    etag: `"eml-${fingerprint.digest("hex").slice(0, 32)}"`,
    bytes,
    measure: () => Promise.resolve(bytes),
    read: (start, end) => slice(writeParts(parts), start, end),
  };
}

/** The files of a transfer as its checksums file shows them: perhaps with the confidential message. */
export function filesWithMessage(transfer: StoredTransfer): readonly StoredFile[] {
  return [...transfer.files, ...messageFileOf(transfer)];
}

/** The message as a file: its text, or the EML without attachments. */
function messageFileOf(transfer: StoredTransfer): readonly StoredFile[] {
  const { messageFileId: id, plan } = transfer;
  if (id === undefined || plan.message === undefined || plan.messageRow === undefined) return [];
  const isEml = plan.messageRow === "eml";
  const bytes = isEml ? emlBytes(transfer, plan.message) : Buffer.from(plan.message);
  const content = literalContent(bytes, true);
  const file: FilePlan = { name: "message", csvChecksum: plan.messageRow === "wrong" ? "wrong" : "right" };
  return [{ id, name: file.name, plan: file, content, announcedBytes: content.bytes }];
}

/** The mail without any file. */
function emlBytes(transfer: StoredTransfer, message: string): Buffer {
  return Buffer.concat([...writeParts(planParts(transfer, message, 1))]);
}

/** `head`: headers and an empty line. The content follows in base64. */
interface Part {
  readonly head: string;
  readonly content: Content;
}

const LINE_BYTES = 57;
const LINES_PER_CHUNK = 4096;

function planParts(transfer: StoredTransfer, message: string, maxBytes: number | undefined): readonly Part[] {
  const boundary = `=_${createHash("sha256").update(transfer.trackingId).digest("hex").slice(0, 24)}`;
  const attachments = new Map(transfer.files.map((file) => [file, attachmentPart(file, boundary)]));
  /** Only the boundary that ends the mail. */
  const last: Part = { head: `--${boundary}--\r\n`, content: literalContent(Buffer.alloc(0), true) };
  const first = (leftOut: number): Part => messagePart(transfer, message, leftOut, boundary);

  const smallestFirst = [...attachments].toSorted(([a], [b]) => a.content.bytes - b.content.bytes);
  const chosen = new Set<StoredFile>();
  let attachedBytes = 0;
  for (const [file, part] of smallestFirst) {
    // The size with this file, too.
    const leftOut = attachments.size - chosen.size - 1;
    const bytes = partBytes(first(leftOut)) + attachedBytes + partBytes(part) + partBytes(last);
    if (maxBytes !== undefined && bytes > maxBytes) break;
    chosen.add(file);
    attachedBytes += partBytes(part);
  }
  const attached = [...attachments].filter(([file]) => chosen.has(file)).map(([, part]) => part);
  return [first(attachments.size - chosen.size), ...attached, last];
}

function messagePart(transfer: StoredTransfer, message: string, leftOut: number, boundary: string): Part {
  const note =
    leftOut === 0
      ? ""
      : `\r\n\r\n${leftOut} of the files were left out because the mail would be too large.\r\n`;
  const headers = [
    `From: ${encodeAddress(transfer.sender, transfer.plan.fromName)}`,
    ...addressHeader("To", transfer, "to"),
    ...addressHeader("Cc", transfer, "cc"),
    `Subject: ${encodeHeaderText(transfer.subject)}`,
    `Date: ${new Date(transfer.createdAtMs).toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: <${encodeURIComponent(transfer.trackingId.toWellFormed())}@simulated.invalid>`,
    "MIME-Version: 1.0",
    `Content-Type: multipart/mixed;\r\n boundary="${boundary}"`,
    "",
    `--${boundary}`,
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: base64",
  ];
  const text = message.replace(/\r\n|\r|\n/g, "\r\n") + note;
  return { head: `${headers.join("\r\n")}\r\n\r\n`, content: literalContent(Buffer.from(text), true) };
}

/** Bcc recipients are not shown. */
function addressHeader(label: string, transfer: StoredTransfer, role: "to" | "cc"): readonly string[] {
  const addresses = transfer.recipients
    .filter((recipient) => recipient.role === role)
    .map(({ mail }) => encodeAddress(mail));
  return addresses.length === 0 ? [] : [`${label}: ${addresses.join(",\r\n ")}`];
}

function attachmentPart(file: StoredFile, boundary: string): Part {
  const headers = [
    `--${boundary}`,
    "Content-Type: application/octet-stream",
    "Content-Transfer-Encoding: base64",
    `Content-Disposition: attachment;\r\n ${encodeParameter("filename", file.name)}`,
  ];
  return { head: `${headers.join("\r\n")}\r\n\r\n`, content: file.content };
}

function partBytes({ head, content }: Part): number {
  const encoded = Math.ceil(content.bytes / 3) * 4;
  return Buffer.byteLength(head) + encoded + 2 * Math.ceil(content.bytes / LINE_BYTES);
}

function* writeParts(parts: readonly Part[]): Generator<Buffer> {
  for (const { head, content } of parts) {
    yield Buffer.from(head);
    for (const chunk of content.read(0, content.bytes, LINE_BYTES * LINES_PER_CHUNK)) {
      yield Buffer.from(chunk.toString("base64").replace(/.{1,76}/g, "$&\r\n"), "latin1");
    }
  }
}
