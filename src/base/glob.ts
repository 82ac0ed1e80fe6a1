/** Patterns as people write them for addresses. */

/** `*` stands for any run of characters, `?` for one; nothing else is special. */
export function matchesGlob(text: string, glob: string): boolean {
  const pattern = glob
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${pattern}$`, "su").test(text);
}
