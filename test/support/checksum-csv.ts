/** Writes a checksums CSV in any form that a service might choose. */
import type { ChecksumRow } from "../../src/service/checksums.ts";

export interface CsvForm {
  readonly delimiter: string;
  readonly quote: "all" | "minimal" | "none";
  readonly lineEnd: string;
  readonly labels: readonly [subject: string, name: string, checksum: string];
  readonly charset: "utf-8" | "utf-16le" | "utf-16be";
  readonly byteOrderMark: boolean;
  readonly lastLineEnds: boolean;
}

export const PLAIN_FORM: CsvForm = {
  delimiter: ",",
  quote: "minimal",
  lineEnd: "\n",
  labels: ["Subject", "File Name", "Checksum"],
  charset: "utf-8",
  byteOrderMark: false,
  lastLineEnds: true,
};

/** `subject`: a text, empty for a label without a value, `undefined` for no subject line at all. */
export function writeChecksumCsv(
  form: CsvForm,
  subject: string | undefined,
  rows: readonly ChecksumRow[],
): Uint8Array {
  const [subjectLabel, nameLabel, checksumLabel] = form.labels;
  const lines = [
    ...(subject === undefined ? [] : [[subjectLabel, subject]]),
    [nameLabel, checksumLabel],
    ...rows.map(({ name, checksum }) => [name, checksum ? `${checksum.value} (${checksum.algorithm})` : ""]),
  ];
  const text = lines
    .map((cells) => cells.map((cell) => quote(cell, form)).join(form.delimiter))
    .join(form.lineEnd);
  return encode(form, text + (form.lastLineEnds ? form.lineEnd : ""));
}

function quote(cell: string, form: CsvForm): string {
  const needed = form.quote === "all" || (form.quote === "minimal" && /[",;\t\r\n]|^\s|\s$/.test(cell));
  return needed ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function encode(form: CsvForm, text: string): Uint8Array {
  const marked = (form.byteOrderMark ? "\ufeff" : "") + text;
  if (form.charset === "utf-8") return Buffer.from(marked, "utf8");
  const bytes = Buffer.from(marked, "utf16le");
  return form.charset === "utf-16le" ? bytes : bytes.swap16();
}
