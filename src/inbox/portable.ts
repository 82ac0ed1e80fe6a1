/** Which names every common file system and SMB client can hold, and what the others become. */
import { createHash } from "node:crypto";

/** File systems hold 255 bytes or UTF-16 units; the rest is room for what consumers append, such as `.part`. */
export const MAX_NAME_BYTES = 240;

export interface PortableName {
  /** In NFC, of characters that are allowed everywhere; may be too long where it was altered. */
  readonly text: string;
  /** Whether the name can be used as it is; otherwise it must carry a mark of its original. */
  readonly kept: boolean;
}

/** Never begins with a dot, which `*` does not match, nor with a dash, which commands read as an option. */
export function portableName(original: string): PortableName {
  const plain = original.normalize("NFC");
  const text = replaceForbidden(plain).replace(/^[-.]+/, "_");
  return { text, kept: text === plain && Buffer.byteLength(text) <= MAX_NAME_BYTES };
}

/** `report.pdf` marked `1a2b3c4d` → `report~1a2b3c4d.pdf`, cut where it would be too long. */
export function markName(text: string, mark: string): string {
  const [extension = ""] = EXTENSION.exec(text) ?? [];
  const stem = text.slice(0, text.length - extension.length);
  const ending = `~${mark}${extension}`;
  return cutToBytes(stem, MAX_NAME_BYTES - Buffer.byteLength(ending)) + ending;
}

/** So many hexadecimal digits of a hash over texts, whatever code units they hold. */
export function markOf(texts: readonly string[], digits: number): string {
  return createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, digits);
}

/**
 * What is left of a name once everything is ignored that some file system ignores. Lower case comes first and last:
 * `ẞ` reaches `ss` only through `ß`.
 */
export function foldName(name: string): string {
  return name
    .replace(IGNORED, "")
    .normalize("NFD")
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .normalize("NFD");
}

/** Invisible: zero-width, direction marks, variation selectors, annotation anchors. */
const IGNORED = /[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/**
 * Control characters, lone surrogates, line separators and noncharacters; those that SMB clients use in place of
 * forbidden ones; separators and what Windows forbids.
 */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\uf001-\uf07f/\\<>:"|?*]/gu;

/** Windows takes these for devices, whatever follows the first dot. */
const DEVICE = /^(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³]|conin\$|conout\$|clock\$) *(?:\.|$)/i;

/** Short, and not the whole name; programs that unpack look for both parts of `.tar.gz`. */
const EXTENSION = /(?<=.)(?:\.tar)?\.[\p{L}\p{N}]{1,12}$/iu;

function replaceForbidden(plain: string): string {
  const text = plain
    .replace(IGNORED, "")
    .normalize("NFC")
    .replace(FORBIDDEN, "_")
    .replace(/^ +/, "")
    // A look-behind keeps this linear for long runs in the middle.
    .replace(/(?<![. ])[. ]+$/, "");
  return text === "" || DEVICE.test(text) ? `_${text}` : text;
}

function cutToBytes(text: string, maxBytes: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) return text.slice(0, end);
    end += character.length;
  }
  return text;
}
