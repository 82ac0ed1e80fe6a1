/** The checksums file of a transfer, in every style that a service might use. */
import { chooseLanguage } from "./accept.ts";
import type { Checksums } from "./checksums.ts";
import { filesWithMessage } from "./eml.ts";
import type { CsvStyle } from "./scenario.ts";
import type { StoredFile, StoredTransfer } from "./transfers.ts";

export interface CsvFile {
  readonly contentType: string;
  readonly bytes: Buffer;
}

export async function checksumsCsv(
  transfer: StoredTransfer,
  style: Required<CsvStyle>,
  acceptLanguage: string | undefined,
  checksums: Checksums,
): Promise<CsvFile> {
  const labels = LABELS[chooseLanguage(acceptLanguage, LANGUAGES)];
  const subject = style.subject === "shown" ? transfer.subject : "";
  const listed = filesWithMessage(transfer).filter(({ plan }) => plan.csvChecksum !== "missing");
  const rows = [
    ...(style.subject === "missing" ? [] : [[labels.subject, subject]]),
    [labels.fileName, labels.checksum],
    ...(await Promise.all(listed.map((file) => row(transfer, file, checksums)))),
  ];
  const lines = rows.map((cells) => cells.map((cell) => formatCell(cell, style)).join(style.delimiter));
  const text = lines.map((line) => line + style.lineEnd).join("");
  const charset = style.announceCharset ? `; charset=${style.charset}` : "";
  return { contentType: `text/csv${charset}`, bytes: encode(text, style) };
}

const LANGUAGES = ["en", "de", "fr", "es"] as const;

const LABELS = {
  en: { subject: "Subject", fileName: "File Name", checksum: "Checksum" },
  de: { subject: "Betreff", fileName: "Dateiname", checksum: "Prüfsumme" },
  fr: { subject: "Objet", fileName: "Nom du fichier", checksum: "Somme de contrôle" },
  es: { subject: "Asunto", fileName: "Nombre de archivo", checksum: "Suma de comprobación" },
} as const;

async function row(transfer: StoredTransfer, file: StoredFile, checksums: Checksums): Promise<string[]> {
  const { algorithm } = transfer;
  const checksum = await checksums.reported(file.content, algorithm, file.plan.csvChecksum);
  return [file.name, checksum ? `${checksum} (${algorithm})` : ""];
}

function formatCell(text: string, { delimiter, quote }: Required<CsvStyle>): string {
  const isSpecial = text.includes(delimiter) || /["\r\n]|^\s|\s$/.test(text);
  const isQuoted = quote === "all" || (quote === "minimal" && isSpecial);
  return isQuoted ? `"${text.replaceAll('"', '""')}"` : text;
}

function encode(text: string, { charset, byteOrderMark }: Required<CsvStyle>): Buffer {
  if (charset === "windows-1252") return encodeWindows1252(text);
  const marked = byteOrderMark ? `\uFEFF${text}` : text;
  if (charset === "utf-8") return Buffer.from(marked);
  const littleEndian = Buffer.from(marked, "utf16le");
  return charset === "utf-16le" ? littleEndian : littleEndian.swap16();
}

/** A question mark replaces characters outside the charset. */
function encodeWindows1252(text: string): Buffer {
  const decoder = new TextDecoder("windows-1252");
  const codes = new Map(
    Array.from({ length: 256 }, (_, byte) => [decoder.decode(Uint8Array.of(byte)), byte] as const),
  );
  return Buffer.from(Array.from(text, (character) => codes.get(character) ?? 0x3f));
}
