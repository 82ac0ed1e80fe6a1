/** Unicode forms of texts that senders choose, and names as the strictest file system compares them. */

/** Invisible: zero-width, direction marks, variation selectors, annotation anchors. */
export const IGNORED = /[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/** No language needs more marks on one letter, and the time to normalise them grows with the square of their number. */
const MANY_MARKS = /(\p{M}{30})\p{M}+/gu;

export function limitMarks(text: string): string {
  return text.replace(MANY_MARKS, "$1");
}

/** The text in NFC, without the marks that no language needs. */
export function composed(text: string): string {
  return limitMarks(text).normalize("NFC");
}

/**
 * Two names have the same key if some file system treats them as the same. Lower case comes first and last: `ẞ` becomes
 * `ss` only by way of `ß`.
 */
export function foldName(name: string): string {
  return limitMarks(name.replace(IGNORED, ""))
    .normalize("NFD")
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .normalize("NFD");
}
