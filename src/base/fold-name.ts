/** Names as the strictest file system compares them. */

/** Invisible: zero-width, direction marks, variation selectors, annotation anchors. */
export const IGNORED = /[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/**
 * The part of a name that every file system distinguishes. Lower case comes first and last: `ẞ` becomes `ss` only by
 * way of `ß`.
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
