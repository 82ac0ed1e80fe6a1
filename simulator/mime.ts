/** Encodes names and texts for the headers of HTTP and mail, which allow only ASCII. */

/** Content-Disposition of a download: the true name, and an ASCII one for old clients. */
export function attachmentOf(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  return `attachment; filename="${plain}"; filename*=UTF-8''${percentEncode(name)}`;
}

/** Text of a mail header (RFC 2047): unchanged if that is safe, else as encoded words. */
export function encodeHeaderText(text: string): string {
  if (/^[\x20-\x7e]{0,60}$/.test(text) && !text.includes("=?")) return text;
  return splitByBytes(text, ENCODED_WORD_BYTES)
    .map((piece) => `=?UTF-8?B?${Buffer.from(piece).toString("base64")}?=`)
    .join("\r\n ");
}

/** A parameter of a mail header (RFC 2231), in as many pieces as it needs, one per line. */
export function encodeParameter(name: string, value: string): string {
  const pieces = splitByBytes(value, PARAMETER_BYTES).map(percentEncode);
  if (pieces.length === 1) return `${name}*=UTF-8''${pieces[0]}`;
  return pieces
    .map((piece, index) => `${name}*${index}*=${index === 0 ? "UTF-8''" : ""}${piece}`)
    .join(";\r\n ");
}

/** An address in angle brackets, without characters that could end the line. */
export function encodeAddress(mail: string, name?: string): string {
  const address = `<${mail.replace(/[\p{Cc}<>]/gu, "")}>`;
  return name === undefined ? address : `${encodeHeaderText(name.replace(/[",<>]/g, ""))} ${address}`;
}

const ENCODED_WORD_BYTES = 45;
const PARAMETER_BYTES = 20;

/** RFC 5987: also escapes the characters that encodeURIComponent leaves and these headers use. */
function percentEncode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Pieces of at most `maxBytes` in UTF-8, which split no character; one empty piece for an empty text. */
function splitByBytes(text: string, maxBytes: number): readonly string[] {
  const pieces: string[] = [];
  let piece = "";
  for (const character of text) {
    if (Buffer.byteLength(piece + character) > maxBytes) {
      pieces.push(piece);
      piece = "";
    }
    piece += character;
  }
  return [...pieces, piece];
}
